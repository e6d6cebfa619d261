/**
 * Figures somebody read off a dashboard or a report: quantities by name, without their populations. They are taken at their
 * word, with a declared error, and never called measured.
 */
import { InputError, oneLine } from '../base/errors.ts';
import { didYouMean } from '../base/nearest.ts';
import { QUANTITIES, QUANTITY_IDS, type QuantityId } from './quantities.ts';

export interface Told {
  readonly figures: Readonly<Partial<Record<QuantityId, number>>>;
  /** Whose figures: shown beside each. */
  readonly source: string;
}

/**
 * Relative standard error of a told figure: how it was rounded, and 1.5 % at least, since nobody says how it was taken. What
 * runs of one system differ by comes on top, in the test for a change.
 */
const LEAST_ERROR = 0.015;

/** Half a unit of the last digit told, over √3 (uniform). `33` is within 0.5, `33.30` within 0.005; `1200` within 50. */
export function toldError(value: number): number {
  if (value === 0) return 0;
  const digits = value
    .toPrecision(12)
    .replace(/e.*$/, '')
    .replace(/^-?0*\.?0*/, '')
    .replace('.', '')
    .replace(/0+$/, '').length;
  const unit = 10 ** (Math.floor(Math.log10(Math.abs(value))) - Math.max(0, digits - 1));
  return Math.max(LEAST_ERROR * Math.abs(value), Math.min(0.05 * Math.abs(value), unit / 2 / Math.sqrt(3)));
}

/** Names people use, and the factor to our unit. */
const ALIASES: Readonly<Record<string, readonly [QuantityId, number]>> = {
  kv: ['kv_usage', 1],
  kv_cache_usage: ['kv_usage', 1],
  kv_cache_usage_perc: ['kv_usage', 1],
  waiting_requests: ['waiting', 1],
  num_requests_waiting: ['waiting', 1],
  num_requests_running: ['running', 1],
  running_requests: ['running', 1],
  prompt_tokens: ['prompt', 1],
  input_tokens: ['prompt', 1],
  output_tokens: ['output', 1],
  e2e: ['latency', 1],
  acceptance_length: ['tokens_per_step', 1],
  accept_length: ['tokens_per_step', 1],
  acceptance_rate: ['acceptance', 1],
  prefix_hit_rate: ['hit_rate', 1],
  cache_hit_rate: ['hit_rate', 1],
  rps: ['rate', 1],
  request_rate: ['rate', 1],
  itl: ['itl_p50', 1],
  ttft_mean: ['ttft', 1],
  tpot_mean: ['tpot', 1],
  queue_time: ['queue', 1],
  prefill_time: ['prefill', 1],
  load_duration: ['load', 1],
  tokens_per_second: ['throughput', 1],
};

/**
 * Reads `{ source, figures: { ttft_p50: 22.4, itl_p50: 5.49, … } }`. Durations are milliseconds; a name may end in `_ms` or
 * `_s`, which says the unit; shares are 0 to 1, or texts like `97%`. @throws InputError naming the file and the key.
 */
export function readTold(value: unknown, where: string): Told {
  const bad = (what: string): never => {
    throw new InputError(`${where}: ${what}`);
  };
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return bad("is not a map; write 'source: …' and 'figures: { ttft_p50: 300, … }'");
  const { figures, source, ...rest } = value as Record<string, unknown>;
  const [unknown] = Object.keys(rest).filter((key) => key !== 'note' && key !== 'schema');
  if (unknown !== undefined)
    bad(`'${oneLine(unknown, 40)}' is no key of told figures${didYouMean(unknown, ['figures', 'source', 'note'])}`);
  if (typeof figures !== 'object' || figures === null || Array.isArray(figures))
    return bad("has no 'figures'; write them as 'figures: { ttft_p50: 300, … }', durations in ms");
  const read: Partial<Record<QuantityId, number>> = {};
  for (const [key, raw] of Object.entries(figures)) {
    const [id, factor] = nameOf(key) ?? bad(`'${oneLine(key, 40)}' is no figure${didYouMean(key, QUANTITY_IDS)}`);
    const x = numberOf(raw);
    if (x === undefined || x < 0)
      bad(`'${oneLine(key, 40)}' is '${oneLine(String(raw), 40)}', not a number of 0 or more`);
    if (read[id] !== undefined) bad(`'${id}' is given twice`);
    read[id] = (x as number) * factor;
    if (QUANTITIES[id].unit === 'share' && read[id] > 1.0001)
      bad(`'${oneLine(key, 40)}' is ${read[id]}, but a share lies between 0 and 1; write '97%' or 0.97`);
  }
  return { figures: read, source: oneLine(typeof source === 'string' ? source : where, 200) };
}

function nameOf(key: string): readonly [QuantityId, number] | undefined {
  const direct = known(key);
  if (direct) return direct;
  for (const [suffix, factor] of [
    ['_ms', 1],
    ['_seconds', 1000],
    ['_s', 1000],
    ['_us', 0.001],
  ] as const) {
    if (!key.endsWith(suffix)) continue;
    const base = known(key.slice(0, -suffix.length));
    if (base && QUANTITIES[base[0]].unit === 'ms') return [base[0], factor * base[1]];
  }
  return undefined;
}

function known(key: string): readonly [QuantityId, number] | undefined {
  if (Object.hasOwn(QUANTITIES, key)) return [key as QuantityId, 1];
  return Object.hasOwn(ALIASES, key) ? ALIASES[key] : undefined;
}

function numberOf(raw: unknown): number | undefined {
  if (typeof raw === 'number') return Number.isFinite(raw) ? raw : undefined;
  if (typeof raw !== 'string') return undefined;
  const m = /^\s*(\d+(?:\.\d+)?)\s*%\s*$/.exec(raw);
  if (m) return Number(m[1]) / 100;
  const x = Number(raw);
  return raw.trim() !== '' && Number.isFinite(x) ? x : undefined;
}
