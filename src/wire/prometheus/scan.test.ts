import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LabelTable } from './labels.ts';
import { type ReadMetrics, readPrometheus } from './read.ts';

const told = ({ families, problems }: ReadMetrics) => ({
  families: families.map(({ name, type, samples, histograms }) => ({ name, type, samples, histograms })),
  problems,
});

describe('plain lines are read as the reader of characters reads them', () => {
  const labelName = fc.constantFrom('a', 'b', 'le', 'model_name', 'x.y', '_', 'le2');
  const labelValue = fc.oneof(
    fc.constantFrom('', '0', '1', '1.0', '+Inf', 'NaN', 'm', 'a,b="c', 'é', '}', '{', ' ', '#'),
    fc.string({ unit: fc.constantFrom('a', '1', '.', ',', '=', '{', '}', 'ü', '\\\\', '\\"', '\\n') }),
  );
  const value = fc.oneof(
    fc.double().map(String),
    fc.integer().map(String),
    fc.constantFrom(
      '1.50',
      '007',
      '1.',
      '.5',
      '1e5',
      '+3',
      '-0',
      'NaN',
      '+Inf',
      '-Inf',
      'x',
      '',
      '1_0',
      '999999999999999.9',
    ),
  );
  const name = fc.constantFrom('h_bucket', 'h_count', 'h_sum', 'm', 'm:x_total', '9m', 'm.n');
  const labels = fc
    .array(fc.tuple(labelName, labelValue), { maxLength: 4 })
    .chain((all) => fc.tuple(fc.constant(all), fc.constantFrom('', ',')));
  const line = fc.tuple(name, labels, value).map(([n, [all, end], v]) => ({
    plain: `${n}${all.length > 0 ? `{${all.map(([k, x]) => `${k}="${x.replaceAll('"', '\\"').replaceAll('\\\\"', '\\"')}"`).join(',')}${end}}` : ''}`,
    value: v,
  }));

  it('whatever stands in them', () => {
    fc.assert(
      fc.property(fc.array(line, { maxLength: 12 }), fc.constantFrom('\n', '\r\n'), (lines, lf) => {
        const plain = lines.map((l) => `${l.plain} ${l.value}${lf}`).join('');
        // A second blank before the value is right, but not plain.
        const odd = lines.map((l) => `${l.plain}  ${l.value}${lf}`).join('');
        expect(told(readPrometheus(plain))).toEqual(told(readPrometheus(odd)));
      }),
      { numRuns: 200 },
    );
  });

  it('numbers as Number() reads them, bounds too', () => {
    fc.assert(
      fc.property(fc.nat({ max: 10 ** 9 }), fc.nat({ max: 999_999 }), fc.nat({ max: 12 }), (whole, part, zeros) => {
        const text = `${whole}.${'0'.repeat(zeros)}${part}`;
        const { families } = readPrometheus(`h_bucket{le="${text}"} 0\nh_bucket{le="+Inf"} 0\nm ${text}\n`);
        expect(families[0]?.histograms?.[0]?.bounds[0]).toBe(Number(text));
        expect(families[1]?.samples[0]?.value).toBe(Number(text));
      }),
    );
  });

  it('the labels of a series in any order, its bound anywhere among them', () => {
    const bucket = (labels: string, n: number) => `h_bucket{${labels}} ${n}\n`;
    const text =
      bucket('a="1",b="2",le="1"', 1) +
      bucket('le="2",b="2",a="1"', 2) +
      bucket('b="2",le="3",a="1",', 3) +
      bucket(' a = "1" , le="+Inf", b="2"', 4) +
      'h_count{b="2",a="1"} 4\nh_sum{a="1",b="2",} 9\n';
    const { families, problems } = readPrometheus(text);
    expect(problems).toEqual([]);
    expect(families[0]?.histograms).toEqual([
      { labels: { a: '1', b: '2' }, bounds: [1, 2, 3, Infinity], counts: [1, 2, 3, 4], count: 4, sum: 9 },
    ]);
    expect(readPrometheus('m{a="1",b="2"} 1\nm{b="2",a="1"} 2\n').problems[0]?.line).toBe(2);
  });

  it('does not take for one what only looks alike', () => {
    const { families } = readPrometheus('m{x="a\\",y=\\"b"} 1\nm{x="a",y="b"} 2\nm{x="a\\\\"} 3\nm{x="a"} 4\n');
    expect(families[0]?.samples.map((s) => s.labels)).toEqual([
      { x: 'a",y="b' },
      { x: 'a', y: 'b' },
      { x: 'a\\' },
      { x: 'a' },
    ]);
  });
});

describe('a table that many texts are read with', () => {
  it('tells what each text says, and takes samples before the next one only', () => {
    const table = new LabelTable();
    const text = (pod: number) => `m{pod="${pod}"} ${pod}\nh_bucket{pod="${pod}",le="+Inf"} 1\n`;
    for (let pod = 0; pod < 500; pod++) {
      const [h, m] = readPrometheus(text(pod), table).families;
      expect(m?.samples).toEqual([{ labels: { pod: String(pod) }, value: pod }]);
      expect(h?.histograms?.[0]?.labels).toEqual({ pod: String(pod) });
    }
    const late = readPrometheus(text(1), table).families[1];
    readPrometheus(text(2), table);
    expect(() => late?.samples).toThrow(/another text/);
  });

  it('begins anew when it holds too much', () => {
    const table = new LabelTable();
    const many = Array.from({ length: 210_000 }, (_, i) => `m{i="${i}"} ${i}\n`).join('');
    expect(readPrometheus(many, table).families[0]?.samples).toHaveLength(210_000);
    expect(readPrometheus('m{i="7"} 8\n', table).families[0]?.samples).toEqual([{ labels: { i: '7' }, value: 8 }]);
    expect(table.names.size).toBe(1);
  });
});

describe('bodies', () => {
  it('are read from bytes, behind a byte order mark, and as UTF-16', () => {
    const text = 'm{x="é"} 1\n';
    const utf16 = Buffer.from(`\ufeff${text}`, 'utf16le');
    const swapped = Buffer.from(utf16).swap16();
    for (const body of [text, Buffer.from(text), Buffer.from(`\ufeff${text}`), `\ufeff${text}`, utf16, swapped]) {
      expect(readPrometheus(body).families[0]?.samples).toEqual([{ labels: { x: 'é' }, value: 1 }]);
    }
  });

  it('that are binary are told as such', () => {
    const { families, problems } = readPrometheus(new Uint8Array([42, 10, 3, 0, 1, 2, 16, 0, 0, 0, 0]));
    expect(families).toEqual([]);
    expect(problems[0]?.message).toMatch(/binary/);
  });
});

describe('one value a series and scrape', () => {
  it.each([
    ['m 1 1000\nm 2 2000\n', 2],
    ['# TYPE m counter\nm_total{a="1"} 1 1\nm_total{a="1"} 2 2\n# EOF\n', 3],
  ])('refuses %j', (text, line) => {
    const { families, problems } = readPrometheus(text);
    expect(families).toEqual([]);
    expect(problems.map((p) => p.line)).toEqual([line]);
  });
});

it('finds bytes whose hashes are alike: FNV collides for them', () => {
  // 2,000 names of one hash cannot be made quickly; series of one set of labels in 120 orders can.
  const names = ['a', 'b', 'c', 'd', 'e'];
  const orders = (left: readonly string[]): string[][] =>
    left.length === 0 ? [[]] : left.flatMap((x) => orders(left.filter((y) => y !== x)).map((rest) => [x, ...rest]));
  const lines = orders(names).map((order, i) => `m${i}{${order.map((n) => `${n}="1"`).join(',')}} ${i}\n`);
  const { families, problems } = readPrometheus(lines.join(''));
  expect(problems).toEqual([]);
  expect(families).toHaveLength(120);
  const twice = readPrometheus(lines.map((l) => l.replace(/^m\d+/, 'm')).join(''));
  expect(twice.problems).toHaveLength(119);
});
