/** The scoreboard: what the model says of data others measured, section by section, and what is on record. */
import type { Share } from '../../base/units.ts';
import { calibrated } from '../../model/calibrated.ts';
import type { Deployment } from '../../model/deployment.ts';
import { IdealStepModel } from '../../model/ideal.ts';
import { type InterferenceData, type InterferenceScore, scoreInterference } from './interference.ts';
import { kneeAttainment, kneeOf, type kneeSystems, SHAREGPT } from './knees.ts';
import { RECORDED } from './margins.ts';
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
  type ErrorSummary,
  leaveOneOut,
  rowErrors,
  type ServedRow,
  type ServedTable,
  summaryOfErrors,
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
  readonly without_model: Readonly<Record<string, ErrorSummary>>;
  readonly without_gpu: Readonly<Record<string, ErrorSummary>>;
}

export function kindOf({ on }: ServedRow): string {
  if (on.model.moe) return 'experts';
  return /^h[12]00/.test(on.accelerator.id) ? 'dense H100, H200' : 'dense elsewhere';
}

export function scoreServed(table: ServedTable, leaveOut: boolean): ServedScore {
  const { rows } = table;
  const errors = rowErrors(rows, (on) => calibrated(on).step);
  const plain = <T>(map: ReadonlyMap<string, T>): Record<string, T> => Object.fromEntries(map);
  return {
    read: table.read,
    configurations: rows.length,
    left: plain(table.left),
    floor: table.floor,
    kinds: { all: summaryOfErrors(errors), ...plain(byKey(errors, kindOf)) },
    groups: plain(byKey(errors, (r) => `${r.on.model.name} × ${r.on.accelerator.id} × ${r.engine}`)),
    ideal: plain(
      byKey(
        rowErrors(rows, (on) => new IdealStepModel(on)),
        kindOf,
      ),
    ),
    without_model: leaveOut ? plain(leaveOneOut(rows, (r) => r.on.model.name)) : {},
    without_gpu: leaveOut ? plain(leaveOneOut(rows, (r) => r.on.accelerator.id)) : {},
  };
}

export interface LogScore {
  readonly fitted_on: string;
  readonly predicted: string;
  readonly fit: LogFit;
  /** Signed relative errors: on the blocks of the fit, on those held out, and on the other run. */
  readonly fit_blocks: Readonly<Record<keyof LogFigures, number>>;
  readonly held_blocks: Readonly<Record<keyof LogFigures, number>>;
  readonly other: Readonly<Record<keyof LogFigures, number>>;
}

/** Length of a time block: several requests come in each, and a 29 s burst has ten. */
const BLOCK_MS = 3000;

export function scoreLogs(logs: readonly RequestLog[]): LogScore[] {
  return logs.flatMap((from) => {
    const parts = blocks(from.requests, BLOCK_MS);
    const fit = fitLog(from, parts.fit, BLOCK_MS);
    const own = replayed(from, logModel(from.on, fit));
    const over = (which: readonly number[]) =>
      errorsOf(
        figures(which.map((i) => own[i] as (typeof own)[number])),
        figures(which.map((i) => from.requests[i] as (typeof own)[number])),
      );
    return logs
      .filter((to) => to !== from)
      .map((to) => ({
        fitted_on: from.name,
        predicted: to.name,
        fit,
        fit_blocks: over(parts.fit),
        held_blocks: over(parts.held),
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
      assumption: `${SHAREGPT.text}; runs of ${KNEE_EFFORT.requests} requests from an empty system`,
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
  }
  for (const log of board.requests ?? []) {
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
