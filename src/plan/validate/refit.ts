/**
 * Efficiencies fitted on served rows: shares of the hardware's peaks common to all engines, and what an engine adds of its
 * own (launches, scheduling, kernels of experts, its frontend). Fitted in closed form, anchored by simulation: what is
 * simulated over what the closed form says is taken at the current coefficients, held, and taken again.
 */
import type { Millis } from '../../base/units.ts';
import { SERVED_2026 } from '../../model/calibrated.ts';
import type { EngineFit, EngineName } from '../../model/engines.ts';
import { type Efficiencies, RooflineStepModel } from '../../model/roofline.ts';
import { emptyBatch } from '../../model/step.ts';
import {
  engineOf,
  PROMPT_BUDGET,
  type RowError,
  type RowModel,
  rowErrors,
  type ServedRow,
  simulatedRow,
  ttftScored,
} from './served.ts';

/** A coefficient: where a fit starts (a round figure, so that nothing of the rows is in it) and between what it stays. */
type Range = readonly [start: number, low: number, high: number];

/** Of the hardware and the kernels all engines use. */
const SHARED = {
  linearMemory: [0.75, 0.4, 0.95],
  linearCompute: [0.7, 0.3, 0.95],
  linearMemory4: [0.6, 0.3, 0.95],
  linearCompute4: [0.5, 0.1, 0.95],
  attentionMemory: [0.85, 0.4, 0.95],
  activationBytes: [10, 2, 40],
  routedBytes: [4, 0.2, 40],
  collectiveUs: [8, 2, 30],
  linkShare: [0.6, 0.2, 0.95],
} as const satisfies Partial<Record<keyof Efficiencies, Range>>;

/** Of one engine. */
const OWN = {
  expertMemory: [0.6, 0.2, 0.95],
  expertCompute: [0.3, 0.03, 0.95],
  layerUs: [10, 1, 80],
  expertLayerUs: [15, 1, 120],
  prefillLayerUs: [50, 1, 600],
  stepUs: [200, 20, 4000],
  sequenceUs: [10, 1, 100],
  cpuStepUs: [1500, 100, 10_000],
  cpuSequenceUs: [20, 1, 200],
  frontendMs: [30, 1, 300],
  frontendTokenUs: [2, 0.05, 50],
} as const satisfies Record<string, Range>;

type SharedName = keyof typeof SHARED;
type OwnName = keyof typeof OWN;
type Coefficients = Readonly<Record<SharedName, number>>;
type Own = Readonly<Record<OwnName, number>>;

export interface Fitted {
  readonly shared: Coefficients;
  readonly own: Readonly<Record<EngineName, Own>>;
}

const startOf = <K extends string>(ranges: Readonly<Record<K, Range>>): Record<K, number> =>
  Object.fromEntries(Object.entries<Range>(ranges).map(([k, r]) => [k, r[0]])) as Record<K, number>;

/** How engines schedule prompts: SGLang runs them before the decodes, the others with them. */
export const SEPARATE: Readonly<Record<EngineName, boolean>> = { vllm: false, trtllm: false, sglang: true };

export function engineFit(f: Fitted, engine: EngineName, source: string): EngineFit {
  const { frontendMs, frontendTokenUs, ...own } = f.own[engine];
  return {
    efficiencies: { ...SERVED_2026, ...f.shared, ...own, separate: SEPARATE[engine], oneShot: true, source },
    frontendMs,
    frontendTokenUs,
  };
}

/** A row's model under a fit; rows of unknown engines under vLLM's. */
export function fittedFor(f: Fitted): (row: ServedRow) => RowModel {
  return (row) => {
    const { efficiencies, ...frontend } = engineFit(f, engineOf(row.engine) ?? 'vllm', 'refit');
    return { step: new RooflineStepModel(row.on, efficiencies), ...frontend };
  };
}

/** Rows taken of a model × accelerator × engine × precision, spread over its concurrencies and lengths. */
const EACH = 8;
/** Weight of TTFT beside TPOT, and of a coefficient's pull towards its start, in log space. */
const TTFT_WEIGHT = 0.35;
const PULL = 0.0004;
/** A row off by more than a factor of two is of something the table does not say (replicas, a prefix cache): it pulls no further. */
const MOST = Math.log(2);
const ANCHORS = 4;

/** Rows of engines that are not known teach nothing. */
export function refit(rows: readonly ServedRow[]): Fitted {
  const sample = sampleOf(rows.filter((r) => engineOf(r.engine) !== undefined));
  let at: Fitted = { shared: startOf(SHARED), own: { vllm: startOf(OWN), sglang: startOf(OWN), trtllm: startOf(OWN) } };
  for (let i = 0; i < ANCHORS; i++)
    at = descendOn(
      sample.map((row) => anchor(row, at)),
      at,
      i === 0 ? 1.6 : 1.3,
    );
  return at;
}

function sampleOf(rows: readonly ServedRow[]): ServedRow[] {
  const groups = new Map<string, ServedRow[]>();
  for (const row of rows) {
    const key = [row.on.model.name, row.on.accelerator.id, row.engine, row.precision].join();
    const group = groups.get(key);
    if (group) group.push(row);
    else groups.set(key, [row]);
  }
  return [...groups.values()].flatMap((group) => {
    const order = [...group].sort((a, b) => a.concurrency - b.concurrency || a.input - b.input || a.output - b.output);
    if (order.length <= EACH) return order;
    return Array.from({ length: EACH }, (_, i) => order[Math.floor(((i + 0.5) * order.length) / EACH)] as ServedRow);
  });
}

interface Anchored {
  readonly row: ServedRow;
  /** Simulated over closed form. */
  readonly ttft: number;
  readonly tpot: number;
}

function anchor(row: ServedRow, at: Fitted): Anchored {
  const m = fittedFor(at)(row);
  const s = simulatedRow(row, m.step, m);
  const c = closedForm(row, m);
  const ratio = (a: number, b: number): number => (Number.isFinite(a / b) ? Math.min(20, Math.max(0.05, a / b)) : 1);
  return { row, ttft: ratio(s.ttft, c.ttft), tpot: ratio(s.tpot, c.tpot) };
}

/**
 * TPOT: a decode step, and for each token its share of the steps with prompts in them. TTFT: the frontend, the step in
 * progress, the prompt; in the first of the rounds half of all prompts.
 */
export function closedForm(
  row: Pick<ServedRow, 'concurrency' | 'input' | 'output'>,
  { step, frontendMs, frontendTokenUs }: RowModel,
): { readonly ttft: Millis; readonly tpot: Millis } {
  const { concurrency: n, input, output } = row;
  const batch = { ...emptyBatch(), decodeSequences: n, decodeTokens: n, decodeKv: n * (input + output / 2) };
  const decode = step.stepMs(batch);
  const chunk = Math.min(input, PROMPT_BUDGET);
  const prompt = {
    prefillSequences: 1,
    prefillTokens: chunk,
    prefillCompletes: 1,
    prefillKv: input,
    prefillSquares: chunk * input,
  };
  const steps = input / chunk;
  const mixed = steps * step.stepMs({ ...batch, ...prompt });
  const alone = steps * step.stepMs({ ...emptyBatch(), ...prompt });
  const tpot = decode + (n / output) * (mixed - steps * decode);
  const ttft = frontendMs + (frontendTokenUs * input) / 1000 + decode / 2 + mixed + (alone * (n - 1)) / 12;
  return { ttft, tpot };
}

type Key = { readonly engine?: EngineName; readonly name: string };

/** Coordinate descent over factors; a coefficient of one engine is held against that engine's rows alone. */
function descendOn(rows: readonly Anchored[], start: Fitted, factor0: number): Fitted {
  const engines = Object.keys(start.own) as EngineName[];
  const of = new Map(engines.map((e) => [e, rows.filter((r) => r.row.engine === e)]));
  const pull = (values: Readonly<Record<string, number>>, ranges: Readonly<Record<string, Range>>): number =>
    Object.entries(values).reduce((s, [k, v]) => s + PULL * Math.log(v / (ranges[k] as Range)[0]) ** 2, 0);
  const lossOf = (at: Fitted, e: EngineName): number => {
    const fit = engineFit(at, e, 'refit');
    let sum = 0;
    for (const a of of.get(e) as readonly Anchored[]) {
      const c = closedForm(a.row, { ...fit, step: new RooflineStepModel(a.row.on, fit.efficiencies) });
      sum += Math.min(MOST, Math.abs(Math.log((a.tpot * c.tpot) / a.row.tpot)));
      if (ttftScored(a.row)) sum += TTFT_WEIGHT * Math.min(MOST, Math.abs(Math.log((a.ttft * c.ttft) / a.row.ttft)));
    }
    return sum / rows.length + pull(at.own[e], OWN);
  };
  const keys: Key[] = [
    ...Object.keys(SHARED).map((name) => ({ name })),
    ...engines.flatMap((engine) => Object.keys(OWN).map((name) => ({ engine, name }))),
  ];
  let best = start;
  let losses = new Map(engines.map((e) => [e, lossOf(best, e)]));
  for (let factor = factor0; factor > 1.015; factor = Math.sqrt(factor)) {
    for (let moved = true, pass = 0; moved && pass < 8; pass++) {
      moved = false;
      for (const key of keys) {
        for (const by of [factor, 1 / factor]) {
          const tried = scaled(best, key, by);
          const next = new Map(losses);
          for (const e of key.engine ? [key.engine] : engines) next.set(e, lossOf(tried, e));
          const total = (l: ReadonlyMap<EngineName, number>, f: Fitted): number =>
            [...l.values()].reduce((a, b) => a + b, 0) + pull(f.shared, SHARED);
          if (total(next, tried) < total(losses, best) - 1e-6) {
            best = tried;
            losses = next;
            moved = true;
          }
        }
      }
    }
  }
  return best;
}

function scaled(at: Fitted, { engine, name }: Key, by: number): Fitted {
  const within = (value: number, [, low, high]: Range): number => Math.min(high, Math.max(low, value * by));
  if (!engine) {
    const k = name as SharedName;
    return { ...at, shared: { ...at.shared, [k]: within(at.shared[k], SHARED[k]) } };
  }
  const k = name as OwnName;
  const own = { ...at.own[engine], [k]: within(at.own[engine][k], OWN[k]) };
  return { ...at, own: { ...at.own, [engine]: own } };
}

/**
 * Each group predicted by a fit on all the others, where there are any. `go` is asked before each: false leaves out what is left.
 */
export function leaveOneOut(
  rows: readonly ServedRow[],
  key: (row: ServedRow) => string,
  go: (group: string, done: number, of: number) => boolean = () => true,
): { readonly errors: ReadonlyMap<string, readonly RowError[]>; readonly undone: readonly string[] } {
  const keys = [...new Set(rows.map(key))];
  const errors = new Map<string, readonly RowError[]>();
  const undone: string[] = [];
  for (const [i, k] of keys.entries()) {
    const others = rows.filter((r) => key(r) !== k);
    if (!others.some((r) => engineOf(r.engine)) || !go(k, i, keys.length)) {
      undone.push(k);
      continue;
    }
    const f = refit(others);
    const held = rows.filter((r) => key(r) === k);
    errors.set(k, rowErrors(held, fittedFor(f)));
  }
  return { errors, undone };
}
