/**
 * Where attainment crosses the target, by all that was seen so far: a logistic curve in log rate, fitted by weighted
 * maximum likelihood with a weak prior on its slope. It only chooses where to look next; nothing reported rests on it.
 */
import type { PerSecond } from '../../base/units.ts';

export interface Seen {
  readonly rate: PerSecond;
  readonly attainment: number;
  /** Independent operations it is worth. */
  readonly weight: number;
}

export interface Knee {
  readonly rate: PerSecond;
  /** Fall of the log-odds of attainment per unit of log rate, > 0. */
  readonly slope: number;
}

/** Prior of the slope: an exponential spread over these, in log-odds per e-fold of the rate. */
const SLOPE = { low: 4, prior: 20, high: 80 } as const;
const PRIOR_WEIGHT = 2;

/** @param within the knee is kept inside these rates. */
export function kneeOf(seen: readonly Seen[], target: number, within: readonly [number, number]): Knee {
  const middle = Math.log(Math.sqrt(within[0] * within[1]));
  const odds = Math.log(target / (1 - target));
  const points = seen.map((s) => ({
    x: Math.log(s.rate) - middle,
    n: Math.max(1, s.weight),
    // Half an operation kept from either end, so that 0 and 1 have log-odds.
    y: (s.attainment * s.weight + 0.5) / (s.weight + 1),
  }));
  let best = { at: 0, slope: SLOPE.prior as number, value: Number.NEGATIVE_INFINITY };
  const from = Math.log(within[0]) - middle;
  const to = Math.log(within[1]) - middle;
  // Two parameters, smooth: a grid is quick enough and cannot diverge.
  for (let i = 0; i <= 60; i++) {
    const at = from + ((to - from) * i) / 60;
    for (let j = 0; j <= 24; j++) {
      const slope = SLOPE.low * (SLOPE.high / SLOPE.low) ** (j / 24);
      let value = -PRIOR_WEIGHT * Math.log(slope / SLOPE.prior) ** 2;
      for (const p of points) {
        const z = odds - slope * (p.x - at);
        // log σ(z) and log σ(−z), without overflow.
        const good = -Math.log1p(Math.exp(-Math.abs(z))) + Math.min(0, z);
        value += p.n * (p.y * good + (1 - p.y) * (good - z));
      }
      if (value > best.value) best = { at, slope, value };
    }
  }
  return { rate: Math.exp(best.at + middle), slope: best.slope };
}
