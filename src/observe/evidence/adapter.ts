/** What an engine's metrics mean: one file an engine under `adapters/`, all in one table. */
import type { Concept, Meaning, Role } from '../../core/evidence.ts';
import type { Told } from './told.ts';

/** One canonical concept, and under which names an engine tells it. */
export interface Mapped extends Omit<Meaning, 'metric'> {
  readonly concept: Concept;
  /** As exposed, without the engine's prefix and `_total`; the name of the newest version first. */
  readonly names: readonly string[];
  /** The names are parts to be added, not alternatives. */
  readonly added?: true;
  /** Only series with one of these values of a label. */
  readonly where?: Readonly<Record<string, readonly string[]>>;
  /** The label by which a total is told apart, where the engine splits it. */
  readonly by?: string;
  /** What the exposed value is multiplied by: 1e-6 for microseconds. */
  readonly scale?: number;
  /** A counter that is the sum, or the count, of a duration's observations. */
  readonly part?: 'sum' | 'count';
  /** What a reader must know whenever this is there. */
  readonly note?: string;
}

export interface Adapter {
  /** The engine's name, as it is shown. */
  readonly engine: string;
  readonly role: Role;
  /**
   * The name within the engine, where `name` is one of its metrics. `labels` of a series decide where two tellers use the
   * same names: a router that re-exports its engines' metrics.
   */
  readonly local: (name: string) => string | undefined;
  readonly owns?: (labels: Readonly<Record<string, string>>) => boolean;
  readonly metrics: readonly Mapped[];
  /** Mends what the engine is known to tell wrongly, and says so. */
  readonly mend?: (told: Map<Concept, Told>, notes: string[], model: string | undefined) => void;
  /** Said of every replica of this engine. */
  readonly notes?: readonly string[];
}

/** `prefix` with `:` or, where something rewrote the colon, `_`; Ray and KServe put theirs before it. */
export function prefixed(...prefixes: readonly string[]): Adapter['local'] {
  const all = prefixes.flatMap((p) => (p.endsWith(':') ? [p, `${p.slice(0, -1)}_`] : [p]));
  return (name) => {
    const bare = name.startsWith('ray_') ? name.slice(4) : name.startsWith('kserve_') ? name.slice(7) : name;
    const prefix = all.find((p) => bare.startsWith(p));
    return prefix === undefined ? undefined : bare.slice(prefix.length);
  };
}
