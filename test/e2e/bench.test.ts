import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { emulate, folderOf, run, type Served, scratch, start } from './cli.ts';

/** Generous limits: what is tested is the path, not the speed of the machine. Client-bound (3) is then the machine's word. */
const SLO = ['--slo', 'ttft=20s,e2e=30s'];
const LOAD = ['--rate', '20', '--duration', '2s', '--warmup', '0.5s', '--output', '8', '--input', '16'];
const { dir, remove } = scratch();
let server: Served;
const extra: Server[] = [];

beforeAll(async () => {
  server = await emulate(['--ttft', '30ms', '--itl', '10ms']);
});
afterAll(async () => {
  await server?.stop();
  for (const s of extra) {
    s.closeAllConnections();
    s.close();
  }
  remove();
});

async function serve(handler: RequestListener): Promise<string> {
  const s = createServer(handler).listen(0, '127.0.0.1');
  extra.push(s);
  await new Promise((resolve) => s.once('listening', resolve));
  return `http://127.0.0.1:${(s.address() as AddressInfo).port}`;
}

/** One line that says what to do, and no stack. */
function expectOneLine(stderr: string, about: RegExp): void {
  const lines = stderr
    .trim()
    .split('\n')
    .filter((l) => !/^(Target|Load|Contract) {2}/.test(l));
  expect(lines.at(-1)).toMatch(about);
  expect(stderr).not.toMatch(/^\s+at .*\.js:\d+/m);
}

describe('bench against a server', () => {
  it('measures, keeps a run folder, and report gives the same figures again', async () => {
    const done = await run(['bench', server.url, ...LOAD, ...SLO, '--out', dir, '--json']);
    expect([0, 3]).toContain(done.code);
    const report = JSON.parse(done.stdout);
    const { offered, good, window_s, excluded, ...rest } = report.cohort;
    expect(window_s).toBe(2);
    expect(excluded).toBe(0);
    expect(offered).toBeGreaterThan(15);
    expect(good + Object.values(rest as Record<string, number>).reduce((a, b) => a + b, 0)).toBe(offered);
    expect(good).toBe(offered);
    expect(report.attainment).toMatchObject({ value: 1, denominator: offered });
    expect(report.attainment.low).toBeLessThan(1);
    expect(report.goodput_rps).toBeCloseTo(offered / 2, 9);
    for (const name of [
      'ttft_ms',
      'ttft_dispatched_ms',
      'ttfa_ms',
      'tpot_ms',
      'chunk_gap_ms',
      'max_gap_ms',
      'latency_ms',
      'e2e_ms',
    ]) {
      expect(report.metrics[name], name).toMatchObject({ count: expect.any(Number), p50: expect.any(Number) });
    }
    expect(report.metrics.ttft_ms.p50).toBeGreaterThan(29);
    expect(report.metrics.tpot_ms.p50).toBeGreaterThan(8);
    expect(report.metrics.ttft_ms.offered.p99).toEqual(expect.any(Number));
    expect(report.tokens.source).toBe('usage');
    expect(report.client).toMatchObject({
      verdict: expect.any(String),
      send_lag_ms: expect.anything(),
      cpu: expect.any(Number),
    });

    const folder = folderOf(done);
    const again = await run(['report', folder, '--json']);
    expect(JSON.parse(again.stdout)).toEqual(report);
    expect(JSON.parse(readFileSync(join(folder, 'report.json'), 'utf8'))).toEqual(report);
    // Judged again under a contract nothing meets.
    const strict = await run(['report', folder, '--slo', 'ttft=1ms', '--json']);
    expect(JSON.parse(strict.stdout).cohort).toMatchObject({ offered, good: 0, late: offered });
    expect([1, 3]).toContain(strict.code);
  });

  it('prints a text report whose cohort adds up, without escape codes under NO_COLOR', async () => {
    const load = ['--rate', '20', '--warmup', '0.5s', '--output', '8', '--requests', '20'];
    const done = await run(['bench', server.url, ...load, ...SLO, '--out', dir]);
    expect(done.stdout).toMatch(/Cohort: 20 operations/);
    expect(done.stdout).not.toContain('\u001b');
    expect(done.stderr).not.toContain('\u001b');
  });

  it('says a missed contract by exit code 1', async () => {
    const done = await run(['bench', server.url, ...LOAD, '--slo', 'ttft=60s,latency=2ms', '--out', dir, '--json']);
    expect([1, 3]).toContain(done.code);
    expect(JSON.parse(done.stdout).cohort.good).toBe(0);
  });

  it('closed loop is labelled as such', async () => {
    const done = await run([
      'bench',
      server.url,
      '--concurrency',
      '4',
      '--duration',
      '1s',
      '--warmup',
      '0s',
      '--output',
      '8',
      ...SLO,
      '--out',
      dir,
      '--json',
    ]);
    const report = JSON.parse(done.stdout);
    expect(report.run.closed_loop).toBe(true);
    expect(report.cohort.good).toBe(report.cohort.offered);
  });

  it('measures the tool itself against null:', async () => {
    const done = await run(['bench', 'null:', ...LOAD, ...SLO, '--out', dir, '--json']);
    expect([0, 3]).toContain(done.code);
    expect(JSON.parse(done.stdout).cohort.good).toBeGreaterThan(15);
  });

  it('keeps no key anywhere', async () => {
    const key = 'sk-very-secret-0123456789';
    const done = await run(
      [
        'bench',
        `${server.url}?api_key=${key}`,
        ...LOAD,
        ...SLO,
        '--api-key-env',
        'MY_KEY',
        '--header',
        `x-other: ${key}`,
        '--out',
        dir,
        '--name',
        'secret',
      ],
      { MY_KEY: key },
    );
    expect(done.stdout + done.stderr).not.toContain(key);
    const folder = folderOf(done);
    for (const file of readdirSync(folder)) {
      expect(readFileSync(join(folder, file)).includes(key), file).toBe(false);
    }
  });
});

describe('bad input ends in one clear line', () => {
  const bad = async (args: string[], code: number, about: RegExp, env?: NodeJS.ProcessEnv): Promise<void> => {
    const done = await run(['bench', ...args, '--out', dir], env);
    expect(done.code, done.stderr).toBe(code);
    expectOneLine(done.stderr, about);
  };

  it('an unreachable host', () => bad(['http://127.0.0.1:1', ...LOAD], 2, /127\.0\.0\.1:1.*(refused|connect)/i));
  it('a wrong path', () => bad([`${server.url}/v2/nothing/chat/completions`, ...LOAD], 2, /404|path|dialect/i));
  it('an HTML page', async () => {
    const url = await serve((_, res) => {
      res.setHeader('content-type', 'text/html');
      res.end('<html><head><title>Welcome</title></head></html>');
    });
    await bad([`${url}/v1/chat/completions`, '--model', 'm', ...LOAD], 2, /HTML|page/);
  });
  it('a wrong key', async () => {
    const url = await serve((_, res) => {
      res.statusCode = 401;
      res.setHeader('content-type', 'application/json');
      res.end('{"error":{"message":"Incorrect API key provided"}}');
    });
    await bad([`${url}/v1/chat/completions`, ...LOAD], 2, /key/i);
  });
  it('a key variable that is not set', () =>
    bad([server.url, ...LOAD, '--api-key-env', 'NOT_SET_ANYWHERE'], 2, /NOT_SET_ANYWHERE/));
  it('an unknown flag', () => bad([server.url, '--rat', '4'], 2, /rat/));
  it('a rate of zero', () => bad([server.url, '--rate', '0'], 2, /--rate/));
  it('a duration without a unit', () => bad([server.url, '--duration', '30'], 2, /30s|unit/));
  it('two ends of a measurement', () =>
    bad([server.url, '--duration', '3s', '--requests', '5'], 2, /--duration and --requests/));
  it('an unknown limit', () => bad([server.url, '--slo', 'tfft=5s'], 2, /ttft/));
  it('an unwritable folder', async () => {
    const file = join(dir, 'a-file');
    writeFileSync(file, '');
    const done = await run(['bench', server.url, ...LOAD, '--out', join(file, 'runs')]);
    expect(done.code).toBe(2);
    expectOneLine(done.stderr, /a-file/);
  });
  it('a large plan off loopback, unasked', () =>
    bad(
      ['http://192.0.2.1:8000/v1/chat/completions', '--model', 'm', '--rate', '100', '--duration', '100s'],
      2,
      /192\.0\.2\.1|--yes/,
    ));

  it('a whole JSON answer instead of a stream is late, since nothing inside it can be timed', async () => {
    const url = await serve((_, res) => {
      res.setHeader('content-type', 'application/json');
      res.end(
        JSON.stringify({
          id: 'x',
          object: 'chat.completion',
          created: 1,
          model: 'm',
          choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }],
          usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 },
        }),
      );
    });
    const done = await run([
      'bench',
      `${url}/v1/chat/completions`,
      '--model',
      'm',
      ...LOAD,
      ...SLO,
      '--out',
      dir,
      '--json',
    ]);
    const report = JSON.parse(done.stdout);
    expect(report.cohort.late).toBe(report.cohort.offered);
    expect(report.unmeasurable.ttft).toBe(report.cohort.offered);
  });

  it('report on what is no run folder', async () => {
    const done = await run(['report', join(dir, 'nowhere')]);
    expect(done.code).toBe(2);
    expectOneLine(done.stderr, /run/);
  });
  it('report on a corrupt run folder', async () => {
    const done = await run(['bench', 'null:', ...LOAD, ...SLO, '--out', dir, '--name', 'corrupt']);
    const folder = folderOf(done);
    writeFileSync(join(folder, 'run.json'), '{"schema": "goodput.run/1", ');
    const again = await run(['report', folder]);
    expect(again.code).toBe(2);
    expectOneLine(again.stderr, /run\.json/);
  });
});

describe('a run that ends early', () => {
  const LONG = ['--rate', '20', '--duration', '60s', '--warmup', '0s', '--output', '200', '--input', '8', ...SLO];

  it('Ctrl-C once: reports what was offered, seen to its end', async () => {
    const bench = start(['bench', server.url, ...LONG, '--out', dir, '--json']);
    await bench.said(/measuring .*offered [1-9]\d/);
    bench.child.kill('SIGINT');
    const done = await bench.done;
    const report = JSON.parse(done.stdout);
    expect(report.cohort.undecided).toBe(0);
    expect(report.cohort.good).toBe(report.cohort.offered);
    expect(report.run.cut).toMatch(/early/);
  });

  it('Ctrl-C twice: ends now, what is open is undecided', async () => {
    const bench = start(['bench', server.url, ...LONG, '--out', dir, '--json']);
    await bench.said(/measuring .*offered [1-9]\d/);
    bench.child.kill('SIGINT');
    await bench.said(/Stopping/);
    bench.child.kill('SIGINT');
    const done = await bench.done;
    const report = JSON.parse(done.stdout);
    expect(report.cohort.undecided).toBeGreaterThan(0);
    expect(report.cohort.good + report.cohort.undecided).toBe(report.cohort.offered);
  });

  it('kill -9: the folder still reports, marked cut, and open operations are undecided', async () => {
    const bench = start(['bench', server.url, ...LONG, '--out', dir, '--name', 'killed']);
    const m = await bench.said(/measuring .*offered ([1-9]\d)/);
    bench.child.kill('SIGKILL');
    await bench.done;
    const folder = join(dir, readdirSync(dir).find((f) => f.endsWith('-killed')) as string);
    const done = await run(['report', folder, '--json']);
    const report = JSON.parse(done.stdout);
    expect(report.run.cut).toMatch(/cut off/);
    expect(report.cohort.undecided).toBeGreaterThan(0);
    // How much is lost is the store's own test; here, that what came seconds before the end is there.
    expect(report.cohort.offered).toBeGreaterThan(Number(m[1]) / 4);
  });
});
