/**
 * One line of the flat table of what was observed: a sign with its size, interval, population and source, and how probable
 * each of five states is given that. Causes predict states; nothing here knows of causes.
 */
import type { FlagTopic } from './changes.ts';
import { below, type Source } from './estimate.ts';
import type { RowId } from './fact-rows.ts';
import type { Unit } from './quantities.ts';

/** Much down, down, flat, up, much up. */
export type States = readonly [number, number, number, number, number];

export type FactKind = 'ratio' | 'difference' | 'share' | 'told';

export interface Fact {
  readonly id: FactId;
  readonly label: string;
  readonly a?: number;
  readonly b?: number;
  /** ln(b/a), b − a, or a share of the change, as `kind` says. */
  readonly effect: number;
  readonly se: number;
  readonly kind: FactKind;
  readonly unit: Unit | 'share of ΔTTFT' | 'told';
  readonly states: States;
  readonly source: Source | 'changes';
  readonly population: string;
}

export type FactId =
  | RowId
  | `flag.${FlagTopic}`
  | 'version'
  | 'deployed'
  | 'started'
  | 'loaded'
  | 'chosen'
  | 'restarted'
  | 'alike'
  | 'opposed'
  | 'typical'
  | 'path';

export type Facts = ReadonlyMap<FactId, Fact>;

/** Probabilities of the five states; bounds are soft by a fifth of themselves, so that no figure tips at a hair. */
export function statesOf(effect: number, se: number, small: number, large: number): States {
  const at = (bound: number): number => below(effect, Math.hypot(se, 0.2 * Math.abs(bound)), bound);
  const [p1, p2, p3, p4] = [at(-large), at(-small), at(small), at(large)];
  const raw = [p1, Math.max(0, p2 - p1), Math.max(0, p3 - p2), Math.max(0, p4 - p3), 1 - p4];
  const sum = raw.reduce((s, x) => s + Math.max(0, x), 0);
  return raw.map((x) => Math.max(0, x) / sum) as unknown as States;
}
