/**
 * One mergeable, serialisable sketch of non-negative values: logarithmic buckets of constant relative width (Masson, Rim,
 * Lee 2019, "DDSketch", the dense store that collapses its lowest buckets). A quantile of it lies within the relative
 * accuracy of the exact type-7 quantile, whatever the distribution. Count, minimum and maximum are exact, the sum is
 * compensated. The state depends on the multiset of values alone: merged shards equal one sketch of everything.
 */
import { InputError } from '../base/errors.ts';

/** The plain form of a sketch; JSON-safe. `counts[i]` is the bucket of key `first + i`. Added in 0.1. */
export interface SketchData {
  readonly version: 1;
  /** Relative accuracy of a quantile. */
  readonly accuracy: number;
  readonly maxBuckets: number;
  /** Values equal to 0, and values of +∞. */
  readonly zeros: number;
  readonly infinite: number;
  /** Σ of the finite values. */
  readonly sum: number;
  /** Extremes of the finite positive values; null without one. */
  readonly minPositive: number | null;
  readonly maxFinite: number | null;
  readonly first: number;
  readonly counts: readonly number[];
}

export interface SketchOptions {
  /** Relative accuracy α of a quantile, in (0, 0.5). Default 0.005. */
  readonly accuracy?: number;
  /** Most buckets kept, default 4096: at 0.5 % they span 17 decades. Beyond it the lowest collapse into one. */
  readonly maxBuckets?: number;
}

export interface SketchBucket {
  /** Values in (low, high]; the zero bucket is [0, 0], that of +∞ (∞, ∞). */
  readonly low: number;
  readonly high: number;
  readonly count: number;
}

export class LogSketch {
  readonly accuracy: number;
  readonly maxBuckets: number;
  readonly #gamma: number;
  readonly #scale: number; // 1 / ln γ
  #counts = new Float64Array(128);
  /** Key of `#counts[0]`. */
  #base = 0;
  /** Keys present lie in [#low, #high]; empty when #low > #high. */
  #low = Number.POSITIVE_INFINITY;
  #high = Number.NEGATIVE_INFINITY;
  #count = 0;
  #zeros = 0;
  #infinite = 0;
  #sum = 0;
  #carry = 0; // Neumaier's compensation of #sum
  #minPositive = Number.POSITIVE_INFINITY;
  #maxFinite = 0;

  constructor(options: SketchOptions = {}) {
    this.accuracy = options.accuracy ?? 0.005;
    this.maxBuckets = options.maxBuckets ?? 4096;
    if (!(this.accuracy > 0 && this.accuracy < 0.5)) {
      throw new InputError(`sketch: an accuracy of ${this.accuracy} is not between 0 and 0.5; 0.005 is 0.5 %`);
    }
    if (!(Number.isInteger(this.maxBuckets) && this.maxBuckets >= 2 && this.maxBuckets <= 1 << 20)) {
      throw new InputError(`sketch: ${this.maxBuckets} buckets is not a whole number from 2 to 1048576`);
    }
    this.#gamma = (1 + this.accuracy) / (1 - this.accuracy);
    this.#scale = 1 / Math.log(this.#gamma);
  }

  /** Values added, +∞ included. */
  get count(): number {
    return this.#count;
  }
  /** How many of them were +∞ (operations that never had the event). */
  get infinite(): number {
    return this.#infinite;
  }
  /** Σ of the finite values. */
  get sum(): number {
    return this.#sum + this.#carry;
  }
  /** The mean; +∞ when any value is, undefined when empty. */
  get mean(): number | undefined {
    if (this.#count === 0) return undefined;
    return this.#infinite > 0 ? Number.POSITIVE_INFINITY : this.sum / this.#count;
  }
  get min(): number | undefined {
    if (this.#count === 0) return undefined;
    return this.#zeros > 0 ? 0 : this.#minPositive;
  }
  get max(): number | undefined {
    if (this.#count === 0) return undefined;
    return this.#infinite > 0 ? Number.POSITIVE_INFINITY : this.#maxFinite;
  }
  /** True when the lowest buckets were collapsed: quantiles that fall there are only known to lie at or below them. */
  get collapsed(): boolean {
    return this.#low <= this.#high && this.#key(this.#minPositive) < this.#high - this.maxBuckets + 1;
  }

  /** Adds `times` values `x ≥ 0` (+∞ allowed). @throws InputError for a negative value or NaN: never a measured duration. */
  add(x: number, times = 1): void {
    if (!(x >= 0)) throw new InputError(`sketch: ${x} is not a non-negative number`);
    this.#count += times;
    if (x === Number.POSITIVE_INFINITY) {
      this.#infinite += times;
      return;
    }
    if (x === 0) {
      this.#zeros += times;
      return;
    }
    this.#addSum(x * times);
    if (x < this.#minPositive) this.#minPositive = x;
    if (x > this.#maxFinite) this.#maxFinite = x;
    const key = Math.ceil(Math.log(x) * this.#scale);
    if (key < this.#low || key > this.#high) this.#addOutside(key, times);
    else this.#counts[key - this.#base]! += times;
  }

  /** Adds everything `other` holds. @throws InputError when accuracies or bucket limits differ: that merge is not exact. */
  merge(other: LogSketch): void {
    if (other.accuracy !== this.accuracy || other.maxBuckets !== this.maxBuckets) {
      throw new InputError(
        `sketch: cannot merge accuracy ${other.accuracy} with ${other.maxBuckets} buckets into accuracy ${this.accuracy} with ${this.maxBuckets}; make both with the same options`,
      );
    }
    // Highest first, so that the floor is settled before anything is placed; a copy lets a sketch merge itself.
    const [low, high, base, counts] = [other.#low, other.#high, other.#base, other.#counts.slice()];
    for (let key = high; key >= low; key--) {
      const n = counts[key - base]!;
      if (n === 0) continue;
      if (key < this.#low || key > this.#high) this.#addOutside(key, n);
      else this.#counts[key - this.#base]! += n;
    }
    this.#count += other.#count;
    this.#zeros += other.#zeros;
    this.#infinite += other.#infinite;
    const carry = other.#carry;
    this.#addSum(other.#sum);
    this.#addSum(carry);
    this.#minPositive = Math.min(this.#minPositive, other.#minPositive);
    this.#maxFinite = Math.max(this.#maxFinite, other.#maxFinite);
  }

  /**
   * The type-7 quantile at `p` in [0, 1], within the relative `accuracy` of the exact one (unless `collapsed` reaches it).
   * One that touches a value of +∞ is +∞. Undefined when empty.
   */
  quantile(p: number): number | undefined {
    return this.quantiles([p])[0];
  }

  /** `quantile` for several `ps`, in their order; undefined for each when empty. */
  quantiles(ps: readonly number[]): (number | undefined)[] {
    return ps.map((p) => {
      if (!(p >= 0 && p <= 1)) throw new InputError(`quantile: ${p} is not between 0 and 1`);
      if (this.#count === 0) return undefined;
      const h = (this.#count - 1) * p;
      const near = Math.round(h);
      if (Math.abs(h - near) <= 4 * Number.EPSILON * h) return this.#atRank(near); // 0.29 × 100 is rank 29
      const low = Math.floor(h);
      const a = this.#atRank(low);
      const b = this.#atRank(low + 1);
      return a === b || b === Number.POSITIVE_INFINITY ? b : a + (h - low) * (b - a);
    });
  }

  /** Share of the values ≤ x as bounds, since x falls inside a bucket: the truth lies in [low, high]. Undefined when empty. */
  shareAtMost(x: number): { readonly low: number; readonly high: number } | undefined {
    if (this.#count === 0) return undefined;
    let low = x >= 0 ? this.#zeros : 0;
    let high = low;
    if (x >= this.#maxFinite) low = high = this.#count - this.#infinite;
    else if (x >= this.#minPositive) {
      const key = this.#key(x);
      for (let k = this.#low; k <= Math.min(key, this.#high); k++) {
        const n = this.#counts[k - this.#base]!;
        high += n;
        if (k < key) low += n;
      }
      if (key < this.#low) high += this.#counts[this.#low - this.#base]!; // inside the collapsed floor
    }
    return { low: low / this.#count, high: high / this.#count };
  }

  /** The non-empty buckets, ascending: for charts and exports. */
  *buckets(): Generator<SketchBucket> {
    if (this.#zeros > 0) yield { low: 0, high: 0, count: this.#zeros };
    const floor = this.collapsed ? this.#low : Number.NEGATIVE_INFINITY;
    for (let k = this.#low; k <= this.#high; k++) {
      const count = this.#counts[k - this.#base]!;
      if (count > 0) yield { low: k === floor ? 0 : this.#gamma ** (k - 1), high: this.#gamma ** k, count };
    }
    const inf = Number.POSITIVE_INFINITY;
    if (this.#infinite > 0) yield { low: inf, high: inf, count: this.#infinite };
  }

  toJSON(): SketchData {
    const empty = this.#low > this.#high;
    return {
      version: 1,
      accuracy: this.accuracy,
      maxBuckets: this.maxBuckets,
      zeros: this.#zeros,
      infinite: this.#infinite,
      sum: this.sum,
      minPositive: empty ? null : this.#minPositive,
      maxFinite: empty ? null : this.#maxFinite,
      first: empty ? 0 : this.#low,
      counts: empty ? [] : Array.from(this.#counts.subarray(this.#low - this.#base, this.#high - this.#base + 1)),
    };
  }

  /** @throws InputError when `data` is not the plain form of a sketch. */
  static from(data: SketchData): LogSketch {
    const bad = (what: string): never => {
      throw new InputError(`sketch: ${what}; the file is damaged or of another version`);
    };
    if (data?.version !== 1) bad(`unknown version ${String(data?.version)}`);
    const sketch = new LogSketch({ accuracy: data.accuracy, maxBuckets: data.maxBuckets });
    if (!Array.isArray(data.counts) || data.counts.length > sketch.maxBuckets) bad('counts is not a list of buckets');
    if (!Number.isSafeInteger(data.first)) bad('first is not a whole number');
    const whole = (n: number, name: string): number =>
      Number.isSafeInteger(n) && n >= 0 ? n : bad(`${name} is not a count`);
    sketch.#zeros = whole(data.zeros, 'zeros');
    sketch.#infinite = whole(data.infinite, 'infinite');
    sketch.#count = sketch.#zeros + sketch.#infinite;
    for (let i = data.counts.length - 1; i >= 0; i--) {
      const n = whole(data.counts[i]!, `counts[${i}]`);
      if (n === 0) continue;
      sketch.#addOutside(data.first + i, n);
      sketch.#count += n;
    }
    if (!(data.sum >= 0)) bad('sum is not a number');
    sketch.#sum = data.sum;
    if (sketch.#low <= sketch.#high) {
      const { minPositive: low, maxFinite: high } = data;
      if (low === null || high === null || !(low > 0 && low <= high && high < Number.POSITIVE_INFINITY)) {
        return bad('the extremes are not finite positive numbers');
      }
      if (sketch.#key(high) !== sketch.#high) bad('the largest value is not in the highest bucket');
      sketch.#minPositive = low;
      sketch.#maxFinite = high;
    }
    return sketch;
  }

  #key(x: number): number {
    return Math.ceil(Math.log(x) * this.#scale);
  }

  #addSum(x: number): void {
    const sum = this.#sum + x;
    this.#carry += this.#sum >= x ? this.#sum - sum + x : x - sum + this.#sum;
    this.#sum = sum;
  }

  /** Value at a 0-based rank: its bucket's midpoint in the relative sense, clamped to the exact extremes. */
  #atRank(rank: number): number {
    if (rank >= this.#count - this.#infinite) return Number.POSITIVE_INFINITY;
    let seen = this.#zeros;
    if (rank < seen) return 0;
    if (rank === seen) return this.#minPositive;
    if (rank === this.#count - this.#infinite - 1) return this.#maxFinite;
    for (let k = this.#low; k <= this.#high; k++) {
      seen += this.#counts[k - this.#base]!;
      if (rank < seen) {
        const mid = (2 * this.#gamma ** k) / (this.#gamma + 1);
        return Math.min(Math.max(mid, this.#minPositive), this.#maxFinite);
      }
    }
    return this.#maxFinite;
  }

  /** Counts `n` at a key that may lie outside the keys present: grows the store, or collapses below the floor. */
  #addOutside(key: number, n: number): void {
    const high = Math.max(this.#high, key);
    const floor = high - this.maxBuckets + 1;
    const low = Math.max(Math.min(this.#low, key), floor);
    if (low < this.#base || high >= this.#base + this.#counts.length || this.#low > this.#high) {
      const size = Math.min(this.maxBuckets, 2 * (high - low + 1) + 64);
      const base = Math.max(floor, low - ((size - (high - low + 1)) >> 1));
      const grown = new Float64Array(size);
      for (let k = this.#low; k <= this.#high; k++) grown[Math.max(k, low) - base]! += this.#counts[k - this.#base]!;
      this.#counts = grown;
      this.#base = base;
    } else if (this.#low < low) {
      let below = 0;
      for (let k = this.#low; k < Math.min(low, this.#high + 1); k++) {
        below += this.#counts[k - this.#base]!;
        this.#counts[k - this.#base] = 0;
      }
      this.#counts[low - this.#base]! += below;
    }
    this.#low = low;
    this.#high = high;
    this.#counts[Math.max(key, low) - this.#base]! += n;
  }
}
