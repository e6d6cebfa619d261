/** What a recorder makes of a stream, and how attempts fold into one operation. */
import { describe, expect, test } from 'vitest';
import {
  contractOf,
  type Ending,
  type Finish,
  foldAttempts,
  judgeRecord,
  measure,
  type OutputPart,
  Recorder,
  type RequestRecord,
  type RequestSpec,
  type StreamEvent,
} from './index.ts';

const spec = (more: Partial<RequestSpec> = {}): RequestSpec => ({
  operation: 7,
  attempt: 0,
  class: 'default',
  inputTokens: 10,
  outputTokens: 4,
  choices: 1,
  stream: true,
  ignoreEos: false,
  ...more,
});
const text = (tokens?: number, choice = 0): OutputPart => ({
  choice,
  kind: 'text',
  ...(tokens !== undefined && { tokens }),
});
const finish = (reason: string, choice = 0): Finish => ({ choice, reason });
const out = (...outputs: OutputPart[]): StreamEvent => ({ outputs });
const ROLE: StreamEvent = { outputs: [] };
const STOP: StreamEvent = { outputs: [], finishes: [finish('stop')] };
const CLOSED: Ending = { kind: 'closed' };

/** Plays events to a recorder; the connection and the request's way out take no time. */
function play(
  events: readonly (readonly [at: number, event: StreamEvent])[],
  end: readonly [at: number, ending: Ending] = [(events.at(-1)?.[0] ?? 0) + 1, CLOSED],
  more: Partial<RequestSpec> = {},
  scheduled = 0,
): RequestRecord {
  const r = new Recorder(spec(more), scheduled);
  r.dispatched(scheduled);
  r.connected(scheduled, { reused: false });
  r.sent(scheduled);
  r.headers(scheduled, 200);
  for (const [at, event] of events) r.event(at, event, false);
  r.ended(end[0], end[1]);
  return r.record();
}

describe('pitfalls of other tools', () => {
  test('role chunk as first token: the clock stops at output, not at framing', () => {
    const r = play([
      [5, ROLE],
      [100, out(text(1))],
      [110, out(text(1))],
      [111, STOP],
    ]);
    expect(r.stamps).toMatchObject({ firstEvent: 5, firstOutput: 100, lastOutput: 110, ended: 112 });
    expect(measure(r)).toMatchObject({ ttft: 100, tpot: 10 });
  });
  test('a trailing chunk with the finish and usage alone is not the last token', () => {
    const usage: StreamEvent = { outputs: [], usage: { output: 2 } };
    const r = play([
      [100, out(text())],
      [110, out(text())],
      [111, STOP],
      [300, usage],
    ]);
    expect(measure(r)).toMatchObject({ latency: 110, e2e: 301, tpot: 10, exactness: 'inferred' });
  });
  test('a truncated stream counts as success: a clean end without a finish is truncated', () => {
    expect(play([[100, out(text(1))]])).toMatchObject({ outcome: 'truncated', reason: 'no-finish' });
    expect(play([[100, ROLE]])).toMatchObject({ outcome: 'truncated' });
  });
  test('an error inside a 200 stream counts as success', () => {
    const error: StreamEvent = { outputs: [], error: { message: 'CUDA error' } };
    expect(
      play([
        [100, out(text(1))],
        [120, error],
        [121, STOP],
      ]),
    ).toMatchObject({ outcome: 'failed', reason: 'stream-error' });
  });
  test('a full queue told inside a 200 stream is an empty success', () => {
    const full: StreamEvent = { outputs: [], error: { message: 'The request queue is full.', code: 503 } };
    expect(play([[5, full]])).toMatchObject({ outcome: 'rejected', reason: 'stream-error-503' });
    const words: StreamEvent = { outputs: [], error: { message: 'queue is full' } };
    expect(play([[5, words]]).outcome).toBe('rejected');
    expect(
      play([
        [5, out(text(1))],
        [6, words],
      ]).outcome,
    ).toBe('failed');
  });
  test('an abort of the engine ends with a finish reason and [DONE]', () => {
    const r = play([
      [5, out(text(1))],
      [6, { outputs: [], finishes: [finish('abort')] }],
    ]);
    expect(r).toMatchObject({ outcome: 'failed', reason: 'engine-abort' });
  });
  test('an aborted socket after a finish is still a broken response', () => {
    const reset: Ending = { kind: 'failed', reason: 'reset', detail: 'ECONNRESET' };
    expect(play([[5, out(text(1))]], [6, reset])).toMatchObject({ outcome: 'failed', reason: 'reset' });
  });
  test('cumulative usage is replaced, never added', () => {
    const usage = (output: number): StreamEvent => ({ outputs: [], usage: { output } });
    expect(
      play([
        [1, usage(1)],
        [2, usage(5)],
        [3, { ...STOP, usage: { input: 9 } }],
      ]).usage,
    ).toEqual({ output: 5, input: 9 });
  });
});

describe('outcomes', () => {
  test('HTTP refusals are rejected, other statuses failed', () => {
    const status = (s: number) => play([], [5, { kind: 'http-error', status: s, detail: 'x' }]);
    expect([429, 503, 529].map((s) => status(s).outcome)).toEqual(['rejected', 'rejected', 'rejected']);
    expect([400, 401, 404, 500, 502].map((s) => status(s).outcome)).toEqual(Array(5).fill('failed'));
  });
  test('several choices: one without a finish is truncated', () => {
    const events: [number, StreamEvent][] = [
      [5, out(text(1, 0))],
      [6, out(text(1, 1))],
      [7, { outputs: [], finishes: [finish('stop', 0)] }],
    ];
    expect(play(events, undefined, { choices: 2 })).toMatchObject({ outcome: 'truncated' });
    events.push([8, { outputs: [], finishes: [finish('length', 1)] }]);
    expect(play(events, undefined, { choices: 2 })).toMatchObject({
      outcome: 'completed',
      finish: 'length',
      finishReason: 'stop|length',
    });
  });
  test('a whole body is complete but not streamed', () => {
    const r = play([[400, { ...STOP, outputs: [text()], whole: true, usage: { output: 4 } }]]);
    expect(r).toMatchObject({ outcome: 'completed', streamed: false });
    expect(measure(r).absent.ttft).toBe('not-streamed');
  });
  test('a dialect that marks no end says so', () => {
    expect(
      play([
        [5, out(text(1))],
        [6, { outputs: [], impliedEnd: true }],
      ]),
    ).toMatchObject({ outcome: 'completed', impliedEnd: true });
  });
  test('what the client gives up on: the phase, and an end only where there was one', () => {
    const r = new Recorder(spec(), 10);
    r.giveUp(10, 'unsent', 'client-limit');
    expect(r.record()).toMatchObject({ outcome: 'unsent', attempts: 0, phase: 'unsent' });
    const open = new Recorder(spec(), 10);
    open.dispatched(11);
    open.giveUp(500, 'undecided', 'stopped');
    expect(open.record().stamps.ended).toBeUndefined();
    const late = new Recorder(spec(), 10);
    late.dispatched(11);
    late.sent(12);
    late.event(20, out(text(1)), false);
    late.giveUp(30_010, 'timed-out', 'deadline');
    expect(late.record()).toMatchObject({ outcome: 'timed-out', phase: 'streaming', stamps: { ended: 30_010 } });
  });
  test('stamps out of order are a defect, not data', () => {
    const r = new Recorder(spec(), 10);
    expect(() => r.dispatched(9)).toThrow(/comes before/);
    expect(() => r.event(Number.NaN, ROLE, false)).toThrow(/comes before/);
  });
  test('hostile server text is cleaned', () => {
    const r = play([], [5, { kind: 'http-error', status: 500, detail: '\u001b[2Jgone\nnext' }]);
    expect(r.detail).toBe('·[2Jgone next');
  });
});

describe('attempts', () => {
  const reset: Ending = { kind: 'failed', reason: 'reset', detail: '' };
  test('a retry before any output: TTFT runs from the first attempt', () => {
    const first = play([], [50, reset]);
    const second = play(
      [
        [100, out(text(1))],
        [110, out(text(1))],
        [111, STOP],
      ],
      undefined,
      { attempt: 1 },
      60,
    );
    const folded = foldAttempts([second, first]);
    expect(folded).toMatchObject({ outcome: 'completed', attempts: 2, operation: 7 });
    expect(measure(folded)).toMatchObject({ ttft: 100, ttftDispatched: 100, tpot: 10, e2e: 112 });
  });
  test('a retry in mid-stream: output already shown keeps its TTFT, the stall enters the gaps', () => {
    const first = play(
      [
        [20, out(text(1))],
        [30, out(text(1))],
      ],
      [40, reset],
    );
    const second = play(
      [
        [500, out(text(1))],
        [510, out(text(1))],
        [511, STOP],
      ],
      undefined,
      { attempt: 1 },
      100,
    );
    const m = measure(foldAttempts([first, second]));
    expect(m).toMatchObject({ ttft: 20, gap: 470, n: 4 });
    expect(m.tpot).toBeCloseTo(490 / 3, 12);
  });
  test("one attempt's usage does not count another's tokens", () => {
    const first = play([[20, out(text())]], [40, reset]);
    const done: StreamEvent = { ...STOP, usage: { output: 1 } };
    const second = play(
      [
        [500, out(text())],
        [501, done],
      ],
      undefined,
      { attempt: 1 },
      100,
    );
    expect(measure(foldAttempts([first, second])).absent.tpot).toBe('unknown-tokens');
  });
  test('however many attempts succeed, it is one operation; a losing hedge is load', () => {
    const slow = {
      ...play([
        [900, out(text(1))],
        [901, STOP],
      ]),
      lostHedge: true,
    };
    const fast = play(
      [
        [300, out(text(1))],
        [301, STOP],
      ],
      undefined,
      { attempt: 1 },
      200,
    );
    const folded = foldAttempts([slow, fast]);
    expect(folded).toMatchObject({ attempts: 2, lostHedge: false });
    expect(measure(folded)).toMatchObject({ ttft: 300, e2e: 302, chunks: 1 });
    expect(judgeRecord(folded, contractOf({ ttft: 500 })).verdict.class).toBe('good');
  });
  test('all attempts fail: the last one says how', () => {
    const folded = foldAttempts([
      play([], [5, reset]),
      play([], [20, { kind: 'http-error', status: 503, detail: '' }], { attempt: 1 }, 10),
    ]);
    expect(folded).toMatchObject({ outcome: 'rejected', attempts: 2, reason: 'http-503' });
  });
  test('attempts of two operations are not one', () => {
    expect(() => foldAttempts([play([[1, STOP]]), play([[1, STOP]], undefined, { operation: 8 })])).toThrow(
      /different operations/,
    );
    expect(() => foldAttempts([])).toThrow(/without attempts/);
  });
});
