/** The standard normal and Student's t. */
import { incompleteBeta, inverseIncompleteBeta } from './beta.ts';
import { gammaQ } from './gamma.ts';

/** P(Z ≤ z), accurate in both tails. */
export function normalCdf(z: number): number {
  const tail = gammaQ(0.5, (z * z) / 2) / 2;
  return z > 0 ? 1 - tail : tail;
}

/** The z with P(Z ≤ z) = p, to about 1e-15: Acklam's rational approximation (1.15e-9) and one Halley step. */
export function normalQuantile(p: number): number {
  if (!(p >= 0 && p <= 1)) return Number.NaN;
  if (p === 0) return Number.NEGATIVE_INFINITY;
  if (p === 1) return Number.POSITIVE_INFINITY;
  if (p > 0.5) return -normalQuantile(1 - p);
  let z: number;
  if (p < 0.02425) {
    const q = Math.sqrt(-2 * Math.log(p));
    z = polynomial(TAIL_TOP, q) / (polynomial(TAIL_BOTTOM, q) * q + 1);
  } else {
    const q = p - 0.5;
    const r = q * q;
    z = (polynomial(MIDDLE_TOP, r) * q) / (polynomial(MIDDLE_BOTTOM, r) * r + 1);
  }
  const step = (normalCdf(z) - p) * Math.sqrt(2 * Math.PI) * Math.exp((z * z) / 2);
  return Number.isFinite(step) ? z - step / (1 + (z * step) / 2) : z;
}

/** P(T ≤ t) with `df` > 0 degrees of freedom, not necessarily whole; df = ∞ is the normal. */
export function studentCdf(t: number, df: number): number {
  if (df === Number.POSITIVE_INFINITY) return normalCdf(t);
  if (!(df > 0) || Number.isNaN(t)) return Number.NaN;
  if (Math.abs(t) === Number.POSITIVE_INFINITY) return t > 0 ? 1 : 0;
  // Whichever of the two arguments is small keeps its digits.
  const tail =
    t * t < df
      ? (1 - incompleteBeta((t * t) / (df + t * t), 0.5, df / 2)) / 2
      : incompleteBeta(df / (df + t * t), df / 2, 0.5) / 2;
  return t > 0 ? 1 - tail : tail;
}

/** The t with P(T ≤ t) = p, with `df` > 0 degrees of freedom. */
export function studentQuantile(p: number, df: number): number {
  if (df === Number.POSITIVE_INFINITY) return normalQuantile(p);
  if (!(df > 0) || !(p >= 0 && p <= 1)) return Number.NaN;
  if (p === 0.5) return 0;
  if (p > 0.5) return -studentQuantile(1 - p, df);
  if (p === 0) return Number.NEGATIVE_INFINITY;
  if (p > 0.25) {
    const y = inverseIncompleteBeta(1 - 2 * p, 0.5, df / 2);
    return -Math.sqrt((df * y) / (1 - y));
  }
  const x = inverseIncompleteBeta(2 * p, df / 2, 0.5);
  return -Math.sqrt((df * (1 - x)) / x);
}

function polynomial(coefficients: readonly number[], x: number): number {
  return coefficients.reduce((sum, c) => sum * x + c, 0);
}

const MIDDLE_TOP = [
  -3.969683028665376e1, 2.209460984245205e2, -2.759285104469687e2, 1.38357751867269e2, -3.066479806614716e1,
  2.506628277459239,
];
const MIDDLE_BOTTOM = [
  -5.447609879822406e1, 1.615858368580409e2, -1.556989798598866e2, 6.680131188771972e1, -1.328068155288572e1,
];
const TAIL_TOP = [
  -7.784894002430293e-3, -3.223964580411365e-1, -2.400758277161838, -2.549732539343734, 4.374664141464968,
  2.938163982698783,
];
const TAIL_BOTTOM = [7.784695709041462e-3, 3.224671290700398e-1, 2.445134137142996, 3.754408661907416];
