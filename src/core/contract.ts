/**
 * A latency contract: what must hold, jointly, on one operation for it to count as good, and what share must be good.
 * Defaults fail closed.
 */
import type { Millis, Share } from '../base/units.ts';
import type { FinishClass } from './outcome.ts';

/** Where an operation's clock starts. `scheduled` counts the client's own queue, so that nothing is omitted. */
export type Boundary = 'scheduled' | 'dispatched';

/** Limits that must all hold on the same operation. Times in ms are upper limits; smoothness is a lower one. */
export interface Limits {
  readonly ttft?: Millis;
  readonly ttfa?: Millis;
  readonly tpot?: Millis;
  /** The largest chunk gap. */
  readonly gap?: Millis;
  readonly smoothness?: Share;
  /** Last-token latency. */
  readonly latency?: Millis;
  readonly e2e?: Millis;
}

export type LimitName = keyof Limits;

/** Every limit, in the order they are printed. Only ever appended to. */
export const LIMIT_NAMES: readonly LimitName[] = ['ttft', 'ttfa', 'tpot', 'gap', 'smoothness', 'latency', 'e2e'];

/** The schedule that smoothness is held against: the TTFT and TPOT limits. */
export interface SmoothnessSchedule {
  readonly ttft: Millis;
  readonly tpot: Millis;
}

export interface Validity {
  /** Fewest streamed tokens (chunks, where tokens are unknown) of a valid response. 1: an empty one is invalid. */
  readonly minTokens: number;
  /** Fewest output tokens as a share of those asked for; 0 asks nothing. */
  readonly minShareOfAsked: Share;
  /** Finishes that are a valid end. */
  readonly finish: readonly FinishClass[];
}

/** How the edges are classed. */
export interface Cases {
  /** `not-good` counts against; `observed`: a limit already broken counts against, else excluded; `exclude` always. */
  readonly cancelled: 'not-good' | 'observed' | 'exclude';
  /** A whole answer without a stream: `unmeasurable` limits make it late; `skip` judges what can be; `exclude`. */
  readonly nonStreamed: 'unmeasurable' | 'skip' | 'exclude';
  /** A limit undefined because the answer is one token: met `vacuous`ly, or `late`. */
  readonly oneToken: 'vacuous' | 'late';
  /** A limit that could not be measured. */
  readonly unmeasurable: 'late' | 'skip' | 'exclude';
}

export interface Contract {
  readonly name: string;
  readonly boundary: Boundary;
  readonly limits: Limits;
  /** An operation not complete this long after its start is timed out, also if it completes later. */
  readonly deadline: Millis;
  readonly valid: Validity;
  readonly cases: Cases;
  /** The attainment target: the share of operations that must be good. */
  readonly attainment: Share;
}

export const CONTRACT_DEFAULTS: Omit<Contract, 'name' | 'limits'> = {
  boundary: 'scheduled',
  deadline: 30_000,
  valid: { minTokens: 1, minShareOfAsked: 0, finish: ['stop', 'length', 'tool', 'other'] },
  cases: { cancelled: 'not-good', nonStreamed: 'unmeasurable', oneToken: 'vacuous', unmeasurable: 'late' },
  attainment: 0.9,
};

/** The contract a traffic class is judged by. */
export type ContractFor = (trafficClass: string) => Contract;

/** Classes under contracts of their own, the others under the run's. */
export function contractFor(contract: Contract, classes: Readonly<Record<string, Contract>> = {}): ContractFor {
  return (name) => (Object.hasOwn(classes, name) ? (classes[name] as Contract) : contract);
}

/** A contract from its limits, the rest by default. */
export function contractOf(limits: Limits, rest: Partial<Omit<Contract, 'limits'>> = {}): Contract {
  return { ...CONTRACT_DEFAULTS, name: 'custom', ...rest, limits };
}

/** The smoothness schedule a contract implies, when it names both limits. */
export function smoothnessSchedule(limits: Limits): SmoothnessSchedule | undefined {
  const { ttft, tpot } = limits;
  return ttft === undefined || tpot === undefined ? undefined : { ttft, tpot };
}

/** The tightest TPOT or gap limit: what the client's own event-loop delay is held against. */
export function tightestCadence(limits: Limits): Millis | undefined {
  const cadence = Math.min(limits.tpot ?? Number.POSITIVE_INFINITY, limits.gap ?? Number.POSITIVE_INFINITY);
  return Number.isFinite(cadence) ? cadence : undefined;
}
