/** What of two runs is unlike, so that a difference between them would not be one between their systems. */
import { type Contract, LIMIT_NAMES } from '../core/index.ts';

/** What `run.json` says of a run. */
export interface RunIdentity {
  readonly name: string;
  readonly contract: Contract;
  readonly workload: Readonly<Record<string, unknown>>;
  readonly target: Readonly<Record<string, unknown>>;
}

export interface Unlike {
  /** Runs that differ in it are refused unless told otherwise; else it is only noted. */
  readonly refused: boolean;
  /** `contract: the TTFT limit is 500 in runs/a and 300 in runs/b`. */
  readonly text: string;
}

/** Of a workload: words, labels, and what belongs to the seed or the window rather than the load. */
const NOT_LOAD: ReadonlySet<string> = new Set([
  'text',
  'default_contract',
  'group',
  'window',
  'gpus',
  'seed',
  'imported',
  'prompts', // their salt is each run's own
]);

/** @param contract the runs are judged again under one contract, so their own need not agree. */
export function unlikeRuns(a: RunIdentity, b: RunIdentity, sameContract = false): Unlike[] {
  const found: Unlike[] = [];
  const say = (refused: boolean, what: string, x: unknown, y: unknown): void => {
    found.push({ refused, text: `${what} is ${shown(x)} in ${a.name} and ${shown(y)} in ${b.name}` });
  };
  if (a.target.kind !== b.target.kind) say(true, 'target: kind', a.target.kind, b.target.kind);
  for (const key of ['model', 'dialect', 'tool'] as const) {
    if (a.target[key] !== b.target[key]) say(key === 'tool', `target: ${key}`, a.target[key], b.target[key]);
  }
  if (!sameContract) {
    const [x, y] = [a.contract, b.contract];
    if (x.boundary !== y.boundary) say(true, 'boundary: the clock’s start', x.boundary, y.boundary);
    for (const name of LIMIT_NAMES) {
      if (x.limits[name] !== y.limits[name]) say(true, `contract: limit ${name}`, x.limits[name], y.limits[name]);
    }
    if (x.deadline !== y.deadline) say(true, 'contract: deadline', x.deadline, y.deadline);
    for (const key of ['valid', 'cases'] as const) {
      const path = firstDifference(x[key], y[key], `contract: ${key}`);
      if (path) say(true, ...path);
    }
    if (x.attainment !== y.attainment) say(false, 'attainment target', x.attainment, y.attainment);
  }
  const keys = new Set([...Object.keys(a.workload), ...Object.keys(b.workload)]);
  for (const key of keys) {
    if (NOT_LOAD.has(key) || (sameContract && key === 'contracts')) continue;
    // Whether a prompt has a text depends on the target; its length does not.
    const strip = (v: unknown): unknown =>
      key === 'requests' && typeof v === 'object' && v !== null ? { ...v, prompt: undefined } : v;
    const path = firstDifference(strip(a.workload[key]), strip(b.workload[key]), `workload: ${key}`);
    if (path) say(true, ...path);
  }
  for (const key of ['window', 'gpus'] as const) {
    const path = firstDifference(a.workload[key], b.workload[key], `workload: ${key}`);
    if (path) say(false, ...path);
  }
  return found;
}

/** The first path at which two JSON values differ; absent and null are alike. */
function firstDifference(x: unknown, y: unknown, path: string): [string, unknown, unknown] | undefined {
  if (typeof x === 'object' && x !== null && typeof y === 'object' && y !== null) {
    const [l, r] = [x as Record<string, unknown>, y as Record<string, unknown>];
    for (const key of new Set([...Object.keys(l), ...Object.keys(r)])) {
      const found = firstDifference(l[key], r[key], `${path}.${key}`);
      if (found) return found;
    }
    return undefined;
  }
  return (x ?? undefined) === (y ?? undefined) ? undefined : [path, x, y];
}

function shown(x: unknown): string {
  if (x === undefined || x === null) return 'absent';
  const text = typeof x === 'object' ? JSON.stringify(x) : String(x);
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}
