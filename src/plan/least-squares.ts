/**
 * Small least squares with coefficients that cannot be negative (a cost of a step never is), from normal equations: sums
 * over observations, so that time blocks add and resampling them costs nothing.
 */

/** Xᵀ W X (row-major, n × n), Xᵀ W y, and how many rows went in. */
export class Normal {
  readonly n: number;
  readonly gram: Float64Array;
  readonly rhs: Float64Array;
  rows = 0;

  constructor(n: number) {
    this.n = n;
    this.gram = new Float64Array(n * n);
    this.rhs = new Float64Array(n);
  }

  /** @param w the row's weight: 1/σ² of its `y`. */
  add(x: ArrayLike<number>, y: number, w: number): void {
    const { n, gram, rhs } = this;
    for (let i = 0; i < n; i++) {
      const a = w * x[i]!;
      if (a === 0) continue;
      rhs[i]! += a * y;
      for (let j = 0; j < n; j++) gram[i * n + j]! += a * x[j]!;
    }
    this.rows++;
  }

  merge(other: Normal, times = 1): void {
    for (let i = 0; i < this.gram.length; i++) this.gram[i]! += times * other.gram[i]!;
    for (let i = 0; i < this.rhs.length; i++) this.rhs[i]! += times * other.rhs[i]!;
    this.rows += times * other.rows;
  }

  /** Root of each diagonal element: the norm of the column. */
  scales(): Float64Array {
    return Float64Array.from({ length: this.n }, (_, i) => Math.sqrt(this.gram[i * this.n + i]!));
  }
}

/**
 * Non-negative least squares by active sets (Lawson and Hanson 1974, ch. 23), on the normal equations with columns scaled to
 * unit norm. A column without data stays 0.
 */
export function nonNegative(normal: Normal, use: readonly boolean[] = new Array(normal.n).fill(true)): Float64Array {
  const { n } = normal;
  const scale = normal.scales();
  const live = Array.from({ length: n }, (_, i) => use[i] === true && scale[i]! > 0);
  const a = (i: number, j: number): number => normal.gram[i * n + j]! / (scale[i]! * scale[j]!);
  const b = (i: number): number => normal.rhs[i]! / scale[i]!;
  const x = new Float64Array(n);
  const free = new Set<number>();
  const gradient = (i: number): number => {
    let g = b(i);
    for (const j of free) g -= a(i, j) * x[j]!;
    return g;
  };
  let most = 0;
  for (let i = 0; i < n; i++) if (live[i]) most = Math.max(most, Math.abs(b(i)));
  for (let round = 0; round < 10 * n; round++) {
    let best = -1;
    let bestGradient = 1e-10 * most;
    for (let i = 0; i < n; i++) {
      if (!live[i] || free.has(i)) continue;
      const g = gradient(i);
      if (g > bestGradient) [best, bestGradient] = [i, g];
    }
    if (best < 0) break;
    free.add(best);
    for (let inner = 0; inner < 3 * n; inner++) {
      const index = [...free];
      const z = solve(
        index.map((i) => index.map((j) => a(i, j))),
        index.map((i) => b(i)),
      );
      if (z.every((v) => v > 0)) {
        x.fill(0);
        index.forEach((i, k) => {
          x[i] = z[k]!;
        });
        break;
      }
      // As far towards z as no coefficient falls below 0; those that reach it leave.
      let step = 1;
      index.forEach((i, k) => {
        if (z[k]! <= 0) step = Math.min(step, x[i]! / (x[i]! - z[k]!));
      });
      index.forEach((i, k) => {
        x[i]! += step * (z[k]! - x[i]!);
        if (z[k]! <= 0 && x[i]! <= 1e-12) {
          x[i] = 0;
          free.delete(i);
        }
      });
      if (free.size === 0) break;
    }
  }
  return Float64Array.from(x, (v, i) => (live[i] ? v / scale[i]! : 0));
}

/** Gaussian elimination with pivoting of a small symmetric system; a dependent column gets 0. */
function solve(a: number[][], b: number[]): number[] {
  const n = b.length;
  const m = a.map((row, i) => [...row, b[i]!]);
  for (let c = 0; c < n; c++) {
    let p = c;
    for (let r = c + 1; r < n; r++) if (Math.abs(m[r]![c]!) > Math.abs(m[p]![c]!)) p = r;
    [m[c], m[p]] = [m[p]!, m[c]!];
    const pivot = m[c]![c]!;
    if (Math.abs(pivot) < 1e-13) {
      m[c]![c] = 1e300;
      continue;
    }
    for (let r = c + 1; r < n; r++) {
      const f = m[r]![c]! / pivot;
      if (f !== 0) for (let k = c; k <= n; k++) m[r]![k]! -= f * m[c]![k]!;
    }
  }
  const x = new Array<number>(n).fill(0);
  for (let r = n - 1; r >= 0; r--) {
    let sum = m[r]![n]!;
    for (let k = r + 1; k < n; k++) sum -= m[r]![k]! * x[k]!;
    x[r] = sum / m[r]![r]!;
  }
  return x;
}

/** What of the columns in use can be told apart: of their matrix scaled to unit columns. */
export interface Conditioning {
  /** Largest over smallest singular value. */
  readonly number: number;
  /** The direction that the data see least, one weight a column (0 for those not in use), of unit length. */
  readonly weakest: Float64Array;
}

/** By Jacobi rotations of the scaled normal matrix. */
export function conditioning(normal: Normal, use: readonly boolean[]): Conditioning {
  const scale = normal.scales();
  const index = Array.from({ length: normal.n }, (_, i) => i).filter((i) => use[i] && scale[i]! > 0);
  const k = index.length;
  const a = index.map((i) => index.map((j) => normal.gram[i * normal.n + j]! / (scale[i]! * scale[j]!)));
  const v = index.map((_, i) => index.map((__, j): number => (i === j ? 1 : 0)));
  for (let sweep = 0; sweep < 60; sweep++) {
    let off = 0;
    for (let p = 0; p < k; p++) {
      for (let q = p + 1; q < k; q++) {
        off += a[p]![q]! ** 2;
        if (Math.abs(a[p]![q]!) < 1e-300) continue;
        const theta = (a[q]![q]! - a[p]![p]!) / (2 * a[p]![q]!);
        const t = Math.sign(theta || 1) / (Math.abs(theta) + Math.sqrt(theta * theta + 1));
        const c = 1 / Math.sqrt(t * t + 1);
        const s = t * c;
        for (let r = 0; r < k; r++) {
          const [x, y] = [a[r]![p]!, a[r]![q]!];
          a[r]![p] = c * x - s * y;
          a[r]![q] = s * x + c * y;
        }
        for (let r = 0; r < k; r++) {
          const [x, y] = [a[p]![r]!, a[q]![r]!];
          a[p]![r] = c * x - s * y;
          a[q]![r] = s * x + c * y;
          const [g, h] = [v[r]![p]!, v[r]![q]!];
          v[r]![p] = c * g - s * h;
          v[r]![q] = s * g + c * h;
        }
      }
    }
    if (off < 1e-22) break;
  }
  let low = 0;
  let high = 0;
  for (let i = 1; i < k; i++) {
    if (a[i]![i]! < a[low]![low]!) low = i;
    if (a[i]![i]! > a[high]![high]!) high = i;
  }
  const weakest = new Float64Array(normal.n);
  if (k === 0) return { number: 1, weakest };
  index.forEach((i, r) => {
    weakest[i] = v[r]![low]!;
  });
  return { number: Math.sqrt(a[high]![high]! / Math.max(1e-16, a[low]![low]!)), weakest };
}
