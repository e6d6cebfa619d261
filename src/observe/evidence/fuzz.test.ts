/** Hostile and damaged metrics: no crash, no number out of a family that is not whole, nothing that is not finite. */
import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { MergeDocument } from './document.ts';
import { renderMerge } from './render.ts';
import { merged } from './testing.ts';

const FOLDER = new URL('../../../samples/metrics/', import.meta.url);
const SAMPLES = readdirSync(FOLDER).map((f) => readFileSync(new URL(f, FOLDER), 'utf8'));
const RUNS = { numRuns: 120 };

function numbersAreSane(d: MergeDocument): void {
  const walk = (x: unknown, path: string): void => {
    if (typeof x === 'number') {
      expect(Number.isFinite(x), `${path} is ${x}`).toBe(true);
      if (!path.includes('frontend_seconds') && !path.includes('inference_less') && !path.includes('tokens_per_step')) {
        expect(x, path).toBeGreaterThanOrEqual(0);
      }
    } else if (typeof x === 'object' && x !== null) for (const [k, v] of Object.entries(x)) walk(v, `${path}.${k}`);
  };
  walk(d, '');
  for (const concept of ['ttft', 'queue', 'e2e', 'itl', 'tpot'] as const) {
    const m = d[concept];
    if (m?.buckets === undefined) continue;
    m.buckets.forEach((b, i) => {
      if (i > 0) expect(b.count).toBeGreaterThanOrEqual(m.buckets![i - 1]!.count);
    });
    expect(m.buckets.at(-1)).toEqual({ le: null, count: m.count });
    for (const q of Object.values(m.quantiles ?? {})) if (q.high !== null) expect(q.high).toBeGreaterThanOrEqual(q.low);
  }
}

const tried = (text: string | readonly string[]): void => {
  const d = merged({ a: text, b: text });
  JSON.parse(JSON.stringify(d));
  numbersAreSane(d);
  renderMerge(d, 80);
};

it('any text', () => {
  fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 300 }), tried), RUNS);
});

it('lines made of pieces of real ones', () => {
  const piece = fc.constantFrom(
    'vllm:time_to_first_token_seconds',
    'sglang:queue_time_seconds',
    '_bucket',
    '_count',
    '_sum',
    '_total',
    '{le="',
    '0.1',
    '+Inf',
    'NaN',
    '1e308',
    '-1',
    '"}',
    ' ',
    '\n',
    '# TYPE ',
    ' histogram\n',
    ' counter\n',
    ' summary\n',
    'engine="0",',
    '{count:3,sum:2,bucket:[1:2,+Inf:3]}',
    '{count:9,schema:8,zero_count:1,positive_spans:[900:2],positive_buckets:[1,2]}',
    '\\',
    '\r',
    ' # {trace_id="x"} 1',
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 60 }), (all) => tried(all.join(''))),
    RUNS,
  );
});

it('samples with bytes changed, lines taken, doubled, swapped and cut', () => {
  const sample = fc.constantFrom(...SAMPLES);
  const change = fc.record({
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    to: fc.constantFrom('0', '9', '}', '"', '\n', ' ', '-', 'e', 'NaN', '{', '\\', '\u0000', 'é'),
    how: fc.nat(5),
  });
  fc.assert(
    fc.property(sample, fc.array(change, { minLength: 1, maxLength: 6 }), (text, changes) => {
      let changed = text;
      for (const { at, to, how } of changes) {
        const lines = changed.split('\n');
        const i = Math.min(lines.length - 1, Math.floor(at * lines.length));
        const c = Math.floor(at * changed.length);
        if (how === 0) changed = changed.slice(0, c) + to + changed.slice(c + 1);
        else if (how === 1) changed = changed.slice(0, c);
        else if (how === 2) lines.splice(i, 1);
        else if (how === 3) lines.splice(i, 0, lines[i]!);
        else if (how === 4) lines.push(...lines.splice(i, 1));
        else changed = changed.slice(0, c) + to + changed.slice(c);
        if (how >= 2 && how <= 4) changed = lines.join('\n');
      }
      tried(changed);
      tried([text, changed]);
    }),
    RUNS,
  );
});

it('a family with a broken line never gives a number, whatever is wrong with the line', () => {
  const lines = ['le="0.1"} 1', 'le="1"} 2', 'le="+Inf"} 3'].map(
    (l) => `vllm:time_to_first_token_seconds_bucket{engine="0",${l}`,
  );
  const damage = fc.constantFrom(
    (l: string) => l.replace('"} ', '} '),
    (l: string) => l.replace(/ \d/, ''),
    (l: string) => l.replace(/ (\d)/, ' $1x'),
    (l: string) => l.replace(/ \d/, ' NaN'),
    (l: string) => l.replace(/ \d/, ' -1'),
    (l: string) => l.replace('le=', 'xle='),
    (l: string) => l.replace(/le="[^"]*"/, 'le="q"'),
    (l: string) => `${l}\n${l}`,
    (l: string) => l.replace(/ \d/, ' 1e400'),
    (l: string) => l.replace('}', ''),
  );
  fc.assert(
    fc.property(fc.nat(2), damage, (at, spoil) => {
      const text = `${lines.map((l, i) => (i === at ? spoil(l) : l)).join('\n')}\nvllm:num_requests_running 1\n`;
      const d = merged({ a: text });
      expect(d.ttft, text).toBeUndefined();
      expect(d.errors.length, text).toBeGreaterThan(0);
      expect(d.gauges.running?.sum).toBe(1);
    }),
  );
});

it('what is large stays quick: many labels, long lines, many problems', () => {
  const long = `vllm:num_requests_running{x="${'a'.repeat(1_000_000)}"} 1\n`;
  expect(merged({ a: long }).gauges.running?.sum).toBe(1);
  const labels = Array.from({ length: 20_000 }, (_, i) => `l${i}="v"`).join(',');
  expect(merged({ a: `vllm:num_requests_running{${labels}} 1\n` }).gauges.running?.sum).toBe(1);
  const engines = Array.from({ length: 3000 }, (_, i) => `vllm:num_requests_running{engine="${i}"} 1\n`).join('');
  expect(merged({ a: engines }).gauges.running?.sum).toBe(3000);
  expect(merged({ a: 'vllm:x{ 1\n'.repeat(100_000) }).errors.length).toBeLessThan(1100);
});
