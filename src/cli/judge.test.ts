import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { InputError } from '../base/errors.ts';
import type { Report } from '../report/index.ts';
import type { Cli } from './cli.ts';
import { runJudge } from './judge.ts';
import { joinGoodputValues } from './slo-flags.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'judge-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

type Flags = Parameters<typeof runJudge>[0];

/** Runs the command on lines, as it would on a file. */
async function judge(lines: readonly (object | string)[], flags: Partial<Flags> = {}) {
  const file = join(folder, 'records.ndjson');
  await writeFile(file, lines.map((l) => (typeof l === 'string' ? l : JSON.stringify(l))).join('\n'));
  return run(file, flags);
}

async function run(file: string, flags: Partial<Flags>, stdin?: AsyncIterable<string>) {
  const out: string[] = [];
  const err: string[] = [];
  let code = -1;
  const terminal = (to: string[]) => ({
    write: (s: string) => void to.push(s),
    line: (s = '') => void to.push(`${s}\n`),
    isTTY: false,
    color: false,
    columns: 100,
  });
  const cli = { stdout: terminal(out), stderr: terminal(err), env: {}, exit: (c: number) => void (code = c) };
  await runJudge.call(cli as unknown as Cli, { json: false, perRequest: false, ...flags }, file, stdin);
  return { out: out.join(''), err: err.join(''), code };
}

async function report(lines: readonly object[], flags: Partial<Flags> = {}): Promise<Report & { code: number }> {
  const { out, code } = await judge(lines, { json: true, ...flags });
  return { ...JSON.parse(out), code };
}

async function rows(lines: readonly object[], flags: Partial<Flags> = {}) {
  const { out } = await judge(lines, { perRequest: true, slo: ['ttft=500ms'], ...flags });
  return out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

const op = (scheduled: number, receipts: number[], more: object = {}) => ({
  scheduled_ms: scheduled,
  receipts_ms: receipts.map((r) => scheduled + r),
  tokens: receipts.length,
  outcome: 'completed',
  ...more,
});

describe("DEFINITIONS' worked examples", () => {
  test('receipts at 100, 120, 320, 340 ms', async () => {
    const [row] = await rows([op(0, [100, 120, 320, 340])]);
    expect(row).toMatchObject({
      ttft_ms: 100,
      gaps_ms: [20, 200, 20],
      tpot_ms: 80,
      max_gap_ms: 200,
      latency_ms: 340,
      e2e_ms: 340,
      verdict: 'good',
      missed: [],
    });
  });
  test('the same, whenever the operation starts', async () => {
    const [row] = await rows([op(1_700_000_000_123.456, [100, 120, 320, 340])]);
    expect(row).toMatchObject({ ttft_ms: 100, gaps_ms: [20, 200, 20], tpot_ms: 80, latency_ms: 340 });
  });
  test('one receipt at 100: TTFT 100, TPOT undefined, no gaps', async () => {
    const [row] = await rows([op(0, [100])]);
    expect(row).toMatchObject({ ttft_ms: 100, tpot_ms: null, gaps_ms: [], max_gap_ms: null, latency_ms: 100 });
  });
  test('no receipt: nothing is defined', async () => {
    const [row] = await rows([op(0, [])]);
    expect(row).toMatchObject({
      ttft_ms: null,
      ttfa_ms: null,
      tpot_ms: null,
      gaps_ms: [],
      max_gap_ms: null,
      latency_ms: null,
      e2e_ms: null,
      verdict: 'invalid',
    });
  });

  /** 10 miss TTFT alone, 10 others TPOT alone. */
  const hundred = Array.from({ length: 100 }, (_, i) => {
    const ttft = i % 10 === 3 ? 600 : 400;
    const gap = i % 10 === 7 ? 60 : 40;
    return op(i * 200, [ttft, ttft + gap, ttft + 2 * gap]);
  });
  const SLO = { slo: ['ttft=500ms,tpot=50ms'], window: '20s' };

  test('100 requests over 20 s, 90 meet each limit, the misses disjoint: 80 good, 4 requests/s, 80 %', async () => {
    const r = await report(hundred, SLO);
    expect(r.cohort).toEqual({
      offered: 100,
      good: 80,
      late: 20,
      invalid: 0,
      rejected: 0,
      failed: 0,
      truncated: 0,
      timed_out: 0,
      cancelled: 0,
      unsent: 0,
      undecided: 0,
      window_s: 20,
      excluded: 0,
    });
    expect(r.attainment).toMatchObject({ value: 0.8, denominator: 100, target: 0.9, met: false });
    expect(r.goodput_rps).toBe(4);
    expect(r.offered_rps).toBe(5);
    expect(r.misses).toEqual({ ttft: 10, tpot: 10 });
    expect(r.misses_alone).toEqual({ ttft: 10, tpot: 10 });
    expect(r.code).toBe(1);
  });
  test('its two p90s both pass, and the joint share does not', async () => {
    const r = await report(hundred, SLO);
    expect(r.metrics.ttft_ms?.p90).toBeLessThanOrEqual(500);
    expect(r.metrics.tpot_ms?.p90).toBeLessThanOrEqual(50);
    expect(r.attainment.value).toBe(0.8);
  });
  test('at a target of 80 % it is met: exit 0', async () => {
    expect((await report(hundred, { ...SLO, attainment: '80%' })).code).toBe(0);
  });
  test("vLLM's flag gives the same", async () => {
    const r = await report(hundred, { goodput: ['ttft:500,tpot:50'], window: '20s' });
    expect(r.goodput_rps).toBe(4);
  });
});

describe('the window', () => {
  test('without one it is span·N/(N−1), labelled', async () => {
    const r = await report([op(1000, [10]), op(2000, [10]), op(3000, [10])], { slo: ['ttft=1s'] });
    expect(r.window).toEqual({ start_ms: 1000, end_ms: 4000, seconds: 3, estimated: true });
    expect(r.goodput_rps).toBe(1);
    expect(r.marks).toContain('estimated-window');
  });
  test('of one record it is undefined, and so is every rate', async () => {
    const r = await report([op(1000, [10])], { slo: ['ttft=1s'] });
    expect(r.window.seconds).toBeNull();
    expect([r.goodput_rps, r.offered_rps, r.throughput_tps]).toEqual([null, null, null]);
    expect(r.cohort).toMatchObject({ good: 1, window_s: null });
    expect(r.attainment.value).toBe(1);
    expect(r.marks).toContain('no-window');
  });
  test('starts at the earliest arrival, wherever it stands; later operations are outside, and said so', async () => {
    const lines = [op(3000, [10]), op(1000, [10]), op(21_000, [10]), op(20_999, [10])];
    const r = await report(lines, { slo: ['ttft=1s'], window: '20s' });
    expect(r.window).toMatchObject({ start_ms: 1000, end_ms: 21_000 });
    expect(r.cohort.offered).toBe(3);
    expect(r.run.outside_window).toBe(1);
    expect(r.marks).toContain('outside-window');
  });
  test('may be placed', async () => {
    const r = await report([op(500, [10]), op(1500, [10])], { slo: ['ttft=1s'], window: '1s', windowStart: '1000' });
    expect(r.window.start_ms).toBe(1000);
    expect(r.cohort.offered).toBe(1);
  });
});

describe('input that is refused, naming line and value', () => {
  const good = op(0, [1]);
  test.each<[string, object | string, RegExp]>([
    ['negative', op(0, [1], { scheduled_ms: -1 }), /line 2: scheduled_ms is -1, and a stamp is not negative/],
    ['non-finite', '{"scheduled_ms":0,"receipts_ms":[1e999]}', /line 2: receipts_ms\[0\] is not finite/],
    ['NaN', '{"scheduled_ms":NaN,"receipts_ms":[]}', /line 2: holds NaN, which is no time/],
    ['decreasing', op(0, [100, 90]), /line 2: receipts_ms\[1\] is 90, before receipts_ms\[0\] at 100/],
    ['before scheduled', { scheduled_ms: 50, receipts_ms: [40] }, /receipts_ms\[0\] is 40, before scheduled_ms at 50/],
    ['dispatched early', op(50, [60], { dispatched_ms: 40 }), /dispatched_ms is 40, before scheduled_ms at 50/],
    ['before dispatched', op(0, [5], { dispatched_ms: 6 }), /receipts_ms\[0\] is 5, before dispatched_ms at 6/],
    ['ended early', op(0, [5, 9], { ended_ms: 8 }), /ended_ms is 8, before the last receipt at 9/],
    [
      'ended before its start',
      { scheduled_ms: 5, outcome: 'failed', ended_ms: 4 },
      /ended_ms is 4, before scheduled_ms/,
    ],
    [
      'answer outside',
      op(0, [5, 9], { first_answer_ms: 10 }),
      /first_answer_ms is 10, outside the receipts from 5 to 9/,
    ],
    ['answer of nothing', op(0, [], { first_answer_ms: 10 }), /first_answer_ms is 10, yet nothing was received/],
    ['a text', op(0, [5], { ended_ms: '9' }), /ended_ms is "9", not a number of milliseconds/],
    ['a hole', '{"scheduled_ms":0,"receipts_ms":[1,null]}', /receipts_ms\[1\] is null/],
    ['no schedule', { receipts_ms: [1] }, /line 2: scheduled_ms is missing/],
    ['no receipts', { scheduled_ms: 1 }, /line 2: receipts_ms is missing/],
    ['half tokens', op(0, [1], { tokens: 1.5 }), /tokens is 1.5, not a count/],
    ['negative tokens', op(0, [1], { tokens: -1 }), /tokens is -1, not a count/],
    ['counts that do not fit', op(0, [1, 2], { receipt_tokens: [1] }), /1 counts for 2 receipts/],
    ['an unknown outcome', op(0, [1], { outcome: 'canceled' }), /"canceled" is not one \(did you mean 'cancelled'\?\)/],
    ['a verdict', op(0, [1], { outcome: 'good' }), /'good' is the contract's to say; write 'completed'/],
    ['several receipts of a whole answer', op(0, [1, 2], { streamed: false }), /a whole answer has one/],
    ['seconds since the epoch in ns', op(1.7e18, [1]), /too large for milliseconds/],
    ['an array', '[{}]', /line 2: an array; write one object a line/],
    ['prose', 'hello \u001b[31m', /line 2: not JSON: 'hello ·\[31m'/],
  ])('%s', async (_, line, message) => {
    const failure = await judge([good, line], { slo: ['ttft=1s'], perRequest: true }).catch((e: unknown) => e);
    expect(failure).toBeInstanceOf(InputError);
    expect((failure as Error).message).toMatch(message);
  });

  test('a file that is not there, an empty one, and contracts that contradict', async () => {
    await expect(run(join(folder, 'none'), { slo: ['ttft=1s'] })).rejects.toThrow(/cannot read the records: ENOENT/);
    await expect(judge([], { slo: ['ttft=1s'] })).rejects.toThrow(/holds no records/);
    await expect(judge([good], { slo: ['ttft=1s'], preset: 'chat' })).rejects.toThrow(/--slo and --preset/);
    await expect(judge([good], { slo: ['ttft=1s'], windowStart: '1s' })).rejects.toThrow(/give --window too/);
  });

  test('an unknown key is not silent', async () => {
    const { err, out } = await judge([op(0, [1], { dispached_ms: 0 }), op(9, [1])], { json: true, slo: ['ttft=1s'] });
    expect(err).toBe("goodput: line 1: unknown key 'dispached_ms' is ignored (did you mean 'dispatched_ms'?)\n");
    expect(JSON.parse(out).marks).toContain('remark');
  });
});

describe('what lines may say', () => {
  test('every outcome lands in its place of the ledger, and the ledger adds up', async () => {
    const outcomes = ['invalid', 'rejected', 'failed', 'truncated', 'timed-out', 'cancelled', 'unsent', 'undecided'];
    const lines = outcomes.map((outcome, i) => ({ scheduled_ms: i * 10, receipts_ms: [], outcome }));
    const { cohort, attainment } = await report([op(0, [1]), op(100, [900]), ...lines], { slo: ['ttft=500ms'] });
    const { offered, window_s: _, excluded: __, ...ledger } = cohort;
    expect(Object.values(ledger)).toEqual(Array(10).fill(1));
    expect(offered).toBe(10);
    expect(attainment).toMatchObject({ value: 0.1, undecided: [0.1, 0.2], met: false });
  });
  test('standard input, with CRLF, a byte order mark, blank lines, cut anywhere', async () => {
    const text = `\uFEFF${JSON.stringify(op(0, [100]))}\r\n\r\n${JSON.stringify(op(9, [100]))}`;
    const chunks = (async function* () {
      for (let i = 0; i < text.length; i += 7) yield text.slice(i, i + 7);
    })();
    const { out } = await run('-', { perRequest: true, slo: ['ttft=1s'] }, chunks);
    expect(
      out
        .trim()
        .split('\n')
        .map((l) => JSON.parse(l).line),
    ).toEqual([1, 3]);
  });
  test('reasoning before the answer: TTFT to the first output, TTFA to the answer', async () => {
    const [row] = await rows([op(0, [100, 200, 300], { first_answer_ms: 300 })]);
    expect(row).toMatchObject({ ttft_ms: 100, ttfa_ms: 300 });
    const [none] = await rows([op(0, [100, 200, 300], { first_answer_ms: null })], { slo: ['ttfa=1s'] });
    expect(none).toMatchObject({ ttfa_ms: null, verdict: 'late', missed: ['ttfa'] });
  });
  test('counts a receipt: chunks of four tokens are no inter-token latencies', async () => {
    const r = await report([op(0, [100, 140], { receipt_tokens: [4, 4], tokens: 8 }), op(9, [1])], {
      slo: ['ttft=1s'],
    });
    expect(r.metrics.tpot_ms?.mean).toBeCloseTo(40 / 7, 10);
    expect(r.metrics.itl_ms).toBeNull();
    expect(r.tokens.sources).toEqual({ 'per-chunk': 1, usage: 1 });
    expect(r.tokens.source).toBe('mixed');
  });
  test('tokens unknown: no TPOT, and a contract that limits it counts the operation late', async () => {
    const [row] = await rows([op(0, [100, 140], { tokens: null })], { slo: ['tpot=50ms'] });
    expect(row).toMatchObject({ tpot_ms: null, verdict: 'late', missed: ['tpot'], unmeasurable: ['tpot'] });
  });
  test('from dispatch beside from the schedule', async () => {
    const r = await report([op(0, [500], { dispatched_ms: 400 }), op(900, [500], { dispatched_ms: 1300 })], {
      slo: ['ttft=1s'],
    });
    expect(r.metrics.ttft_ms?.p50).toBe(500);
    expect(r.metrics.ttft_dispatched_ms?.p50).toBe(100);
    expect(r.client).toMatchObject({ verdict: 'client-bound', send_lag_ms: { p50: 400, p99: 400, max: 400 } });
    expect(r.marks[0]).toBe('client-bound');
  });
  test('without dispatch stamps nothing is claimed of the client', async () => {
    const r = await report([op(0, [1]), op(9, [1])], { slo: ['ttft=1s'] });
    expect(r.client).toMatchObject({ verdict: 'unknown', send_lag_ms: null, coalesced: null, event_loop_ms: null });
    expect(r.metrics.ttft_dispatched_ms).toBeNull();
  });
});

test('a contract from a file, changed by a flag', async () => {
  const file = join(folder, 'c.yaml');
  await writeFile(file, 'limits:\n  ttft: 500ms\nattainment: 50%\n');
  const lines = [op(0, [100]), op(10, [600])];
  expect((await report(lines, { contract: file })).code).toBe(0);
  expect((await report(lines, { contract: file, attainment: '60%' })).code).toBe(1);
});

test("vLLM's several values behind one flag are joined before parsing", () => {
  expect(joinGoodputValues(['judge', 'f', '--goodput', 'ttft:500', 'tpot:50', '--json'])).toEqual([
    'judge',
    'f',
    '--goodput',
    'ttft:500,tpot:50',
    '--json',
  ]);
  expect(joinGoodputValues(['--goodput', 'ttft:500', 'file.ndjson', '--', '--goodput', 'a:1', 'b:1'])).toEqual([
    '--goodput',
    'ttft:500',
    'file.ndjson',
    '--',
    '--goodput',
    'a:1',
    'b:1',
  ]);
});
