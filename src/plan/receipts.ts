/**
 * What one client's records show of the steps of the engine behind them. When that client is the only load on one replica,
 * the streams between first and last output are the decodes in the batch, and every step hands each of them a token: the
 * receipts of one step are one observation of its duration, not as many as there are streams.
 */
import type { Millis } from '../base/units.ts';
import type { RequestRecord } from '../core/record.ts';

/** A request as its receipts show it. Tokens are one a receipt. */
export interface Stream {
  readonly sent: Millis;
  readonly at: Float64Array;
  /** Prompt tokens as the server counted them, or else as asked. */
  readonly input: number;
  /** Of them, found in a prefix cache. */
  readonly cached: number;
}

/** Why records were left out, counted. */
export interface LeftOut {
  /** No chunk stamps, or chunks that are not single tokens. */
  notPerToken: number;
  /** Ended badly: when it left the batch is not known. */
  broken: number;
}

export interface Receipts {
  readonly streams: readonly Stream[];
  readonly leftOut: LeftOut;
}

/** Gathers streams record by record. Memory: 8 bytes a receipt, up to `most` receipts; later records are not taken. */
export class ReceiptReader {
  readonly #streams: Stream[] = [];
  readonly #leftOut: LeftOut = { notPerToken: 0, broken: 0 };
  readonly #most: number;
  #receipts = 0;
  full = false;

  constructor(most = 8_000_000) {
    this.#most = most;
  }

  add(record: RequestRecord): void {
    const { timeline, stamps, usage } = record;
    if (record.outcome === 'unsent') return;
    const n = timeline.length;
    if (record.outcome !== 'completed' || n === 0 || stamps.sent === undefined) {
      this.#leftOut.broken++;
      return;
    }
    if (!isPerToken(record)) {
      this.#leftOut.notPerToken++;
      return;
    }
    if (this.#receipts + n > this.#most) {
      this.full = true;
      return;
    }
    this.#receipts += n;
    this.#streams.push({
      sent: stamps.sent,
      at: timeline.at.slice(0, n),
      input: usage?.input ?? record.asked.input,
      cached: usage?.cachedInput ?? 0,
    });
  }

  finish(): Receipts {
    this.#streams.sort((a, b) => a.sent - b.sent);
    return { streams: this.#streams, leftOut: { ...this.#leftOut } };
  }
}

/**
 * One token a chunk: by the chunks' own counts, or by as many chunks as the server counted tokens (one end token may be
 * counted and not seen).
 */
function isPerToken(record: RequestRecord): boolean {
  const { timeline, usage } = record;
  if (!record.streamed || record.asked.choices !== 1) return false;
  let known = true;
  for (let i = 0; i < timeline.length; i++) {
    const tokens = timeline.tokens[i]!;
    if (tokens > 1) return false;
    if (tokens < 0) known = false;
  }
  if (known) return true;
  return usage?.output !== undefined && Math.abs(usage.output - timeline.length) <= 1;
}

/** The receipts of one step. */
export interface Cluster {
  /** When most of them came. */
  readonly t: Millis;
  /** Which streams, and which token of each (0 is its first). */
  readonly streams: readonly number[];
  readonly tokens: readonly number[];
}

/** Tokens of a new stream that are held against the steps of those before it, to find where it joined. */
const TRIED = 8;

/**
 * Groups receipts into steps, in order. A stream in the batch has one token a step, so where it joined decides all its steps:
 * it is laid against the steps of the streams before it where its first tokens fit best. (Grouping by time alone breaks as
 * soon as a client or an engine is late for once.)
 */
export function clustersOf(streams: readonly Stream[]): Cluster[] {
  const order = streams.map((_, i) => i).sort((a, b) => streams[a]!.at[0]! - streams[b]!.at[0]!);
  /** Of each step: Σ and number of its receipts, and who they are. */
  const sum: number[] = [];
  const members: number[][] = [];
  const tokens: number[][] = [];
  let lastReceipt = Number.NEGATIVE_INFINITY;
  let start = 0;
  const time = (step: number): number => sum[step]! / members[step]!.length;
  for (const i of order) {
    const { at } = streams[i]!;
    let join = sum.length;
    if (at[0]! <= lastReceipt) join = best(at, start, sum.length, time);
    else start = sum.length; // nobody was streaming: a new beginning
    for (let j = 0; j < at.length; j++) {
      const step = join + j;
      if (step === sum.length) {
        sum.push(0);
        members.push([]);
        tokens.push([]);
      }
      sum[step]! += at[j]!;
      members[step]!.push(i);
      tokens[step]!.push(j);
    }
    lastReceipt = Math.max(lastReceipt, at[at.length - 1]!);
  }
  return members.map((m, step) => {
    const times = Float64Array.from(m, (i, k) => streams[i]!.at[tokens[step]![k]!]!).sort();
    return { t: times[times.length >> 1]!, streams: m, tokens: tokens[step]! };
  });
}

/** The step from `from` on that a stream's first tokens fit best. */
function best(at: Float64Array, from: number, end: number, time: (step: number) => number): number {
  let low = from;
  let high = end;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (time(mid) < at[0]!) low = mid + 1;
    else high = mid;
  }
  let found = Math.min(low, end - 1);
  let least = Number.POSITIVE_INFINITY;
  for (let step = Math.max(from, low - 2); step <= Math.min(end - 1, low + 1); step++) {
    const n = Math.min(TRIED, at.length, end - step);
    let off = 0;
    for (let j = 0; j < n; j++) off += Math.abs(at[j]! - time(step + j));
    if (off / n < least) [found, least] = [step, off / n];
  }
  return found;
}
