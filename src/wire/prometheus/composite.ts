/**
 * A whole histogram as one value, as OpenMetrics 2 writes it: `{count:12,sum:5.5,bucket:[1.0:3,+Inf:12]}`, and native ones
 * `{count:…,sum:…,schema:0,zero_threshold:…,zero_count:…,positive_spans:[0:2],positive_buckets:[5,12]}`. A native histogram
 * is read into the bounds its schema stands for: bucket i of schema s ends at 2^(i·2^−s).
 */
import { numberOf } from './family.ts';
import { LineError } from './line-error.ts';

export interface CompositeValue {
  readonly count: number;
  readonly sum?: number;
  /** Cumulative, the last bound +∞. Empty where only count and sum were given. */
  readonly bounds: readonly number[];
  readonly counts: readonly number[];
}

/** Bounds a native histogram may be spread over. */
const MOST_BUCKETS = 10_000;

/** @throws LineError */
export function readComposite(text: string): CompositeValue {
  const fields = fieldsOf(text);
  const whole = (name: string): number | undefined => {
    const field = fields.get(name);
    if (field === undefined) return undefined;
    const value = numberOf(field);
    if (value === undefined) throw new LineError(`the histogram's ${name} '${field.slice(0, 40)}' is no number`);
    return value;
  };
  const count = whole('count') ?? whole('gcount');
  if (count === undefined || !(count >= 0)) throw new LineError('the histogram has no count');
  if (fields.has('quantile')) throw new LineError('a summary in one value is not read');
  const sum = whole('sum') ?? whole('gsum');
  const buckets = fields.has('bucket')
    ? classic(fields.get('bucket')!)
    : fields.has('schema')
      ? native(fields, whole, count)
      : [];
  return {
    count,
    ...(sum !== undefined && { sum }),
    bounds: buckets.map(([bound]) => bound),
    counts: buckets.map(([, n]) => n),
  };
}

function fieldsOf(text: string): Map<string, string> {
  const fields = new Map<string, string>();
  const inner = text.slice(1, -1);
  const field = /\s*([a-z_]+):(\[[^\]]*\]|[^,[\]]*)\s*(,|$)/y;
  while (field.lastIndex < inner.length) {
    const m = field.exec(inner);
    if (m === null) throw new LineError(`'${text.slice(0, 40)}' is no histogram`);
    if (fields.has(m[1]!)) throw new LineError(`the histogram's ${m[1]} stands twice`);
    fields.set(m[1]!, m[2]!);
  }
  return fields;
}

function listOf(text: string): string[] {
  const inner = text.slice(1, -1).trim();
  return inner === '' ? [] : inner.split(',').map((s) => s.trim());
}

function pairsOf(text: string): [number, number][] {
  return listOf(text).map((pair) => {
    const [a, b, ...more] = pair.split(':').map((s) => numberOf(s.trim()));
    if (a === undefined || b === undefined || more.length > 0) throw new LineError(`'${pair.slice(0, 40)}' is no pair`);
    return [a, b];
  });
}

function classic(text: string): [number, number][] {
  return pairsOf(text);
}

function native(
  fields: ReadonlyMap<string, string>,
  whole: (name: string) => number | undefined,
  count: number,
): [number, number][] {
  const schema = whole('schema')!;
  if (!(Number.isInteger(schema) && schema >= -4 && schema <= 8)) {
    throw new LineError(`a native histogram of schema ${schema} is not read`);
  }
  const side = (name: string): [index: number, count: number][] => {
    const spans = fields.has(`${name}_spans`) ? pairsOf(fields.get(`${name}_spans`)!) : [];
    const counts = fields.has(`${name}_buckets`) ? listOf(fields.get(`${name}_buckets`)!).map(numberOf) : [];
    const out: [number, number][] = [];
    let index = 0;
    for (const [offset, length] of spans) {
      if (!Number.isInteger(offset) || !(Number.isInteger(length) && length > 0 && length <= MOST_BUCKETS)) {
        throw new LineError('a span of the native histogram is not valid');
      }
      index += offset;
      for (let i = 0; i < length; i++, index++) {
        const n = counts[out.length];
        if (n === undefined || !(n >= 0) || out.length > MOST_BUCKETS) {
          throw new LineError('the spans of the native histogram do not fit its buckets');
        }
        out.push([index, n]);
      }
    }
    if (out.length !== counts.length) throw new LineError('the spans of the native histogram do not fit its buckets');
    return out;
  };
  const edge = (index: number): number => 2 ** (index * 2 ** -schema);
  const buckets: [number, number][] = [];
  let total = 0;
  for (const [index, n] of side('negative').reverse()) buckets.push([-edge(index - 1), (total += n)]);
  const zero = whole('zero_count') ?? 0;
  if (!(zero >= 0)) throw new LineError('the zero bucket of the native histogram is not valid');
  buckets.push([whole('zero_threshold') ?? 0, (total += zero)]);
  let last = Number.NaN;
  for (const [index, n] of side('positive')) {
    const start = edge(index - 1);
    if (index - 1 !== last && start > buckets.at(-1)![0]) buckets.push([start, total]); // a gap: nothing lay there
    buckets.push([edge(index), (total += n)]);
    last = index;
  }
  if (total > count) throw new LineError(`the native histogram's buckets hold ${total}, more than its count ${count}`);
  buckets.push([Number.POSITIVE_INFINITY, count]);
  return buckets;
}
