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
  readonly streams: Int32Array;
  readonly tokens: Int32Array;
}

/**
 * Groups receipts into steps. A stream has one token a step, so a second one begins the next step; so does a silence that is
 * long against the streams' own cadence.
 */
export function clustersOf(streams: readonly Stream[]): Cluster[] {
  let total = 0;
  for (const s of streams) total += s.at.length;
  const stream = new Int32Array(total);
  const token = new Int32Array(total);
  const at = new Float64Array(total);
  let k = 0;
  streams.forEach((s, i) => {
    for (let j = 0; j < s.at.length; j++, k++) {
      stream[k] = i;
      token[k] = j;
      at[k] = s.at[j]!;
    }
  });
  const order = Uint32Array.from({ length: total }, (_, i) => i).sort(
    (a, b) => at[a]! - at[b]! || token[a]! - token[b]!,
  );
  const usual = medianGap(streams);
  /** Cadence around a receipt: the shorter of the gaps before and after it. */
  const cadence = (r: number): number => {
    const s = streams[stream[r]!]!;
    const j = token[r]!;
    const before = j > 0 ? s.at[j]! - s.at[j - 1]! : Number.POSITIVE_INFINITY;
    const after = j + 1 < s.at.length ? s.at[j + 1]! - s.at[j]! : Number.POSITIVE_INFINITY;
    const own = Math.min(before > 0.05 * usual ? before : usual, after > 0.05 * usual ? after : usual);
    return Number.isFinite(own) ? own : usual;
  };
  const clusters: Cluster[] = [];
  const seen = new Int32Array(streams.length).fill(-1);
  let from = 0;
  const close = (to: number): void => {
    if (to === from) return;
    const members = order.subarray(from, to);
    clusters.push({
      t: at[members[members.length >> 1]!]!,
      streams: Int32Array.from(members, (r) => stream[r]!),
      tokens: Int32Array.from(members, (r) => token[r]!),
    });
    from = to;
  };
  for (let i = 0; i < total; i++) {
    const r = order[i]!;
    if (i > from) {
      const last = order[i - 1]!;
      const silence = at[r]! - at[last]!;
      if (seen[stream[r]!] === clusters.length || silence > 0.4 * Math.min(cadence(r), cadence(last))) close(i);
    }
    seen[stream[r]!] = clusters.length;
  }
  close(total);
  return clusters;
}

function medianGap(streams: readonly Stream[]): Millis {
  const gaps: number[] = [];
  for (const s of streams) {
    const stride = Math.max(1, Math.floor(s.at.length / 50));
    for (let j = stride; j < s.at.length; j += stride) gaps.push(s.at[j]! - s.at[j - 1]!);
  }
  gaps.sort((a, b) => a - b);
  return gaps[gaps.length >> 1] ?? 10;
}
