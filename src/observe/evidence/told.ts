import type { Meaning } from '../../core/evidence.ts';
import type { Histogram } from '../../stats/histogram.ts';

/** What was told of one concept. Of a duration or size: count, sum and buckets; of a total: count; of a gauge: value. */
export interface Told {
  readonly meaning: Meaning;
  readonly count?: number;
  readonly sum?: number;
  readonly histogram?: Histogram;
  readonly by?: Readonly<Record<string, number>>;
  readonly value?: number;
}
