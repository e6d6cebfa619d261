/** The gamma function and its incomplete forms, to about 1e-14 relative. */

/** Coefficients of Stirling's series, B₂ₖ / (2k(2k−1)) (Abramowitz & Stegun 6.1.41). */
const STIRLING = [1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156];

/** ln Γ(x) for x > 0: Stirling's series above 10, reached by recurrence below. */
export function logGamma(x: number): number {
  if (!(x > 0)) return Number.NaN;
  let product = 1;
  let y = x;
  while (y < 10) product *= y++;
  const inverse = 1 / (y * y);
  let series = 0;
  for (let i = STIRLING.length - 1; i >= 0; i--) series = series * inverse + STIRLING[i]!;
  return (y - 0.5) * Math.log(y) - y + 0.5 * Math.log(2 * Math.PI) + series / y - Math.log(product);
}

/**
 * The regularised lower incomplete gamma function P(a, x), a > 0, x ≥ 0: the distribution function of a gamma variable of
 * shape a and scale 1. Series below a + 1, continued fraction above (Numerical Recipes 6.2).
 */
export function gammaP(a: number, x: number): number {
  if (!(a > 0) || !(x >= 0)) return Number.NaN;
  if (x === 0) return 0;
  if (x === Number.POSITIVE_INFINITY) return 1;
  return x < a + 1 ? series(a, x) : 1 - fraction(a, x);
}

/** The upper one, Q(a, x) = 1 − P(a, x), without cancellation in the tail. */
export function gammaQ(a: number, x: number): number {
  if (!(a > 0) || !(x >= 0)) return Number.NaN;
  if (x === 0) return 1;
  if (x === Number.POSITIVE_INFINITY) return 0;
  return x < a + 1 ? 1 - series(a, x) : fraction(a, x);
}

/** P(X ≤ x) of a chi-square variable with `df` degrees of freedom. */
export function chiSquareCdf(x: number, df: number): number {
  return gammaP(df / 2, Math.max(0, x) / 2);
}

function series(a: number, x: number): number {
  let term = 1 / a;
  let sum = term;
  for (let n = 1; n < 100_000; n++) {
    term *= x / (a + n);
    sum += term;
    if (term < sum * 1e-17) break;
  }
  return Math.min(1, sum * Math.exp(a * Math.log(x) - x - logGamma(a)));
}

/** Lentz's evaluation of the continued fraction. */
function fraction(a: number, x: number): number {
  const tiny = 1e-300;
  let b = x + 1 - a;
  let c = 1 / tiny;
  let d = 1 / b;
  let h = d;
  for (let i = 1; i < 100_000; i++) {
    const an = -i * (i - a);
    b += 2;
    d = an * d + b;
    if (Math.abs(d) < tiny) d = tiny;
    c = b + an / c;
    if (Math.abs(c) < tiny) c = tiny;
    d = 1 / d;
    const delta = d * c;
    h *= delta;
    if (Math.abs(delta - 1) < 1e-16) break;
  }
  return Math.min(1, h * Math.exp(a * Math.log(x) - x - logGamma(a)));
}
