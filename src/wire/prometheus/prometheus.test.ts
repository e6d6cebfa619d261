import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import promClient from 'prom-client';
import { describe, expect, it } from 'vitest';
import { histogramsOf, type MetricFamily } from './family.ts';
import { parsePrometheus, readPrometheus } from './read.ts';
import { MetricRegistry } from './registry.ts';
import { histogramSamples, prometheusText } from './write.ts';

const FOLDER = new URL('../../../samples/metrics/', import.meta.url);
const sample = (name: string) => readFileSync(new URL(`${name}.txt`, FOLDER), 'utf8');
const family = (families: readonly MetricFamily[], name: string) => families.find((f) => f.name === name)!;

describe('the parser on real servers', () => {
  const BROKEN = new Set(['vllm-inconsistent-count.txt']);
  for (const file of readdirSync(FOLDER).filter((f) => !BROKEN.has(f))) {
    it(file, () => {
      const text = readFileSync(new URL(file, FOLDER), 'utf8');
      const families = parsePrometheus(text);
      const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
      expect(families.reduce((n, f) => n + f.samples.length, 0)).toBe(lines.length);
      for (const f of families) {
        for (const s of f.samples) expect(text).toContain(f.name + (s.suffix ?? ''));
      }
    });
  }

  it('refuses a histogram whose count is not its +Inf bucket, with its line', () => {
    const { families, problems } = readPrometheus(sample('vllm-inconsistent-count'));
    expect(families).toEqual([]);
    expect(problems).toEqual([
      { line: 9, message: 'vllm:time_to_first_token_seconds_count is 10000 but its +Inf bucket 9000' },
    ]);
    expect(() => parsePrometheus(sample('vllm-inconsistent-count'))).toThrow(/line 9/);
  });

  it('reads exemplars and the end of OpenMetrics', () => {
    const [f] = parsePrometheus(sample('openmetrics-exemplars'));
    expect(f?.samples[0]?.exemplar).toEqual({
      labels: { trace_id: '0af7651916cd43dd8448eb211c80319c' },
      value: 0.43,
      timestamp: 1.7e12,
    });
    expect(histogramsOf(f!)).toEqual([{ labels: {}, bounds: [0.5, Infinity], counts: [8, 10], count: 10, sum: 8.1 }]);
  });

  it('takes a type from its declaration, not from a name that ends in _total', () => {
    const f = family(parsePrometheus(sample('vllm-iteration-tokens-trap')), 'vllm:iteration_tokens_total');
    expect(f.type).toBe('histogram');
    expect(histogramsOf(f)).toHaveLength(1);
  });

  it('keeps the series of two engines apart', () => {
    const f = family(parsePrometheus(sample('vllm-two-engines')), 'vllm:time_to_first_token_seconds');
    expect(histogramsOf(f).map((s) => s.labels.engine)).toEqual(['0', '1']);
  });
});

describe('the parser on what is not right', () => {
  const problem = (text: string) => readPrometheus(text).problems.map((p) => [p.line, p.message]);
  it.each([
    ['"# HELP a b\\na 1\\n"', 1, /one JSON string/],
    ['<html></html>\n', 1, /HTML/],
    ['{"detail":"Not Found"}\n', 1, /JSON/],
    ['a 1\nb{x="y} 2\n', 2, /not closed/],
    ['a 1\nb{x="y"}\n', 2, /value is missing/],
    ['b{x="y"} 1 2 3\n', 1, /stands after/],
    ['b{x="\\q"} 1\n', 1, /no escape/],
    ['b{x="1",x="2"} 1\n', 1, /twice/],
    ['b 1x\n', 1, /no number/],
    ['b 0x10\n', 1, /no number/],
    ['b 1\nb 2\n', 2, /twice/],
    ['b 1\nc 12', 2, /cut/],
    ['b 1\n# TYPE b gauge\n', 2, /after its samples/],
    ['# TYPE b gauge\n# TYPE b counter\nb 1\n', 2, /second type/],
    ['# TYPE b gage\nb 1\n', 1, /no type/],
    ['b 1\n# EOF\nc 1\n# EOF\n', 3, /after # EOF/],
    ['# TYPE b counter\nb -1\n', 2, /negative/],
    ['# TYPE h histogram\nh_bucket{le="1"} 5\nh_bucket{le="2"} 4\nh_bucket{le="+Inf"} 5\n', 3, /decrease/],
    ['# TYPE h histogram\nh_bucket{le="1"} 5\nh_bucket{le="2"} 6\nh_count 6\n', 3, /\+Inf bucket of h is missing/],
    ['# TYPE h histogram\nh_bucket{le="x"} 5\n', 2, /bound 'x'/],
    ['# TYPE h histogram\nh_bucket 5\n', 2, /no le/],
    ['# TYPE h histogram\nh_bucket{le="+Inf"} NaN\n', 2, /counts NaN/],
    ['h_bucket{le="1"} 5\nh_bucket{le="+Inf"} 4\n', 2, /decrease/],
  ])('%j: line %d', (text, line, message) => {
    const found = problem(text);
    expect(found[0]?.[0]).toBe(line);
    expect(found[0]?.[1]).toMatch(message);
  });

  it('leaves out the family with the problem, and only it', () => {
    const { families } = readPrometheus(
      'a 1\n# TYPE h histogram\nh_bucket{le="1"} 5\nh_bucket{le="2} 6\nh_count 6\nb 2\n',
    );
    expect(families.map((f) => f.name)).toEqual(['a', 'b']);
  });

  it('reads values that look like syntax', () => {
    const [f] = parsePrometheus('m{path="a le=\\"0.5\\"} # {",le="x"} +Inf 1700000000000\n');
    expect(f?.samples).toEqual([
      { labels: { path: 'a le="0.5"} # {', le: 'x' }, value: Infinity, timestamp: 1_700_000_000_000 },
    ]);
  });

  it('reads quoted names, blanks and CRLF', () => {
    const families = parsePrometheus('{"a.b", "x.y"="1", } 3\r\n  c\t{ z = "2" } NaN\r\n\r\n# just a comment\r\n');
    expect(families).toMatchObject([
      { name: 'a.b', samples: [{ labels: { 'x.y': '1' }, value: 3 }] },
      { name: 'c', samples: [{ labels: { z: '2' }, value: Number.NaN }] },
    ]);
  });

  it('reads a type that is said again, and refuses two buckets of one bound', () => {
    expect(parsePrometheus('# TYPE b gauge\nb{e="0"} 1\n# TYPE b gauge\nb{e="1"} 2\n')[0]?.samples).toHaveLength(2);
    expect(problem('h_bucket{le="1"} 1\nh_bucket{le="1.0"} 1\nh_bucket{le="+Inf"} 1\n')).toEqual([
      [2, 'h has two buckets of the bound 1'],
    ]);
  });

  it('puts buckets in order, whatever order they stand in', () => {
    const [f] = readPrometheus('h_bucket{le="+Inf"} 3\nh_bucket{le="10"} 2\nh_bucket{le="9"} 1\nh_count 3\n').families;
    expect(f?.histograms).toEqual([{ labels: {}, bounds: [9, 10, Infinity], counts: [1, 2, 3], count: 3 }]);
  });

  it('reads histograms in one value, classic and native', () => {
    const { families, problems } = readPrometheus(
      '# TYPE c histogram\nc{e="0"} {count:12,sum:5.5,bucket:[1.0:3,2.0:7,+Inf:12]} st@1520430000.123\n' +
        '# TYPE n histogram\nn {count:17,sum:324789.3,schema:0,zero_threshold:1e-4,zero_count:0,positive_spans:[0:2],' +
        'positive_buckets:[5,12]} 1520879609 st@1 # {trace_id="a"} 0.67 1520879607.789 # {trace_id="b"} 1.2 1520879608\n# EOF\n',
    );
    expect(problems).toEqual([]);
    expect(families[0]?.histograms).toEqual([
      { labels: { e: '0' }, bounds: [1, 2, Infinity], counts: [3, 7, 12], count: 12, sum: 5.5 },
    ]);
    expect(families[1]?.histograms?.[0]).toMatchObject({
      bounds: [1e-4, 0.5, 1, 2, Infinity],
      counts: [0, 0, 5, 17, 17],
    });
  });

  it.each([
    ['n {count:1,schema:0,positive_spans:[0:2],positive_buckets:[1]}', /do not fit/],
    ['n {count:1,schema:0,positive_spans:[0:1],positive_buckets:[2]}', /more than its count/],
    ['n {count:1,schema:-53}', /schema -53/],
    ['n {count:x}', /no number/],
    ['n {sum:1}', /no count/],
    ['n {count:3,bucket:[1:4,+Inf:3]}', /decrease/],
    ['n {count:3,bucket:[1:3]}', /\+Inf bucket of n is missing/],
    ['n {count:3,bucket:[1:2,+Inf:2]}', /_count is 3/],
    ['n {count:3', /'}' is missing/],
  ])('refuses %s', (line, message) => {
    expect(problem(`# TYPE n histogram\n${line}\n`)[0]?.[1]).toMatch(message);
    expect(readPrometheus(`# TYPE n histogram\n${line}\n`).families).toEqual([]);
  });

  it('tells at most so many problems one by one', () => {
    const { problems } = readPrometheus('a x\n'.repeat(5000));
    expect(problems.length).toBe(1001);
    expect(problems.at(-1)?.message).toMatch(/4000 more/);
  });

  it('never throws on anything', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => void readPrometheus(text)));
    const pieces = fc.constantFrom(
      'a',
      '_bucket',
      '{',
      '}',
      'le="',
      '"',
      '1',
      ' ',
      '\n',
      '#',
      'TYPE',
      'EOF',
      ',',
      '=',
      '\\',
      '+Inf',
    );
    fc.assert(fc.property(fc.array(pieces, { maxLength: 40 }), (all) => void readPrometheus(all.join(''))));
  });
});

describe('the writer', () => {
  const labelValue = fc.string({ unit: fc.constantFrom('a', '"', '\\', '\n', '{', '}', ',', '=', 'é', ' ', '#') });
  const number = fc.oneof(fc.double({ noNaN: false }), fc.integer());

  it('is read back as it was written', () => {
    const samples = fc.uniqueArray(fc.record({ labels: fc.record({ x: labelValue, y: labelValue }), value: number }), {
      selector: (s) => JSON.stringify(s.labels),
    });
    fc.assert(
      fc.property(samples, labelValue, (all, help) => {
        const written = { name: 'm', type: 'gauge' as const, help: `h${help.trim()}`, samples: all };
        const [read] = parsePrometheus(prometheusText([written]));
        expect(read?.samples ?? []).toEqual(
          all.map((s) => ({ ...s, value: s.value === 0 ? expect.closeTo(0) : s.value })),
        );
        if (read) expect(read.help?.replaceAll('\\"', '"')).toBe(written.help.replaceAll('\\"', '"'));
      }),
    );
  });

  it("says what prom-client's says", async () => {
    const theirs = new promClient.Registry();
    const labelNames = ['model', 'path'];
    const c = new promClient.Counter({ name: 'c_total', help: 'A\nline \\ one', labelNames, registers: [theirs] });
    const g = new promClient.Gauge({ name: 'g', help: 'A gauge', labelNames, registers: [theirs] });
    const h = new promClient.Histogram({
      name: 'h',
      help: 'Times',
      labelNames,
      buckets: [0.1, 1, 5],
      registers: [theirs],
    });
    const ours = new MetricRegistry();
    const oc = ours.counter('c_total', 'A\nline \\ one');
    const og = ours.gauge('g', 'A gauge');
    const oh = ours.histogram('h', 'Times', [0.1, 1, 5]);
    const labels = { model: 'a"b\\c\nd', path: 'le="0.5"' };
    for (const by of [1, 2.5]) {
      c.inc(labels, by);
      oc.inc(labels, by);
    }
    g.set(labels, -3.25);
    og.set(-3.25, labels);
    for (const x of [0.1, 0.100001, 4, 5, 6, 0]) {
      h.observe(labels, x);
      oh.observe(x, labels);
    }
    const sorted = (families: readonly MetricFamily[]) =>
      families.map((f) => ({ ...f, line: 0, samples: [...f.samples] }));
    expect(sorted(parsePrometheus(ours.text()))).toEqual(sorted(parsePrometheus(await theirs.metrics())));
  });

  it('writes buckets cumulatively, and floats as Python does when asked', () => {
    const samples = histogramSamples({ m: 'x' }, [1, 2], [3, 0, 4], 21, { python: true });
    expect(prometheusText([{ name: 'h', type: 'histogram', help: 'x', samples }], { python: true })).toBe(
      '# HELP h x\n# TYPE h histogram\nh_bucket{m="x",le="1.0"} 3.0\nh_bucket{m="x",le="2.0"} 3.0\n' +
        'h_bucket{m="x",le="+Inf"} 7.0\nh_sum{m="x"} 21.0\nh_count{m="x"} 7.0\n',
    );
  });

  it('refuses what the format does not allow', () => {
    const one = (name: string, label = 'x') => [
      { name, type: 'gauge' as const, samples: [{ labels: { [label]: 'y' }, value: 1 }] },
    ];
    expect(() => prometheusText(one('a-b'))).toThrow(/no metric name/);
    expect(() => prometheusText(one('a', 'b.c'))).toThrow(/no label name/);
    expect(() => prometheusText([...one('a'), ...one('a')])).toThrow(/twice/);
    expect(() => new MetricRegistry().counter('c', '').inc({}, -1)).toThrow(/go down/);
    expect(() => new MetricRegistry().histogram('h', '', [2, 1])).toThrow(/ascend/);
  });
});
