/** `measure` and `judge` by hand: DEFINITIONS' examples, its edges, and the pitfalls of other tools. */
import { describe, expect, test } from 'vitest';
import {
  type Contract,
  contractOf,
  EMPTY_TIMELINE,
  judgeRecord,
  measure,
  type OutputKind,
  type RequestRecord,
  streamedTokens,
  TimelineBuilder,
} from './index.ts';

type Chunk = readonly [
  at: number,
  tokens?: number | undefined,
  kind?: OutputKind | undefined,
  choice?: number | undefined,
];

/** A completed stream; its stamps follow from its chunks. */
function record(chunks: readonly Chunk[], more: Partial<RequestRecord> = {}): RequestRecord {
  const timeline = new TimelineBuilder();
  for (const [at, tokens, kind, choice] of chunks) timeline.push(at, tokens ?? -1, kind, choice);
  const answer = chunks.find(([, , kind]) => kind !== 'reasoning' && kind !== 'summary');
  const first = chunks[0]?.[0];
  const last = chunks.at(-1)?.[0];
  return {
    operation: 0,
    attempt: 0,
    attempts: 1,
    lostHedge: false,
    class: 'default',
    asked: { input: 0, output: 100, choices: 1, stream: true },
    timeline: chunks.length === 0 ? EMPTY_TIMELINE : timeline.finish(),
    streamed: true,
    unseenEndTokens: 0,
    outcome: 'completed',
    reason: '',
    detail: '',
    phase: 'done',
    finish: 'stop',
    impliedEnd: false,
    events: chunks.length,
    coalesced: 0,
    unclassified: 0,
    ...more,
    stamps: {
      scheduled: 0,
      dispatched: 0,
      ...(first !== undefined && { firstOutput: first }),
      ...(answer && { firstAnswer: answer[0] }),
      ...(last !== undefined && { lastOutput: last }),
      ended: last ?? 0,
      ...more.stamps,
    },
  };
}

const ones = (...at: number[]): Chunk[] => at.map((t) => [t, 1]);
const verdictOf = (r: RequestRecord, c: Contract) => judgeRecord(r, c).verdict;

describe("DEFINITIONS' worked example", () => {
  test('receipts at 100, 120, 320, 340', () => {
    expect(measure(record(ones(100, 120, 320, 340)))).toMatchObject({ ttft: 100, tpot: 80, gap: 200, latency: 340 });
  });
  test('one receipt', () => {
    const m = measure(record(ones(100)));
    expect(m).toMatchObject({ ttft: 100, latency: 100, absent: { tpot: 'one-token', gap: 'one-token' } });
    expect([m.tpot, m.gap]).toEqual([undefined, undefined]);
  });
  test('no receipt', () => {
    const m = measure(record([]));
    expect([m.ttft, m.ttfa, m.tpot, m.gap, m.latency, m.smoothness]).toEqual(Array(6).fill(undefined));
    expect(m.absent.ttft).toBe('no-output');
  });
});

describe('the boundary', () => {
  const r = record(ones(500, 520), {
    stamps: { scheduled: 100, dispatched: 400, firstOutput: 500, lastOutput: 520, ended: 530 },
  });
  test('scheduled counts the queue of the client, dispatched does not; both are always there', () => {
    expect(measure(r)).toMatchObject({ ttft: 400, e2e: 430, ttftDispatched: 100, e2eDispatched: 130, sendLag: 300 });
    expect(measure(r, { boundary: 'dispatched' })).toMatchObject({ ttft: 100, e2e: 130, ttftDispatched: 100 });
  });
  test('a limit of exactly 500 ms is met at 500 ms, whatever the epoch does to the floats', () => {
    const at = 1_234_567.891;
    const r = record([[at + 500, 1]], {
      stamps: { scheduled: at, firstOutput: at + 500, lastOutput: at + 500, ended: at + 500 },
    });
    expect(verdictOf(r, contractOf({ ttft: 500 })).class).toBe('good');
  });
});

describe('streamed tokens', () => {
  const chunks: Chunk[] = [[100], [110], [120], [130]];
  test('usage, less an end token that was counted and not shown', () => {
    expect(streamedTokens(record(chunks, { usage: { output: 5 }, unseenEndTokens: 1 }))).toMatchObject({
      n: 4,
      source: 'usage',
      exactness: 'inferred',
    });
  });
  test('usage, less reasoning that was hidden', () => {
    expect(streamedTokens(record(chunks, { usage: { output: 104, reasoning: 100 } })).n).toBe(4);
  });
  test('reasoning that was shown is not taken off', () => {
    const r = record([[100, undefined, 'reasoning'], [110]], { usage: { output: 20, reasoning: 15 } });
    expect(streamedTokens(r).n).toBe(20);
  });
  test('reasoning only summarised: the count, and TPOT, cover the answer alone', () => {
    const r = record([[100, undefined, 'summary'], [500], [510], [520]], { usage: { output: 53, reasoning: 50 } });
    expect(streamedTokens(r)).toMatchObject({ n: 3, span: 'answer' });
    expect(measure(r)).toMatchObject({ ttft: 100, ttfa: 500, tpot: 10 });
    expect(measure(record([[100, undefined, 'summary'], [500]], { usage: { output: 53 } })).absent.tpot).toBe(
      'unknown-tokens',
    );
  });
  test('counts a chunk outrank usage; usage outranks a tokenizer', () => {
    expect(
      streamedTokens(
        record(
          [
            [1, 2],
            [2, 3],
          ],
          { usage: { output: 99 } },
        ),
      ),
    ).toMatchObject({ n: 5, source: 'per-chunk' });
    expect(streamedTokens(record(chunks, { usage: { output: 9 }, tokenized: 7 }))).toMatchObject({
      n: 9,
      source: 'usage',
    });
    expect(streamedTokens(record(chunks, { tokenized: 7 }))).toMatchObject({ n: 7, source: 'tokenizer' });
    expect(streamedTokens(record(chunks)).n).toBeUndefined();
  });
});

describe('smoothness, by hand', () => {
  const of = (chunks: Chunk[], ttft: number, tpot: number) =>
    measure(record(chunks), { boundary: 'scheduled', smoothness: { ttft, tpot } }).smoothness;
  test('deadlines 100, 110, 120, 130: all met', () => {
    expect(of(ones(100, 110, 120, 130), 100, 10)).toBe(1);
  });
  test('early tokens bank time: the schedule runs from deadlines, not receipts', () => {
    // Deadlines 100, 110, 120, 130; receipts far ahead, then a stall to 130: still met.
    expect(of(ones(50, 60, 70, 130), 100, 10)).toBe(1);
  });
  test('a missed deadline restarts the schedule at the late receipt', () => {
    // 100 met; 110 missed at 150; then due at 160 (met at 160) and 170 (missed at 171).
    expect(of(ones(100, 150, 160, 171), 100, 10)).toBe(2 / 4);
  });
  test('a chunk of k tokens meets each deadline that lies at or after it', () => {
    // Due 100, 110, 120, 130: the chunk of three at 115 misses 110, restarts at 125 and 135, and meets both.
    expect(
      of(
        [
          [100, 1],
          [115, 3],
        ],
        100,
        10,
      ),
    ).toBe(3 / 4);
  });
  test('a late first token', () => {
    expect(of(ones(200, 205), 100, 10)).toBe(1 / 2);
  });
  test('unknown counts leave it undefined, and a contract that asks it unmet', () => {
    const r = record([[100], [110]]);
    expect(measure(r, { boundary: 'scheduled', smoothness: { ttft: 100, tpot: 10 } }).absent.smoothness).toBe(
      'unknown-tokens',
    );
    const c = contractOf({ ttft: 100, smoothness: 0.5 });
    expect(verdictOf(record(ones(100)), c)).toMatchObject({ class: 'late', unmeasurable: ['smoothness'] });
  });
  test('is a lower limit', () => {
    const c = contractOf({ ttft: 100, tpot: 100, smoothness: 0.5 });
    expect(verdictOf(record(ones(100, 200)), c).class).toBe('good');
    const strict = contractOf({ ttft: 100, tpot: 10, smoothness: 0.9 });
    expect(verdictOf(record(ones(100, 150)), strict).missed).toEqual(['tpot', 'smoothness']);
  });
});

describe('several choices', () => {
  const asked = { input: 0, output: 100, choices: 2, stream: true };
  const two: Chunk[] = [
    [100, 1, 'text', 0],
    [150, 1, 'text', 1],
    [120, 1, 'text', 0],
    [350, 1, 'text', 1],
    [140, 1, 'text', 0],
  ].sort((a, b) => (a[0] as number) - (b[0] as number)) as unknown as Chunk[];
  test('TTFT of the earliest, TPOT, max gap and last token of the worst', () => {
    const r = record(two, { asked });
    expect(measure(r)).toMatchObject({ ttft: 100, tpot: 200, gap: 200, latency: 350 });
  });
  test('usage is not divided: without counts a choice, TPOT is unknown', () => {
    const r = record(
      two.map(([at, , kind, choice]) => [at, undefined, kind, choice] as const),
      { asked, usage: { output: 5 } },
    );
    expect(measure(r)).toMatchObject({ gap: 200, absent: { tpot: 'unknown-tokens' } });
    expect(verdictOf(r, contractOf({ tpot: 1000 })).class).toBe('late');
  });
  test('gaps never run from one choice to another', () => {
    const r = record(
      [
        [100, 1, 'text', 0],
        [900, 1, 'text', 1],
      ],
      { asked },
    );
    expect(measure(r).gap).toBeUndefined();
  });
  test('valid only if all are: one empty choice makes the operation invalid', () => {
    const r = record(ones(100, 110), { asked });
    expect(verdictOf(r, contractOf({ ttft: 500 }))).toMatchObject({ class: 'invalid', invalid: 'a choice is empty' });
  });
  test('valid only if all are: one choice too short makes the operation invalid', () => {
    const r = record(
      [
        [100, 5, 'text', 0],
        [110, 1, 'text', 1],
      ],
      { asked },
    );
    const c = contractOf({ ttft: 500 }, { valid: { minTokens: 2, minShareOfAsked: 0, finish: ['stop'] } });
    expect(verdictOf(r, c)).toMatchObject({ class: 'invalid' });
  });
});

describe('edges of the verdict', () => {
  const c = contractOf({ ttft: 500, tpot: 50, gap: 100 });
  const withCases = (cases: Partial<Contract['cases']>): Contract => ({ ...c, cases: { ...c.cases, ...cases } });
  test('every limit missed is named', () => {
    expect(verdictOf(record(ones(600, 800)), c)).toMatchObject({ class: 'late', missed: ['ttft', 'tpot', 'gap'] });
  });
  test('completed after its deadline is timed out, however well streamed', () => {
    expect(
      verdictOf(
        record(ones(100), { stamps: { scheduled: 0, firstOutput: 100, lastOutput: 100, ended: 30_000.001 } }),
        c,
      ).class,
    ).toBe('timed-out');
  });
  test('empty and wrong finish are invalid; a length finish is valid unless the contract says not', () => {
    expect(verdictOf(record([]), c)).toMatchObject({ class: 'invalid', invalid: 'empty' });
    expect(verdictOf(record(ones(100), { finish: 'filtered', finishReason: 'content_filter' }), c).invalid).toBe(
      'finish content_filter',
    );
    expect(verdictOf(record(ones(100), { finish: 'length' }), c).class).toBe('good');
    const strict = { ...c, valid: { ...c.valid, finish: ['stop' as const] } };
    expect(verdictOf(record(ones(100), { finish: 'length' }), strict).class).toBe('invalid');
  });
  test('shorter than the contract asks', () => {
    const half = { ...c, valid: { ...c.valid, minShareOfAsked: 0.5 } };
    expect(
      verdictOf(
        record([
          [100, 25],
          [110, 24],
        ]),
        half,
      ),
    ).toMatchObject({ class: 'invalid', invalid: '49 of 100 tokens asked for' });
    expect(
      verdictOf(
        record([
          [100, 25],
          [110, 25],
        ]),
        half,
      ).class,
    ).toBe('good');
  });
  test('not streamed: unmeasurable by default, else skipped or excluded', () => {
    const whole = record([[400, 9]], { streamed: false });
    expect(measure(whole)).toMatchObject({ latency: 400, e2e: 400, absent: { ttft: 'not-streamed' } });
    expect(measure(whole).ttft).toBeUndefined();
    expect(verdictOf(whole, c)).toMatchObject({ class: 'late', unmeasurable: ['ttft', 'tpot', 'gap'] });
    expect(verdictOf(whole, withCases({ nonStreamed: 'skip' })).class).toBe('good');
    expect(verdictOf(whole, withCases({ nonStreamed: 'exclude' }))).toMatchObject({ excluded: true });
    expect(verdictOf(whole, contractOf({ e2e: 300 })).missed).toEqual(['e2e']);
    expect(verdictOf(whole, contractOf({ e2e: 400 })).class).toBe('good');
  });
  test('one receipt of several tokens: TPOT and gap cannot be measured', () => {
    expect(verdictOf(record([[100, 5]]), c)).toMatchObject({ class: 'late', unmeasurable: ['tpot', 'gap'] });
    expect(verdictOf(record([[100, 5]]), withCases({ unmeasurable: 'skip' })).class).toBe('good');
    expect(verdictOf(record([[100, 5]]), withCases({ unmeasurable: 'exclude' }))).toMatchObject({
      class: 'late',
      excluded: true,
    });
    const missed = verdictOf(record([[600, 5]]), withCases({ unmeasurable: 'exclude' }));
    expect(missed).toMatchObject({ class: 'late', excluded: false, missed: ['ttft'] });
  });
  test('cancelled: not good in a benchmark; in production judged on what was observed', () => {
    const cancelled = (at: number, chunks: Chunk[]) =>
      record(chunks, {
        outcome: 'cancelled',
        stamps: {
          scheduled: 0,
          ...(chunks[0] && { firstOutput: chunks[0][0], lastOutput: chunks.at(-1)?.[0] ?? 0 }),
          ended: at,
        },
      });
    const observed = withCases({ cancelled: 'observed' });
    expect(verdictOf(cancelled(200, []), c)).toMatchObject({ class: 'cancelled', excluded: false });
    expect(verdictOf(cancelled(200, []), observed)).toMatchObject({ class: 'cancelled', excluded: true });
    expect(verdictOf(cancelled(501, []), observed)).toMatchObject({ excluded: false, missed: ['ttft'] });
    expect(verdictOf(cancelled(400, ones(100, 300)), observed)).toMatchObject({
      excluded: false,
      missed: ['tpot', 'gap'],
    });
    expect(verdictOf(cancelled(200, ones(100, 120)), observed)).toMatchObject({ excluded: true, missed: [] });
    expect(verdictOf(cancelled(501, []), withCases({ cancelled: 'exclude' })).excluded).toBe(true);
  });
});

describe('pitfalls of other tools', () => {
  test('one token passing as 0: TPOT of n = 1 is undefined, and met only vacuously', () => {
    const c = contractOf({ tpot: 50 });
    expect(measure(record(ones(100))).tpot).toBeUndefined();
    expect(verdictOf(record(ones(100)), c)).toMatchObject({ class: 'good', vacuous: ['tpot'] });
    const strict = { ...c, cases: { ...c.cases, oneToken: 'late' as const } };
    expect(verdictOf(record(ones(100)), strict)).toMatchObject({ class: 'late', missed: ['tpot'] });
  });
  test('TPOT variants: neither over n, nor with TTFT inside, nor over chunks', () => {
    const r = record([
      [1000, 4],
      [1040, 4],
      [1080, 4],
    ]);
    const { tpot } = measure(r);
    expect(tpot).toBeCloseTo(80 / 11, 12);
    for (const wrong of [80 / 12, 1080 / 12, 1080 / 11, 80 / 2]) expect(tpot).not.toBeCloseTo(wrong, 3);
  });
  test('ITL counts chunks: four tokens a chunk are 10 ms a token, and no ITL', () => {
    const r = record([
      [100, 4],
      [140, 4],
      [180, 4],
      [220, 4],
    ]);
    const m = measure(r);
    expect(m.exactness).toBe('no');
    expect(m.tpot).toBeCloseTo(120 / 15, 12);
    expect(m.gap).toBe(40);
    expect(m.firstChunkShare).toBe(0.25);
  });
  test('missing usage: unknown, not 0.00, and a TPOT limit fails closed', () => {
    const r = record([[100], [140]]);
    expect(measure(r).tpot).toBeUndefined();
    expect(verdictOf(r, contractOf({ tpot: 50 }))).toMatchObject({ class: 'late', unmeasurable: ['tpot'] });
  });
  test('usage of zero is no count', () => {
    expect(measure(record([[100], [140]], { usage: { output: 0 } })).absent.tpot).toBe('unknown-tokens');
  });
  test('zero-token success with TTFT 0: it is invalid and has no TTFT', () => {
    const { metrics, verdict } = judgeRecord(record([]), contractOf({ ttft: 500 }));
    expect([metrics.ttft, verdict.class]).toEqual([undefined, 'invalid']);
  });
  test('reasoning ignored: it is output, and only TTFA waits for the answer', () => {
    const r = record([
      [100, 1, 'reasoning'],
      [150, 1, 'reasoning'],
      [5000, 1],
    ]);
    expect(measure(r)).toMatchObject({ ttft: 100, ttfa: 5000, gap: 4850 });
  });
  test('coordinated omission: the queue of the client is in TTFT', () => {
    const r = record(ones(1000), {
      stamps: { scheduled: 0, dispatched: 900, firstOutput: 1000, lastOutput: 1000, ended: 1000 },
    });
    expect(verdictOf(r, contractOf({ ttft: 500 })).class).toBe('late');
  });
  test('a trailing usage chunk is in E2E and not in last-token latency, nor in a gap', () => {
    const r = record(ones(100, 120), { stamps: { scheduled: 0, firstOutput: 100, lastOutput: 120, ended: 400 } });
    expect(measure(r)).toMatchObject({ latency: 120, e2e: 400, gap: 20 });
  });
  test('a whole answer split into chunks of one read is not a fast decode', () => {
    expect(measure(record(ones(1700, 1700, 1700))).absent.tpot).toBe('one-receipt');
  });
});
