import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InputError } from '../base/errors.ts';
import { attribute, shapley } from './attribution.ts';
import { CAUSES } from './causes/index.ts';
import { changeTest } from './change.ts';
import { readChanges, topicOf } from './changes.ts';
import { diagnose } from './diagnose.ts';
import { type FactId, statesOf } from './fact.ts';
import { diagnosisObject } from './json.ts';
import { measuresOf } from './measures.ts';
import { together } from './score.ts';
import type { RequestRow, Side } from './side.ts';
import { jointStalls, regularity } from './stalls.ts';
import { readTold } from './told.ts';

const told = (figures: Record<string, number>, name = 'x'): Side => ({
  name,
  told: readTold({ figures }, name),
  notes: [],
});

/** A noise that is the same each time. */
const wave = (i: number): number => Math.sin(i * 12.9898) * 0.5;

function rows(n: number, of: (i: number) => Partial<RequestRow>): Side {
  return {
    name: 'rows',
    notes: [],
    requests: {
      rows: Array.from({ length: n }, (_, i) => ({
        at: i * 100,
        class: 'c',
        ok: true,
        attempts: 1,
        chunks: 10,
        bunched: 0,
        ...of(i),
      })),
      stalls: [],
      span: n / 10,
      dropped: 0,
    },
  };
}

describe('the split of a product', () => {
  it('adds up exactly, over all orders alike', () => {
    const x = fc.double({ min: 0.01, max: 100, noNaN: true });
    fc.assert(
      fc.property(fc.tuple(x, x, x), fc.tuple(x, x, x), (a, b) => {
        const parts = shapley(a, b);
        const change = b[0] * b[1] * b[2] - a[0] * a[1] * a[2];
        expect(parts.reduce((s, p) => s + p, 0)).toBeCloseTo(change, 6);
        // Swapped sides: the same split, with the other sign.
        shapley(b, a).forEach((p, i) => {
          expect(p).toBeCloseTo(-(parts[i] as number), 6);
        });
      }),
    );
  });

  it('gives a factor that did not change nothing', () => {
    const [prompt, share, rate] = shapley([2, 3, 4], [2, 6, 4]);
    expect([prompt, rate]).toEqual([0, 0]);
    expect(share).toBeCloseTo(24, 9);
  });
});

describe('attribution', () => {
  const side = (queue: number, prefill: number): Side =>
    rows(400, (i) => {
      const q = queue * (1 + wave(i));
      const p = prefill * (1 + wave(i + 7));
      return { ttft: q + p + 5 + 8, client: 1, connect: 2, queue: q, prefill: p, serverTtft: q + p + 5, prompt: 1000 };
    });

  it('sums to the change of the mean, the tail too', () => {
    const [a, b] = [side(10, 100), side(200, 150)];
    const { total, parts, residual, tail } = attribute(a, b, measuresOf(a), measuresOf(b));
    const sum = Object.values(parts).reduce((s, p) => s + p.value, 0) + (residual?.value ?? 0);
    expect(sum).toBeCloseTo(total?.value ?? 0, 6);
    expect(parts.queue?.value).toBeCloseTo(190, -1);
    expect(parts.prefill?.value).toBeCloseTo(50, -1);
    expect(parts.frontend?.value).toBeCloseTo(0, 6);
    expect(residual?.value).toBeCloseTo(0, 6);
    const tailSum = Object.values(tail?.parts ?? {}).reduce((s, p) => s + p, 0);
    expect(tailSum).toBeCloseTo(tail?.total ?? 0, 6);
  });

  it('leaves to the residual what is not told, and says so; histograms have no tail', () => {
    const a = told({ ttft: 300, queue: 10 });
    const b = told({ ttft: 1400, queue: 900 });
    const found = attribute(a, b, measuresOf(a), measuresOf(b));
    expect(found.parts.prefill).toBeUndefined();
    expect(found.residual?.value).toBeCloseTo(1100 - 890, 6);
    expect(found.tail).toBeUndefined();
    expect(found.notes.join(' ')).toMatch(/residual holds prefill.*tail is not attributed/);
  });
});

describe('whether there is a change', () => {
  it('asks more than the spread between runs', () => {
    const [a, b] = [measuresOf(told({ ttft: 300, tpot: 20 })), measuresOf(told({ ttft: 320, tpot: 20 }))];
    expect(changeTest(a, b)).toMatchObject({ worse: false, better: false });
    expect(changeTest(a, measuresOf(told({ ttft: 1400, tpot: 20 })))).toMatchObject({ worse: true, better: false });
    expect(changeTest(a, measuresOf(told({ ttft: 400, tpot: 20 })), 0.5).worse).toBe(false);
  });

  it('two sides with nothing in common are unknown', () => {
    expect(diagnose(told({ ttft: 300 }), told({ tpot: 20 })).verdict).toBe('unknown');
  });

  it('an improvement is asked the other way round', () => {
    const found = diagnose(
      told({ ttft: 5860, prompt: 9000, hit_rate: 0, computed: 9000 }),
      told({ ttft: 2550, prompt: 9000, hit_rate: 0.6, computed: 3600 }),
    );
    expect(found).toMatchObject({ reversed: true, regression: 'none' });
    expect(found.causes[0]?.cause.id).toBe('prefix-cache-loss');
    expect(found.attribution.total?.value).toBeLessThan(0);
  });
});

describe('facts', () => {
  it('states are probabilities, and move with the effect', () => {
    const x = fc.double({ min: -3, max: 3, noNaN: true });
    fc.assert(
      fc.property(x, fc.double({ min: 0, max: 2, noNaN: true }), (effect, se) => {
        const s = statesOf(effect, se, 0.1, 0.4);
        expect(s.reduce((a, p) => a + p, 0)).toBeCloseTo(1, 9);
        expect(Math.min(...s)).toBeGreaterThanOrEqual(0);
        if (effect > 0.8 && se < 0.05) expect(s[4]).toBeGreaterThan(0.99);
      }),
    );
  });

  it('two causes together are probabilities still', () => {
    for (const p of CAUSES) {
      for (const q of CAUSES) {
        for (const id of Object.keys(p.predicts) as FactId[]) {
          const [a, b] = [p.predicts[id], q.predicts[id]];
          if (a && b) expect(together(a, b).reduce((s, v) => s + v, 0)).toBeCloseTo(1, 6);
        }
      }
    }
  });
});

describe('the table of causes', () => {
  it('has whole rows: predictions that are probabilities, deciding facts among them, knob, price and source', () => {
    expect(new Set(CAUSES.map((c) => c.id)).size).toBe(CAUSES.length);
    expect(CAUSES.length).toBeGreaterThanOrEqual(28);
    for (const c of CAUSES) {
      for (const [id, s] of Object.entries(c.predicts)) {
        expect(
          s.reduce((a, p) => a + p, 0),
          `${c.id} ${id}`,
        ).toBeCloseTo(1, 6);
      }
      for (const id of c.deciding) expect(c.predicts[id], `${c.id} decides by ${id}`).toBeDefined();
      for (const text of [c.label, c.knob, c.price, c.source, c.contradictedBy]) expect(text.length).toBeGreaterThan(3);
    }
  });
});

describe('joint stalls', () => {
  const stream = (at: number): RequestRow => ({
    at,
    class: 'c',
    ok: true,
    attempts: 1,
    chunks: 100,
    bunched: 0,
    ttft: 10,
    latency: 20_000,
  });
  it('are of most streams at once; regular ones are told from random ones', () => {
    const streams = Array.from({ length: 5 }, (_, i) => stream(i));
    const every = (starts: readonly number[]) =>
      starts.flatMap((start) =>
        streams.map((_, i) => ({ start: start + i * 0.2, end: start + 200 + i * 0.1, released: 8 })),
      );
    const ticks = jointStalls(every(Array.from({ length: 12 }, (_, i) => 100 + 1500 * i)), streams);
    expect(ticks).toHaveLength(12);
    expect(ticks[0]).toMatchObject({ streams: 5, active: 5, released: 8 });
    expect(regularity(ticks)?.regular).toBeGreaterThan(0.95);
    expect(regularity(ticks)?.period).toBeCloseTo(1500, 0);
    const random = jointStalls(every([100, 400, 2500, 2900, 6000, 6350, 9000, 14_000]), streams);
    expect(regularity(random)?.regular).toBeLessThan(0.6);
    // One stream alone is no stall of the process.
    expect(jointStalls([{ start: 100, end: 300, released: 1 }], streams)).toEqual([]);
  });
});

describe('what is told', () => {
  it('reads units, shares and the names people use', () => {
    const { figures } = readTold(
      { source: 's', figures: { ttft_s: 1.4, kv: '97%', num_requests_waiting: 117, queue_ms: 5 } },
      'f',
    );
    expect(figures).toEqual({ ttft: 1400, kv_usage: 0.97, waiting: 117, queue: 5 });
  });

  it('refuses what it cannot mean', () => {
    for (const bad of [
      3,
      {},
      { figures: [] },
      { figures: { nonsense: 1 } },
      { figures: { ttft: 'fast' } },
      { figures: { kv: 3 } },
      { figures: { ttft: 1, ttft_s: 2 } },
      { figures: {}, colour: 1 },
    ])
      expect(() => readTold(bad, 'f.yaml')).toThrow(InputError);
  });

  it('reads changes, and leaves out what did not change', () => {
    const c = readChanges(
      {
        versions: { vllm: ['1', '2'], torch: ['3', '3'] },
        env: { VLLM_ATTENTION_BACKEND: [null, 'X'] },
        marks: [{ kind: 'process-start' }],
      },
      'c',
    );
    expect(c.versions).toEqual([{ name: 'vllm', before: '1', after: '2' }]);
    expect(c.flags[0]).toMatchObject({ topic: 'kernel', before: '(not set)' });
    expect(c.marks[0]).toMatchObject({ side: 'after' });
    for (const bad of [{ vers: {} }, { versions: { a: 'b' } }, { marks: [{ kind: 'lunch' }] }, [], { marks: {} }])
      expect(() => readChanges(bad, 'c.yaml')).toThrow(InputError);
    expect(topicOf('--max-num-batched-tokens')).toBe('budget');
    expect(topicOf('--max-num-seqs')).toBe('admission');
  });
});

describe('the JSON', () => {
  it('has the promised keys, null for what is not known', () => {
    const json = diagnosisObject(diagnose(told({ ttft: 300, queue: 10 }), told({ ttft: 1400, queue: 900 }))) as Record<
      string,
      unknown
    >;
    expect(json).toMatchObject({ verdict: 'unknown', attribution_ms: { client: null, queue: 890 } });
    for (const key of ['verdict', 'causes', 'attribution_ms', 'ruled_out', 'missing']) expect(json[key]).toBeDefined();
    expect((json.missing as unknown[]).length).toBeGreaterThan(0);
    expect(JSON.stringify(json)).not.toMatch(/NaN|Infinity/);
  });
});
