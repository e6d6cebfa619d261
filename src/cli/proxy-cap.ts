/** How many requests an upstream may have in flight: a number, or what a plan or a capacity run says. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { InputError, messageOf, oneLine } from '../base/errors.ts';

export interface Cap {
  readonly requests: number;
  /** Where it comes from, for the user. */
  readonly why: string;
}

/** @param value of `--max-concurrency`. @throws InputError */
export function readCap(value: string): Cap {
  if (/^\d{1,7}$/.test(value)) {
    if (Number(value) < 1) throw new InputError('--max-concurrency: 0 would serve nobody; leave it out for no cap');
    return { requests: Number(value), why: 'as given' };
  }
  const shown = oneLine(value, 120);
  const json = readAnswer(value);
  if (json.schema === 'goodput.plan/1') return planCap(json, shown);
  if (json.schema === 'goodput.capacity/1') return capacityCap(json, shown);
  throw new InputError(
    `--max-concurrency: ${shown} is neither a whole number nor the JSON of goodput plan or goodput capacity`,
  );
}

function readAnswer(path: string): Record<string, unknown> {
  for (const file of [join(path, 'capacity.json'), path]) {
    let text: string;
    try {
      text = readFileSync(file, 'utf8');
    } catch (error) {
      if (file !== path) continue;
      throw new InputError(`--max-concurrency: ${messageOf(error)}; give a number, or a file of goodput plan --json`);
    }
    try {
      const json: unknown = JSON.parse(text);
      if (typeof json === 'object' && json !== null) return json as Record<string, unknown>;
    } catch {
      // told below
    }
    throw new InputError(`--max-concurrency: ${oneLine(file, 120)} is not JSON`);
  }
  throw new InputError(`--max-concurrency: ${oneLine(path, 120)} cannot be read`);
}

const list = (x: unknown): readonly Record<string, unknown>[] => (Array.isArray(x) ? x : []);
const positive = (x: unknown): number | undefined => (typeof x === 'number' && x > 0 ? x : undefined);

/** The batch cap of the plan's first row on the frontier. */
function planCap(json: Record<string, unknown>, shown: string): Cap {
  const rows = list(json.rows);
  const row = rows.find((r) => r.frontier === true) ?? rows.find((r) => r.gpus !== null);
  const cap = positive(row?.cap);
  if (cap === undefined)
    throw new InputError(`--max-concurrency: ${shown} holds no deployment that meets its contract`);
  return { requests: Math.floor(cap), why: `the batch cap planned for ${oneLine(String(row?.gpu), 40)}` };
}

/**
 * Little's law at the highest rate that passed: those waiting for their first token, and those being written. Medians
 * stand for means, so it is an estimate.
 */
function capacityCap(json: Record<string, unknown>, shown: string): Cap {
  const passed = list(json.curve)
    .filter((row) => row.verdict === 'pass')
    .sort((a, b) => Number(b.rate) - Number(a.rate))[0];
  const p50 = (x: unknown): number | undefined => positive((x as { p50?: unknown } | undefined)?.p50);
  const rate = positive(passed?.rate);
  const ttft = p50(passed?.ttft_ms);
  const tokens = positive(passed?.throughput_tps);
  const tpot = p50(passed?.tpot_ms);
  if (rate === undefined || ttft === undefined || tokens === undefined || tpot === undefined) {
    throw new InputError(
      `--max-concurrency: ${shown} has no rate that passed with its TTFT, TPOT and throughput; give a number`,
    );
  }
  const requests = Math.max(1, Math.ceil((rate * ttft + tokens * tpot) / 1000));
  return {
    requests,
    why: `in flight at ${rate.toPrecision(3)} requests/s, the highest rate that passed, by Little's law`,
  };
}
