/** What marginal histograms say of limits that must hold together: Fréchet's bounds over intervals, nothing tighter. */
import type { DurationConcept } from '../../core/evidence.ts';
import { histogramShare } from '../../stats/histogram.ts';
import type { Joint, MergeDocument, Merged, Share } from './document.ts';

/** Seconds. */
export type JointLimits = Readonly<Partial<Record<DurationConcept, number>>>;

export function jointOf(document: MergeDocument, limits: JointLimits): Joint {
  const notes: string[] = [];
  const shares: Partial<Record<DurationConcept, Share>> = {};
  const counted: Share[] = [];
  let complete = true;
  for (const [name, limit] of Object.entries(limits) as [DurationConcept, number][]) {
    const concept: Merged | undefined = document[name];
    const share = concept && shareOf(concept, limit);
    if (concept === undefined || share === undefined) {
      notes.push(
        `${name}: ${concept === undefined ? 'no server tells it' : 'it has no buckets of one meaning'}, so nothing is known of its limit`,
      );
      complete = false;
      continue;
    }
    shares[name] = share;
    if (share.low < share.high) {
      notes.push(
        `${name} ≤ ${limit} s: the limit lies within a bucket, so its share is only known to be from ${tidy(share.low)} to ${tidy(share.high)}`,
      );
    }
    if (name === 'itl') {
      notes.push(
        'itl is observed once a step or token: a share of those is no share of requests, and enters no joint attainment; limit tpot instead',
      );
      complete = false;
    } else counted.push(share);
  }
  const counts = counted.map((s) => s.count);
  if (new Set(counts).size > 1) {
    notes.push(
      `the limits are judged on different populations (${Object.entries(shares)
        .map(([n, s]) => `${n} ${s.count}`)
        .join(
          ', ',
        )}): ttft is recorded at the first token, the others at the finish; the bounds allow for the difference`,
    );
  }
  if (
    document.tpot?.notes !== undefined &&
    shares.tpot !== undefined &&
    document.tpot.meaning?.engine.includes('vLLM')
  ) {
    notes.push('requests of one token count as meeting the TPOT limit: vLLM records 0 for them');
  }
  if (counted.length > 0) {
    notes.push(
      'aborted and rejected requests left no observation: attainment over all offered requests is lower, by client records alone',
    );
  }
  if (counted.length < 2 || !complete) return { limits: shares, notes };
  // Over the smallest population: those outside it may all be good ones, or all bad ones.
  const n = Math.min(...counts);
  const low = counted.reduce((sum, s) => sum + Math.max(0, (s.low * s.count - (s.count - n)) / n), 1 - counted.length);
  const high = Math.min(...counted.map((s) => Math.min(1, (s.high * s.count) / n)));
  return { limits: shares, low: Math.max(0, low), high, notes };
}

function shareOf({ buckets, count, quantiles }: Merged, limit: number): Share | undefined {
  if (buckets === undefined || !count || quantiles === undefined) return undefined;
  const histogram = {
    bounds: buckets.map((b) => b.le ?? Number.POSITIVE_INFINITY),
    counts: buckets.map((b) => b.count),
    sum: Number.NaN,
  };
  const share = histogramShare(histogram, limit)!;
  return { limit_s: limit, ...share, count };
}

const tidy = (x: number): number => Number(x.toPrecision(4));
