/**
 * What a row of the cause table is: the evidence a cause predicts (signs and sizes, as probabilities of five states), what
 * decides for it, what contradicts it, the knob and its price, and where that is known from. Nothing is learnt: the
 * probabilities are declared, and shown beside the evidence.
 */
import type { FactId, States } from '../fact.ts';

/** Where the cause lies; decides whether it is a regression of the server. */
export type Locus = 'engine' | 'frontend' | 'path' | 'client' | 'workload' | 'fleet' | 'hardware' | 'intended';

export interface Cause {
  readonly id: string;
  readonly label: string;
  readonly locus: Locus;
  readonly predicts: Readonly<Partial<Record<FactId, States>>>;
  /** Facts that tell this cause from its neighbours: one of them at least must have been observed, and must speak for it. */
  readonly deciding: readonly FactId[];
  /**
   * A cause known by exclusion: of each group at least one fact must have been looked at, or what it would have shown is not
   * excluded and the cause is not named.
   */
  readonly needs?: readonly (readonly FactId[])[];
  /** Facts any of which refutes it when they are surely so: it is then not named, whatever else fits. */
  readonly refutedBy?: readonly (readonly [FactId, 'up' | 'flat' | 'down'])[];
  /** In words, for the report: what would speak against it. */
  readonly contradictedBy: string;
  readonly knob: string;
  /** What turning the knob costs the other metric. */
  readonly price: string;
  readonly source: string;
}

// States are: much down, down, flat, up, much up.
export const MUCH_UP: States = [0.004, 0.006, 0.03, 0.2, 0.76];
export const UP: States = [0.006, 0.014, 0.1, 0.46, 0.42];
/** Up or flat: a consequence that depends on the load. */
export const LEAN_UP: States = [0.01, 0.03, 0.4, 0.28, 0.28];
export const MAYBE_UP: States = [0.01, 0.04, 0.65, 0.2, 0.1];
export const FLAT: States = [0.005, 0.03, 0.93, 0.03, 0.005];
/** Nothing is predicted, little is likely. */
export const QUIET: States = [0.015, 0.065, 0.84, 0.065, 0.015];
export const ANY: States = [0.12, 0.18, 0.4, 0.18, 0.12];
export const NOT_UP: States = [0.15, 0.2, 0.635, 0.01, 0.005];
export const NOT_DOWN: States = [0.005, 0.01, 0.445, 0.28, 0.26];

const mirrored = (s: States): States => [s[4], s[3], s[2], s[1], s[0]];
export const MUCH_DOWN = mirrored(MUCH_UP);
export const DOWN = mirrored(UP);
export const LEAN_DOWN = mirrored(LEAN_UP);
export const MAYBE_DOWN = mirrored(MAYBE_UP);

/** Changed with probability `p`, whichever way. */
export const told = (p: number): States => [p / 4, p / 4, 1 - p, p / 4, p / 4];
/** Changed with probability `p`, and to more of what it is about; the wrong way speaks against it. */
export const toldUp = (p: number): States => [0.005 * p, 0.005 * p, 1 - p, 0.495 * p, 0.495 * p];
export const toldDown = (p: number): States => mirrored(toldUp(p));

/** What a fact does when no cause at work says anything of it. */
export function usual(id: FactId): States {
  if (id.startsWith('flag.')) return told(id === 'flag.other' ? 0.1 : 0.025);
  if (id === 'version') return told(0.25);
  if (id === 'deployed') return told(0.15);
  if (id === 'chosen') return told(0.5);
  if (id === 'opposed') return [0, 0, 0.86, 0.1, 0.04];
  if (id === 'started' || id === 'restarted') return told(0.15);
  if (id === 'loaded') return told(0.04);
  if (id === 'one_class') return [0, 0, 0.86, 0.1, 0.04];
  if (id === 'alike' || id === 'typical') return ANY;
  // Follow TTFT.
  if (id === 'ttft_early') return [0.08, 0.12, 0.4, 0.2, 0.2];
  // Follow from TTFT moving at all.
  if (id === 'ttft_share' || id === 'bimodal' || id === 'early' || id === 'long_short')
    return [0.04, 0.1, 0.68, 0.13, 0.05];
  if (id === 'part.queue' || id === 'waiting') return [0.03, 0.08, 0.7, 0.13, 0.06];
  return QUIET;
}

/** What more work for the same engine brings along, by how near it is to its capacity. */
export const LOADED: Cause['predicts'] = {
  ttft: UP,
  ttft_p50: UP,
  ttft_p99: UP,
  tpot: LEAN_UP,
  itl_p50: LEAN_UP,
  itl_p99: LEAN_UP,
  gap: LEAN_UP,
  latency: UP,
  'part.queue': LEAN_UP,
  'part.prefill': LEAN_UP,
  path: MAYBE_UP,
  prefill_per_token: LEAN_UP,
  alike: [0.01, 0.05, 0.44, 0.25, 0.25],
  waiting: LEAN_UP,
  running: UP,
  running_max: LEAN_UP,
  kv_usage: LEAN_UP,
  step_tokens: LEAN_UP,
  step_tail: MAYBE_UP,
  preemptions: [0.005, 0.015, 0.86, 0.09, 0.03],
  stall_time: MAYBE_UP,
  stall_prefill: ANY,
  bimodal: ANY,
  early: ANY,
  long_short: ANY,
  ttft_share: MAYBE_UP,
  replica_ttft: ANY,
};
