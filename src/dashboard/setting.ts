/**
 * What a run says of the engine it measured and of the traffic: what a prediction of it starts from. Read leniently from
 * `run.json`, or from a search's `search.json`; what is not said is null.
 */
import { oneLine } from '../base/errors.ts';
import { readJson } from '../store/json.ts';

export interface Setting {
  /** As the run names it: not always one of the catalogue. */
  readonly model: string | null;
  readonly gpu: string | null;
  readonly tp: number | null;
  /** Name of the calibrated profile it was simulated with. */
  readonly profile: string | null;
  /** Mean lengths of prompts and outputs, tokens. */
  readonly input: number | null;
  readonly output: number | null;
  /** The contract's limits, ms, and its target. */
  readonly ttft: number | null;
  readonly tpot: number | null;
  readonly target: number | null;
}

type Plain = Readonly<Record<string, unknown>>;
const plain = (x: unknown): Plain => (typeof x === 'object' && x !== null && !Array.isArray(x) ? (x as Plain) : {});
const text = (x: unknown): string | null => (typeof x === 'string' && x !== '' ? oneLine(x, 120) : null);
const number = (x: unknown): number | null => (typeof x === 'number' && Number.isFinite(x) && x > 0 ? x : null);

/** @param child a run of it, which is asked where the folder itself says nothing. @throws InputError where a file is damaged. */
export function settingOf(folder: string, child?: string): Setting {
  const search = readJson(folder, 'search.json');
  const own = readJson(folder, 'run.json');
  const run = own ?? (search === undefined && child !== undefined ? readJson(child, 'run.json') : undefined);
  const from = plain(run ?? search);
  const target = plain(from.target);
  const workload = plain(run === undefined ? from.load : from.workload);
  const requests = plain(workload.requests);
  const contract = plain(from.contract);
  const limits = plain(contract.limits);
  const named = [from.hardware, target.hardware, target.engine, target.emulated].map(plain);
  const said = (key: string): unknown => named.map((n) => n[key]).find((x) => x !== undefined && x !== null);
  // A simulation says it in words: `llama-3.1-8b (bf16, KV bf16) on 2 × h100-sxm, …`.
  const words = /on (\d+) × ([\w.-]+)/.exec(String(target.endpoint ?? target.name ?? ''));
  const profile = /profile '([^']+)'/.exec(String(target.endpoint ?? target.name ?? ''));
  return {
    model: text(said('model')) ?? text(target.model),
    gpu: text(said('gpu')) ?? text(said('accelerator')) ?? text(words?.[2]),
    tp: number(said('tp')) ?? number(said('tensor_parallel')) ?? number(Number(words?.[1])),
    profile: text(said('profile')) ?? text(from.profile) ?? text(target.profile) ?? text(profile?.[1]),
    input: meanOf(requests.input),
    output: meanOf(requests.output),
    ttft: number(limits.ttft),
    tpot: number(limits.tpot),
    target: number(contract.attainment),
  };
}

/** Of a distribution of lengths, where its form tells it. */
function meanOf(lengths: unknown): number | null {
  const { tokens, mean, low, high, values } = plain(lengths);
  if (number(tokens) !== null) return number(tokens);
  if (number(mean) !== null) return Math.round(mean as number);
  if (number(low) !== null && number(high) !== null) return Math.round(((low as number) + (high as number)) / 2);
  if (Array.isArray(values) && values.length > 0 && values.every((v) => number(v) !== null)) {
    return Math.round((values as number[]).reduce((a, b) => a + b, 0) / values.length);
  }
  return null;
}
