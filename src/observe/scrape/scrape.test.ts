import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { wallClock } from '../../core/clock.ts';
import { readScrapes, readSources, ScrapeWriter, scrapeOnce, scrapesIn, startScraper, targetOf } from './index.ts';

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'goodput-scrape-'));
  open.push(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

async function serve(listener: RequestListener): Promise<string> {
  const server: Server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  open.push(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const clock = () => wallClock({ now: () => performance.now(), setTimeout, clearTimeout, setImmediate, clearImmediate });

const metrics = (n: number, started = 1000, running = 1) =>
  `# TYPE vllm:time_to_first_token_seconds histogram\nvllm:time_to_first_token_seconds_bucket{le="0.1"} ${n}\n` +
  `vllm:time_to_first_token_seconds_bucket{le="1"} ${2 * n}\nvllm:time_to_first_token_seconds_bucket{le="+Inf"} ${2 * n}\n` +
  `vllm:time_to_first_token_seconds_sum ${n}\nvllm:num_requests_running ${running}\nprocess_start_time_seconds ${started}\n`;

const add = async (dir: string, ...bodies: readonly string[]) => {
  const writer = new ScrapeWriter(dir);
  for (const [i, body] of bodies.entries()) await writer.add({ target: 'a:8000', at: 10_000 + i * 1000, body });
  await writer.close();
};

describe('scrapes on disk', () => {
  it('are read back as the evidence of what lay between', async () => {
    const dir = folder();
    await add(dir, metrics(10, 1000, 2), metrics(15, 1000, 6), metrics(30, 1000, 4));
    const all = readScrapes(dir).replicas[0]!;
    expect(all).toMatchObject({ replica: 'a:8000', window: { start: 10_000, end: 12_000 }, reset: false });
    expect(all.durations.ttft).toMatchObject({ count: 40, sum: 20, histogram: { counts: [20, 40, 40] } });
    expect(all.gauges.running).toMatchObject({ last: 4, mean: 4, min: 2, max: 6, samples: 3 });
    expect(readScrapes(dir, 11_000).replicas[0]?.durations.ttft?.count).toBe(30);
    expect(readScrapes(dir, 10_000, 11_500).replicas[0]?.durations.ttft?.count).toBe(10);
    expect(() => readScrapes(dir, 50_000)).toThrow(/no scrape in it in that time/);
    expect(() => readScrapes(folder())).toThrow(/goodput scrape writes them/);
  });

  it('tell from the restart on where a process restarted', async () => {
    const dir = folder();
    await add(dir, metrics(10), metrics(20), metrics(3, 11.5), metrics(5, 11.5));
    const r = readScrapes(dir).replicas[0]!;
    expect(r).toMatchObject({ reset: true, window: { start: 11_500, end: 13_000 } });
    expect(r.durations.ttft).toMatchObject({ count: 10, sum: 5 });
    expect(r.notes.join()).toMatch(/restarted within the window/);
  });

  it('are plain gzip, survive a cut and damage, and go on in a new segment', async () => {
    const dir = folder();
    await add(dir, metrics(10), metrics(20));
    const first = join(dir, 'server-000001.prom.gz');
    expect(gunzipSync(readFileSync(first)).toString()).toMatch(
      /^# goodput scrape \{"at":10000,"target":"a:8000"\}\n# TYPE/,
    );
    await add(dir, metrics(30));
    expect(readdirSync(dir)).toEqual(['server-000001.prom.gz', 'server-000002.prom.gz']);
    truncateSync(first, readFileSync(first).length - 5);
    const { targets, errors } = scrapesIn(dir);
    expect(targets.get('a:8000')).toHaveLength(2);
    expect(errors).toEqual([expect.stringMatching(/^server-000001\.prom\.gz: .*what could be read is told/)]);
    appendFileSync(join(dir, 'server-000002.prom.gz'), 'garbage');
    writeFileSync(join(dir, 'server-000003.prom.gz'), 'no gzip at all');
    expect(readScrapes(dir).errors.join()).toMatch(/server-000001/);
    expect(readScrapes(dir).replicas).toHaveLength(1);
  });

  it('are bounded: the oldest segments go', async () => {
    const dir = folder();
    const writer = new ScrapeWriter(dir, { segmentBytes: 300, maxBytes: 1200 });
    for (let i = 0; i < 40; i++) await writer.add({ target: 'a', at: i, body: metrics(i) });
    await writer.close();
    expect(writer.removed).toBeGreaterThan(10);
    expect(readdirSync(dir).length).toBeLessThanOrEqual(5);
    expect(existsSync(join(dir, 'server-000001.prom.gz'))).toBe(false);
    expect(scrapesIn(dir).targets.get('a')?.at(-1)?.at).toBe(39);
  });

  it('thin out when there are very many, keeping the first and the last', async () => {
    const dir = folder();
    await add(dir, ...Array.from({ length: 600 }, (_, i) => metrics(i)));
    const [r] = readScrapes(dir).replicas;
    expect(r?.durations.ttft?.count).toBe(2 * 599);
    expect(r?.gauges.running?.samples).toBe(240);
  });
});

describe('a scraper', () => {
  it('scrapes each target at its own pace and once more at the end', async () => {
    let served = 0;
    const auth: (string | undefined)[] = [];
    const good = await serve((req, res) => {
      auth.push(req.headers.authorization);
      res.end(metrics(++served));
    });
    const dead = await serve((_, res) => void res.writeHead(503).end());
    const dir = folder();
    let seen = 0;
    let enough = (): void => {};
    const reached = new Promise<void>((resolve) => {
      enough = resolve;
    });
    const scraper = startScraper([targetOf(good), targetOf(`http://${dead}/x`)], new ScrapeWriter(dir), {
      clock: clock(),
      epochWall: 1e12,
      every: 5,
      timeout: 5000,
      token: 'secret-token',
      onScrape: ({ name }) => {
        if (name === good && ++seen === 3) enough();
      },
    });
    await reached;
    const before = served;
    await scraper.stop();
    expect(served).toBeGreaterThan(before);
    expect(auth[0]).toBe('Bearer secret-token');
    expect(scraper.counts[1]).toMatchObject({ target: `${dead}/x`, ok: 0, lastError: 'HTTP 503' });
    const evidence = readScrapes(dir);
    expect(evidence.replicas[0]?.durations.ttft?.count).toBe(2 * (served - 1));
    expect(evidence.errors.join()).toMatch(/\/x: \d+ of \d+ scrapes failed \(HTTP 503\)/);
    const text = readdirSync(dir).map((f) => gunzipSync(readFileSync(join(dir, f))).toString());
    expect(text.join()).not.toContain('secret-token');
  });

  it('bounds time and size, follows no redirect and says why', async () => {
    const host = await serve((req, res) => {
      if (req.url === '/slow') res.write('a 1\n');
      else if (req.url === '/far') res.writeHead(302, { location: '/metrics' }).end();
      else if (req.url === '/who') res.writeHead(401).end();
      else if (req.url === '/endless') {
        const more = (): boolean => res.write('x'.repeat(65_536)) && !res.destroyed;
        res.on('drain', more);
        more();
      } else res.end('a 1\n');
    });
    const at = (path: string) => scrapeOnce(targetOf(`${host}${path}`), { timeout: 400, maxBytes: 1_000_000 });
    expect(await at('')).toBe('a 1\n');
    await expect(at('/slow')).rejects.toThrow(/no complete answer within 0\.4 s/);
    await expect(at('/far')).rejects.toThrow(/HTTP 302; redirects are not followed/);
    await expect(at('/who')).rejects.toThrow(/GOODPUT_SCRAPE_TOKEN/);
    const endless = scrapeOnce(targetOf(`${host}/endless`), { timeout: 20_000, maxBytes: 1_000_000 });
    await expect(endless).rejects.toThrow(/larger than/);
    const gone = await serve((_, res) => void res.end());
    await open.pop()!();
    await expect(scrapeOnce(targetOf(gone), { timeout: 2000 })).rejects.toThrow('connection refused');
  });

  it('reads what a target is', () => {
    expect(targetOf('a:8000')).toEqual({ url: 'http://a:8000/metrics', name: 'a:8000' });
    expect(targetOf('https://a/prometheus/metrics#x')).toEqual({
      url: 'https://a/prometheus/metrics',
      name: 'a/prometheus/metrics',
    });
    expect(() => targetOf('http://user:pass@a')).toThrow(/no credentials/);
    expect(() => targetOf('file:///etc/passwd')).toThrow(/not scraped/);
    expect(() => targetOf('http://')).toThrow(/no URL/);
  });
});

describe('what merge is given', () => {
  const write = (dir: string, name: string, body: string): string => {
    writeFileSync(join(dir, name), body);
    return join(dir, name);
  };

  it('are files, pairs, folders and folders of pairs', async () => {
    const [one, two] = [folder(), folder()];
    const a0 = write(one, 'a.txt', metrics(10));
    const a1 = write(two, 'a.txt', metrics(14));
    write(one, 'b.txt', metrics(1));
    write(two, 'b.txt', metrics(2));
    const lengths = async (args: string[], isWindow = false) =>
      (await readSources(args, { isWindow })).sources.map((s) => s.length);
    expect(await lengths([a0, a1])).toEqual([1, 1]);
    expect(await lengths([`${a0}..${a1}`])).toEqual([2]);
    expect(await lengths([a0, a1], true)).toEqual([2]);
    expect(await lengths([one, two], true)).toEqual([2, 2]);
    expect(await lengths([one])).toEqual([1, 1]);
    const scrapes = folder();
    await add(scrapes, metrics(1), metrics(2), metrics(3));
    expect(await lengths([scrapes])).toEqual([3]);
    await expect(readSources([a0], { isWindow: true })).rejects.toThrow(/--window: .* 1 were given/);
    await expect(readSources([join(one, 'none.txt')], { isWindow: false })).rejects.toThrow(/there is no such file/);
    await expect(readSources([a0, two], { isWindow: true })).rejects.toThrow(/two files or two folders/);
  });

  it('that cannot be read are told, and the others are read', async () => {
    const dir = folder();
    write(dir, 'a.txt', '');
    write(dir, 'b.txt', '<html></html>');
    write(dir, 'c.txt', metrics(1));
    const { sources } = await readSources([dir], { isWindow: false });
    expect(sources.flatMap((s) => s.flatMap((x) => x.errors))).toEqual([
      expect.stringMatching(/a\.txt: it is empty/),
      expect.stringMatching(/^b\.txt:1: the body is HTML/),
    ]);
    expect(sources[2]?.[0]?.replicas).toHaveLength(1);
  });
});
