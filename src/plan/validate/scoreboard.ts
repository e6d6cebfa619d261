/** The scoreboard: what the model says of data others measured, section by section, and what is on record. */
import type { Share } from '../../base/units.ts';
import type { Deployment } from '../../model/deployment.ts';
import { IdealStepModel } from '../../model/ideal.ts';
import { type InterferenceData, type InterferenceScore, median, scoreInterference } from './interference.ts';
import { kneeAttainment, kneeOf, type kneeSystems, SHAREGPT } from './knees.ts';
import type { LeftOut, LeftOutPass } from './left-out.ts';
import { RECORDED } from './margins.ts';
import { leaveOneOut } from './refit.ts';
import {
  blocks,
  errorsOf,
  figures,
  fitLog,
  type LogFigures,
  type LogFit,
  logModel,
  type RequestLog,
  replayed,
} from './request-log.ts';
import {
  byKey,
  calibratedFor,
  type ErrorSummary,
  rowErrors,
  type ServedRow,
  type ServedTable,
  summaryOfErrors,
  whyUnscored,
} from './served.ts';

export interface ServedScore {
  readonly read: number;
  readonly configurations: number;
  readonly left: Readonly<Record<string, number>>;
  readonly floor: ServedTable['floor'];
  readonly kinds: Readonly<Record<string, ErrorSummary>>;
  readonly groups: Readonly<Record<string, ErrorSummary>>;
  /** The closed form on the same rows, for comparison. */
  readonly ideal: Readonly<Record<string, ErrorSummary>>;
  /** TTFT of rows it is not scored on, by the reason. */
  readonly unscored: Readonly<Record<string, { readonly rows: number; readonly ttft: number }>>;
  readonly left_out: LeftOut;
  /** `left_out.model.kinds` and `left_out.gpu.kinds`, under the keys they were first published by. */
  readonly without_model: LeftOut['model']['kinds'];
  readonly without_gpu: LeftOut['gpu']['kinds'];
}

export function kindOf({ on }: ServedRow): string {
  if (on.model.moe) return 'experts';
  return /^h[12]00/.test(on.accelerator.id) ? 'dense H100, H200' : 'dense elsewhere';
}

/** One shape under several names (DeepSeek V3 and R1) is one model: leaving out a name alone would leave nothing out. */
function shapeOf(rows: readonly ServedRow[]): (row: ServedRow) => string {
  const names = new Map<string, string>();
  const shape = ({ on: { model: m } }: ServedRow): string => [m.layers, m.hidden, m.heads, m.moe?.experts].join();
  for (const row of rows) if (!names.has(shape(row))) names.set(shape(row), row.on.model.name);
  return (row) => names.get(shape(row)) as string;
}

const plain = <T>(map: ReadonlyMap<string, T>): Record<string, T> => Object.fromEntries(map);

/** Leave-one-model-out and leave-one-accelerator-out, each group simulated under a fit on all the others. */
export function scoreLeftOut(
  rows: readonly ServedRow[],
  go: (what: string, done: number, of: number) => boolean = () => true,
): LeftOut {
  const pass = (what: string, key: (row: ServedRow) => string): LeftOutPass => {
    const { errors, undone } = leaveOneOut(rows, key, (k, i, n) => go(`${what} ${k}`, i, n));
    const all = [...errors.values()].flat();
    return {
      kinds: plain(byKey(all, kindOf)),
      groups: plain(byKey(all, key)),
      undone,
    };
  };
  return {
    on: 'now',
    model: pass('without', shapeOf(rows)),
    gpu: pass('without', (r) => r.on.accelerator.id),
  };
}

export function scoreServed(table: ServedTable, leftOut: LeftOut): ServedScore {
  const { rows } = table;
  const errors = rowErrors(rows, calibratedFor);
  const ideal = rowErrors(rows, ({ on }) => ({ step: new IdealStepModel(on), frontendMs: 0, frontendTokenUs: 0 }));
  const reasons = new Map<string, number[]>();
  for (const e of errors) {
    const why = whyUnscored(e.row);
    if (why !== undefined) (reasons.get(why) ?? reasons.set(why, []).get(why))?.push(Math.abs(e.ttft));
  }
  return {
    read: table.read,
    configurations: rows.length,
    left: plain(table.left),
    floor: table.floor,
    kinds: { all: summaryOfErrors(errors), ...plain(byKey(errors, kindOf)) },
    groups: plain(byKey(errors, (r) => `${r.on.model.name} × ${r.on.accelerator.id} × ${r.engine}`)),
    ideal: plain(byKey(ideal, kindOf)),
    unscored: plain(new Map([...reasons].map(([why, e]) => [why, { rows: e.length, ttft: median(e) }]))),
    left_out: leftOut,
    without_model: leftOut.model.kinds,
    without_gpu: leftOut.gpu.kinds,
  };
}

export interface LogScore {
  readonly fitted_on: string;
  /** Null where there is but one run: its held-out blocks then stand alone. */
  readonly predicted: string | null;
  readonly fit: LogFit;
  /** Signed relative errors: on the blocks of the fit, on those held out, and on the other run. */
  readonly fit_blocks: Readonly<Record<keyof LogFigures, number>>;
  readonly held_blocks: Readonly<Record<keyof LogFigures, number>>;
  readonly other: Readonly<Record<keyof LogFigures, number>> | null;
}

/** Length of a time block: several requests come in each, and a 29 s burst has ten. */
const BLOCK_MS = 3000;

export function scoreLogs(logs: readonly RequestLog[]): LogScore[] {
  return logs.flatMap((from): LogScore[] => {
    const parts = blocks(from.requests, BLOCK_MS);
    const fit = fitLog(from, parts.fit, BLOCK_MS);
    const own = replayed(from, logModel(from.on, fit));
    const over = (which: readonly number[]) =>
      errorsOf(
        figures(which.map((i) => own[i] as (typeof own)[number])),
        figures(which.map((i) => from.requests[i] as (typeof own)[number])),
      );
    const own_blocks = { fitted_on: from.name, fit, fit_blocks: over(parts.fit), held_blocks: over(parts.held) };
    if (logs.length === 1) return [{ ...own_blocks, predicted: null, other: null }];
    return logs
      .filter((to) => to !== from)
      .map((to) => ({
        ...own_blocks,
        predicted: to.name,
        other: errorsOf(figures(replayed(to, logModel(to.on, fit))), figures(to.requests)),
      }));
  });
}

export interface KneeCurve {
  readonly rates: readonly number[];
  /** Published attainment, shares. */
  readonly vllm: readonly Share[];
  readonly distserve: readonly Share[];
  readonly slo: { readonly ttft: number; readonly tpot: number };
}

export interface KneeScore {
  readonly system: 'vllm' | 'distserve';
  readonly assumption: string;
  readonly rows: readonly { readonly rate: number; readonly measured: Share; readonly simulated: Share }[];
  /** Largest difference where the published attainment is above one half. */
  readonly worst: number;
  readonly knee: { readonly measured: number | null; readonly simulated: number | null };
}

/** Runs as short as the published ones, from an empty system, so that overload has no time to build up for ever. */
const KNEE_EFFORT = { requests: 300, replications: 10, seed: 1 };

export function scoreKnees(systems: ReturnType<typeof kneeSystems>, curve: KneeCurve): KneeScore[] {
  return (['vllm', 'distserve'] as const).map((system) => {
    const rows = curve.rates.map((rate, i) => ({
      rate,
      measured: curve[system][i] as Share,
      simulated: kneeAttainment(systems[system], rate, curve.slo, KNEE_EFFORT),
    }));
    return {
      system,
      assumption: `${SHAREGPT.text}; runs of ${KNEE_EFFORT.requests} requests from an empty system; chosen with the published curves in view, so a fit and no prediction`,
      rows,
      worst: Math.max(...rows.filter((r) => r.measured > 0.5).map((r) => Math.abs(r.simulated - r.measured))),
      knee: {
        measured:
          kneeOf(
            curve.rates,
            rows.map((r) => r.measured),
            0.9,
          ) ?? null,
        simulated:
          kneeOf(
            curve.rates,
            rows.map((r) => r.simulated),
            0.9,
          ) ?? null,
      },
    };
  });
}

export interface Scoreboard {
  readonly served?: ServedScore;
  readonly requests?: readonly LogScore[];
  readonly knees?: readonly KneeScore[];
  readonly interference?: InterferenceScore;
}

export function interferenceScore(on: Deployment, data: InterferenceData): InterferenceScore {
  return scoreInterference(on, data);
}

export interface Check {
  readonly name: string;
  readonly value: number;
  readonly recorded: number;
  readonly most: number;
  readonly ok: boolean;
}

/** Every figure on record that the data at hand give. @param sameRows the served table is the one on record. */
export function checksOf(board: Scoreboard, sameRows: boolean): Check[] {
  const seen = new Map<string, number>();
  if (sameRows) {
    for (const [kind, e] of Object.entries(board.served?.kinds ?? {})) {
      seen.set(`served/${kind}/tpot`, e.tpot);
      if (e.ttft !== null) seen.set(`served/${kind}/ttft`, e.ttft);
    }
    for (const of of ['model', 'gpu'] as const) {
      const { kinds, undone } = board.served?.left_out[of] ?? { kinds: {}, undone: [''] };
      // What is on record proves nothing of itself; of a pass cut short the kinds are of fewer rows.
      if (board.served?.left_out.on !== 'now' || undone.length > 0) continue;
      for (const [kind, e] of Object.entries(kinds)) {
        seen.set(`left out/${of}/${kind}/tpot`, e.tpot);
        if (e.ttft !== null) seen.set(`left out/${of}/${kind}/ttft`, e.ttft);
      }
    }
  }
  for (const log of board.requests ?? []) {
    if (!log.other) continue;
    for (const key of ['makespan', 'tpot', 'prefill'] as const) {
      seen.set(`requests/${log.fitted_on} → ${log.predicted}/${key}`, Math.abs(log.other[key]));
    }
  }
  for (const knee of board.knees ?? []) seen.set(`knees/${knee.system}/attainment`, knee.worst);
  if (board.interference) {
    seen.set('interference/chunked', board.interference.chunked);
    seen.set('interference/mixed', board.interference.mixed);
  }
  return Object.entries(RECORDED).flatMap(([name, { value: recorded, margin }]) => {
    const value = seen.get(name);
    return value === undefined
      ? []
      : [{ name, value, recorded, most: recorded + margin, ok: value <= recorded + margin }];
  });
}
