/** The run that is looked at, and what a contract makes of it. Every chart and figure reads these. */
import { batch, computed, effect, signal } from '@preact/signals';
import type { Contract } from '../src/core/contract.ts';
import { LEDGER } from '../src/core/judge.ts';
import {
  foldJudged,
  IN_COHORT,
  type Judged,
  type JudgedFold,
  judgePacked,
  keepsSmoothness,
  type Packed,
  roomFor,
  STREAMED,
} from '../src/dashboard/packed/index.ts';
import type { RunReport } from '../src/dashboard/run-data.ts';
import { type AttainmentInterval, attainmentInterval } from '../src/stats/attainment.ts';
import { afterPaint } from './after-paint.ts';
import { adjust, route } from './route.ts';
import { type Quadrants, quadrants } from './series.ts';
import { apiSource, type Source } from './source.ts';
import { isMoved, type Moved, moved, movedFromParams, paramsOfMoved } from './what-if.ts';

export const source = signal<Source>(apiSource);

export interface Loading<T> {
  readonly state: 'none' | 'loading' | 'there' | 'failed';
  readonly value?: T;
  readonly problem?: string;
}

export const report = signal<Loading<RunReport>>({ state: 'none' });
export const packed = signal<Loading<Packed>>({ state: 'none' });
let loadedId: string | undefined;

const message = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Loads a run, once; again when asked to. The report comes first, since it is small. */
export function openRun(id: string, again = false): void {
  if (id === loadedId && !again) return;
  loadedId = id;
  batch(() => {
    report.value = { state: 'loading' };
    packed.value = { state: 'loading' };
  });
  const mine = (): boolean => loadedId === id;
  source.value.report(id).then(
    (value) => mine() && (report.value = { state: 'there', value }),
    (error) => mine() && (report.value = { state: 'failed', problem: message(error) }),
  );
  source.value.packed(id).then(
    (value) => mine() && (packed.value = { state: 'there', value }),
    (error) => mine() && (packed.value = { state: 'failed', problem: message(error) }),
  );
}

/** The run named in the address, opened as soon as it is named. */
export const runId = computed(() => route.value.params.get('run') ?? undefined);
export function followAddress(): void {
  effect(() => {
    const id = runId.value;
    const { view } = route.value;
    if (id !== undefined && source.value.kind === 'api' && (view === 'run' || view === 'requests')) openRun(id);
  });
}

export const own = computed<Contract | undefined>(
  () => report.value.value?.report.contract ?? packed.value.value?.contract,
);
/** A term that is being moved right now, before it is in the address. */
const held = signal<Moved>({});
export const by = computed<Moved>(() => ({ ...movedFromParams(route.value.params), ...held.value }));
export const isWhatIf = computed(() => isMoved(by.value));
/** The contract in force: the run's own, unless terms were moved. JSON has no infinity, so no deadline comes as null. */
export const contract = computed<Contract | undefined>(() => {
  const base = own.value;
  if (!base) return undefined;
  const whole = { ...base, deadline: base.deadline ?? Number.POSITIVE_INFINITY };
  return isWhatIf.value ? moved(whole, by.value) : whole;
});

/** Moves terms. While dragging nothing is written to the address; `settle` does that. */
export function move(changes: Moved): void {
  held.value = { ...held.value, ...changes };
}
export function settle(): void {
  const base = own.value;
  const now = contract.value;
  if (!base || !now) return;
  batch(() => {
    held.value = {};
    adjust(paramsOfMoved({ ...base, deadline: base.deadline ?? Number.POSITIVE_INFINITY }, now));
  });
}
export function reset(): void {
  batch(() => {
    held.value = {};
    const base = own.value;
    if (base) adjust(paramsOfMoved(base, base));
  });
}

export interface Judgement {
  readonly packed: Packed;
  readonly contract: Contract;
  readonly judged: Judged;
  readonly fold: JudgedFold;
  /** Ms that judging and folding took. */
  readonly took: number;
  /** Smoothness is judged on values of the run's own schedule, which is not this contract's. */
  readonly staleSmoothness: boolean;
}

let room: Judged | undefined;

/** Verdicts on every row, made anew with every move. The arrays are used again: read them before the next. */
export const judgement = computed<Judgement | undefined>(() => {
  const p = packed.value.value;
  const c = contract.value;
  if (!p || !c) return undefined;
  const began = performance.now();
  if (room?.class.length !== p.rows) room = roomFor(p.rows);
  const judged = judgePacked(p, c, isWhatIf.value ? {} : p.contracts, room);
  const fold = foldJudged(p, judged);
  return {
    packed: p,
    contract: c,
    judged,
    fold,
    took: performance.now() - began,
    staleSmoothness: c.limits.smoothness !== undefined && !p.classes.every((name) => keepsSmoothness(p, c, name)),
  };
});

/**
 * What the charts draw: the judgement, a frame behind its figures. A moved limit changes the numbers at once, and thousands
 * of dots and bars do not hold them up.
 */
export const charted = signal<Judgement | undefined>(undefined);
const chartLater = afterPaint(() => (charted.value = judgement.value));

/** Of the judgement, by TTFT and TPOT together. */
export const quads = computed<Quadrants | undefined>(() => {
  const j = judgement.value;
  return j && quadrants(j.packed, j.judged);
});

/** The interval of attainment follows when a limit has come to rest, on long runs: it needs the whole series. */
export const interval = signal<AttainmentInterval | undefined>(undefined);
export const intervalPending = signal(false);
const AT_ONCE = 5000;
let timer: ReturnType<typeof setTimeout> | undefined;

export function followJudgement(): void {
  effect(() => {
    const j = judgement.value;
    clearTimeout(timer);
    if (j && charted.peek()?.packed === j.packed) chartLater();
    else charted.value = j;
    if (!j) {
      interval.value = undefined;
      return;
    }
    const compute = (): void => {
      batch(() => {
        interval.value = intervalOf(j);
        intervalPending.value = false;
      });
    };
    if (j.packed.rows <= AT_ONCE) compute();
    else {
      intervalPending.value = true;
      timer = setTimeout(compute, 200);
    }
  });
}

const GOOD = LEDGER.indexOf('good');
const UNDECIDED = LEDGER.indexOf('undecided');
/** What the run's own contract excludes, for which the stored autocorrelation time holds. */
let ownExcluded: { readonly packed: Packed; readonly bytes: Uint8Array } | undefined;

export function intervalOf({ packed: p, judged, contract: c }: Judgement): AttainmentInterval | undefined {
  if (ownExcluded?.packed !== p) {
    ownExcluded = { packed: p, bytes: judgePacked(p, p.contract, p.contracts).excluded };
  }
  const outcomes = new Uint8Array(p.rows);
  const latent = new Float64Array(p.rows);
  let n = 0;
  let same = c.boundary === p.contract.boundary;
  const shifted = c.boundary === 'dispatched';
  for (let i = 0; i < p.rows; i++) {
    if ((p.flags[i]! & IN_COHORT) === 0) continue;
    if (judged.excluded[i] !== ownExcluded.bytes[i]) same = false;
    if (judged.excluded[i] === 1) continue;
    outcomes[n] = judged.class[i] === GOOD ? 1 : judged.class[i] === UNDECIDED ? 2 : 0;
    const by = shifted ? p.lag[i]! : 0;
    const ttft = Math.round((p.ttft[i]! - by) * 1000) / 1000;
    const e2e = Math.round((p.e2e[i]! - by) * 1000) / 1000;
    const whole = (p.flags[i]! & STREAMED) === 0 && !Number.isNaN(e2e);
    latent[n++] = !Number.isNaN(ttft) ? ttft : whole ? e2e : Number.POSITIVE_INFINITY;
  }
  return attainmentInterval(outcomes.subarray(0, n), latent.subarray(0, n), 0.95, same ? p.latentTime : undefined);
}

/** Share of the cohort that was cancelled at its deadline: above 1 % it cannot pass. */
export function shedShare(p: Packed): number {
  const k = p.reasons.indexOf('deadline');
  if (k < 0) return 0;
  let shed = 0;
  let offered = 0;
  for (let i = 0; i < p.rows; i++) {
    if ((p.flags[i]! & IN_COHORT) === 0) continue;
    offered++;
    if (p.reason[i] === k) shed++;
  }
  return offered > 0 ? shed / offered : 0;
}
