import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { scriptedServed } from './engines.ts';
import {
  checkFaults,
  drawFaults,
  FAULT_NAMES,
  FAULTS,
  type FaultName,
  isDeciding,
  parseFault,
  strikeAfter,
} from './faults.ts';
import { type Emulator, serve } from './server.ts';
import { ask, chat } from './testing.ts';

describe('the reading of faults', () => {
  it('takes rates as shares and parameters with their units', () => {
    expect(parseFault('stall=0.05:2s')).toEqual({ kind: 'stall', rate: 0.05, param: 2000 });
    expect(parseFault('multi-token=10%:3')).toEqual({ kind: 'multi-token', rate: 0.1, param: 3 });
    expect(parseFault('buffer=1')).toEqual({ kind: 'buffer', rate: 1, param: 8192 });
    expect(parseFault('role-delay=1').kind).toBe('role-first');
  });
  it('names what is wrong', () => {
    expect(() => parseFault('rest=1')).toThrow("did you mean 'reset'?");
    expect(() => parseFault('reset=2')).toThrow('not a share between 0 and 1');
    expect(() => parseFault('reset')).toThrow('KIND=RATE');
    expect(() => parseFault('reset=1:3')).toThrow('takes no parameter');
    expect(() => parseFault('multi-token=1:0')).toThrow('whole number');
  });
  it('refuses deciding faults that add up to more than all requests', () => {
    expect(() => checkFaults([parseFault('reset=60%'), parseFault('abort=50%')])).toThrow('110.0 %');
    expect(() => checkFaults([parseFault('reset=1%'), parseFault('reset=1%')])).toThrow('twice');
    expect(checkFaults([parseFault('reset=60%'), parseFault('stall=50%')])).toHaveLength(2);
  });
});

describe('the draw', () => {
  const mix = FAULT_NAMES.map((kind) => ({ kind, rate: 0.05, param: 0 }));
  it('gives each fault its rate, and a request one deciding fault at most', () => {
    const counts = new Map<FaultName, number>();
    for (let i = 0; i < 20_000; i++) {
      const drawn = drawFaults(mix, 7, i);
      expect(drawn.names.filter(isDeciding).length).toBeLessThanOrEqual(1);
      for (const name of drawn.names) counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    // 1000 expected; the standard deviation is 31.
    for (const name of FAULT_NAMES) expect(Math.abs((counts.get(name) ?? 0) - 1000), name).toBeLessThan(155);
  });
  it('draws the same for the same seed and request, whatever was drawn before', () => {
    const late = drawFaults(mix, 7, 900);
    for (let i = 0; i < 900; i++) drawFaults(mix, 7, i);
    expect(drawFaults(mix, 7, 900)).toEqual(late);
  });
  it('does not move the draw of one fault when another that decides nothing is added', () => {
    const reset = [{ kind: 'reset' as const, rate: 0.3, param: 0 }];
    const both = [...reset, { kind: 'stall' as const, rate: 0.5, param: 10 }];
    for (let i = 0; i < 500; i++) expect(drawFaults(both, 1, i).deciding).toBe(drawFaults(reset, 1, i).deciding);
  });
  it('strikes after the first token and before the last', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        fc.integer({ min: 2, max: 500 }),
        (p, n) => {
          const at = strikeAfter(p, n);
          expect(at).toBeGreaterThanOrEqual(1);
          expect(at).toBeLessThan(n);
        },
      ),
    );
    expect(strikeAfter(0.9, 1)).toBe(0);
  });
});

describe('what a client makes of each fault', () => {
  let emulator: Emulator;
  beforeAll(async () => {
    emulator = await serve({
      model: { name: 'm', maxModelLen: 4096, answerTokens: 8 },
      engine: scriptedServed({ ttft: 50, itl: 10 }, 100),
    });
  });
  afterAll(() => emulator.close());
  const faulty = (fault: string, fields = {}) =>
    ask(emulator.url, {
      body: chat({ stream_options: { include_usage: true }, ...fields }),
      headers: { 'x-goodput-fault': fault },
    });

  for (const stream of [true, false]) {
    for (const n of [1, 2]) {
      it(`is the outcome its table names (${stream ? 'streamed' : 'whole'}, n=${n})`, async () => {
        for (const name of FAULT_NAMES.filter(isDeciding)) {
          const fields = stream ? { n } : { n, stream: false, stream_options: undefined };
          const { record } = await faulty(name, fields);
          const { outcome } = FAULTS[name] as { outcome?: string };
          expect(record.outcome, `${name}: ${record.reason} ${record.detail}`).toBe(outcome);
        }
      });
    }
  }

  it('holds for every length of answer, one token included', async () => {
    for (const name of ['early-eof', 'reset', 'error-in-stream', 'malformed', 'abort'] as const) {
      for (const max_tokens of [1, 2, 3]) {
        const { record } = await faulty(name, { max_tokens });
        expect(record.outcome, `${name} of ${max_tokens}`).toBe(FAULTS[name].outcome);
      }
    }
  });

  it('cuts a stream after output and before its end', async () => {
    for (const name of ['early-eof', 'reset', 'error-in-stream', 'abort'] as const) {
      const { record } = await faulty(name);
      expect(record.timeline.length, name).toBeGreaterThanOrEqual(1);
      expect(record.timeline.length, name).toBeLessThan(6);
    }
  });

  it('still says [DONE] after an error, and says why it refuses', async () => {
    const error = await faulty('error-in-stream');
    expect(error.text.endsWith('data: [DONE]\n\n')).toBe(true);
    const full = await faulty('queue-full-in-stream');
    expect(full.status).toBe(200);
    expect(full.record).toMatchObject({
      outcome: 'rejected',
      reason: 'stream-error-503',
      detail: 'The request queue is full.',
    });
    for (const [name, status] of [
      ['http-429', 429],
      ['http-503', 503],
    ] as const) {
      const refused = await faulty(name);
      expect([refused.status, refused.headers['retry-after']], name).toEqual([status, '1']);
    }
    const html = await faulty('html');
    expect([html.status, html.headers['content-type']]).toEqual([502, 'text/html']);
  });

  it('shows nothing, or one token, and counts the end token', async () => {
    const empty = await faulty('empty');
    expect(empty.record).toMatchObject({ outcome: 'completed', finishReason: 'stop', usage: { output: 1 } });
    expect(empty.record.timeline.length).toBe(0);
    const one = await faulty('one-token');
    expect(one.record).toMatchObject({ outcome: 'completed', finishReason: 'stop', usage: { output: 2 } });
    expect(one.record.timeline.length).toBe(1);
  });

  it('completes where only framing or timing is changed', async () => {
    const faults = [
      'role-first',
      'multi-token:4',
      'no-usage',
      'no-done',
      'stall:20ms',
      'buffer:0',
      'buffer:300',
      'slow-headers:20ms',
    ];
    for (const fault of [...faults, faults.join(',')]) {
      const { record, text } = await faulty(fault);
      expect(record, fault).toMatchObject({ outcome: 'completed', finishReason: 'length' });
      expect(text.includes('[DONE]'), fault).toBe(!fault.includes('no-done'));
      expect(record.usage?.output, fault).toBe(fault.includes('no-usage') ? undefined : 6);
    }
  });

  it('puts several tokens in a chunk', async () => {
    const { record } = await faulty('multi-token:4', {
      stream_options: { include_usage: true, continuous_usage_stats: true },
    });
    expect([...record.timeline.tokens]).toEqual([4, 2]);
  });

  it('stalls once, between tokens, for as long as asked', async () => {
    const { record } = await faulty('stall:80ms');
    const gaps = Array.from(record.timeline.at.slice(1), (t, i) => t - record.timeline.at[i]!);
    expect(Math.max(...gaps)).toBeGreaterThan(70);
    expect(gaps.filter((gap) => gap > 70)).toHaveLength(1);
  });

  it('holds everything back as a buffering proxy does', async () => {
    const { record } = await faulty('buffer:0', { max_tokens: 40 });
    expect(record.timeline.length).toBe(40);
    // All tokens came in one write: they can only be as far apart as the reads of it.
    expect(new Set(record.timeline.at).size).toBeLessThanOrEqual(3);
  });

  it('sends the role before there is a token only when asked', async () => {
    const { record } = await ask(emulator.url, {
      body: chat(),
      headers: { 'x-goodput-fault': 'role-first,stall:60ms' },
    });
    expect(record.stamps.firstOutput! - record.stamps.firstEvent!).toBeGreaterThan(0);
    const slow = await ask(emulator.url, { body: chat(), headers: { 'x-goodput-fault': 'slow-headers:60ms' } });
    expect(slow.record.stamps.headers! - slow.record.stamps.dispatched!).toBeGreaterThan(55);
  });

  it('counts what it did', () => {
    expect(emulator.faults().get('reset')).toBeGreaterThan(0);
    expect(emulator.metricsText()).toMatch(/goodput_emulator_faults_total\{fault="early-eof"\} \d+\.0/);
  });
});
