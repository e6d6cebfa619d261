/**
 * What a client saw of each request as a whole: when it was sent, its first and its last output, its lengths. Enough to hold
 * a simulation of the same arrivals against, where receipts do not show single steps.
 */
import type { Millis } from '../base/units.ts';
import { measure } from '../core/measure.ts';
import type { RequestRecord } from '../core/record.ts';
import type { Stream } from './receipts.ts';

/** A completed request. Durations are from `sent`. */
export interface Seen {
  readonly sent: Millis;
  readonly input: number;
  readonly output: number;
  readonly ttft: Millis;
  /** From the first to the last output; undefined for one token, or where both came in one receipt. */
  readonly decode?: Millis;
  /** Mean time a token after the first. */
  readonly tpot?: Millis;
  readonly e2e: Millis;
  /** The longest a token kept the client waiting; undefined where chunks are not single tokens. */
  readonly maxGap?: Millis;
}

/** Gathers them, bounded: a simulation of more says no more. */
export class SeenReader {
  readonly #seen: Seen[] = [];
  readonly #most: number;
  /** Not completed: what load they were is not known. */
  broken = 0;
  /** No length, or no first output of its own. */
  unusable = 0;

  constructor(most = 20_000) {
    this.#most = most;
  }

  add(record: RequestRecord): void {
    const { stamps, usage, timeline } = record;
    if (record.outcome === 'unsent' || this.#seen.length >= this.#most) return;
    if (record.outcome !== 'completed') {
      this.broken++;
      return;
    }
    const sent = stamps.sent ?? stamps.dispatched ?? stamps.scheduled;
    const { firstOutput: first, lastOutput: last } = stamps;
    const metrics = measure(record);
    const input = usage?.input ?? record.asked.input;
    const output = usage?.output ?? metrics.n ?? record.asked.output;
    if (!record.streamed || first === undefined || last === undefined || !(input > 0) || !(output > 0)) {
      this.unusable++;
      return;
    }
    const single = output > 1 && Math.abs(timeline.length - output) <= 1;
    this.#seen.push({
      sent,
      input: Math.max(1, input - (usage?.cachedInput ?? 0)),
      output,
      ttft: first - sent,
      e2e: (stamps.ended ?? last) - sent,
      ...(output > 1 && last > first && { decode: last - first, tpot: (last - first) / (output - 1) }),
      ...(single && metrics.gap !== undefined && { maxGap: metrics.gap }),
    });
  }

  finish(): readonly Seen[] {
    return this.#seen.sort((a, b) => a.sent - b.sent);
  }
}

/** Most streams between first and last output at once. */
export function mostDecoding(seen: readonly Seen[]): number {
  const events: [Millis, number][] = [];
  for (const s of seen) {
    if (s.decode === undefined) continue;
    events.push([s.sent + s.ttft, 1], [s.sent + s.ttft + s.decode, -1]);
  }
  events.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  let now = 0;
  let most = 0;
  for (const [, d] of events) {
    now += d;
    most = Math.max(most, now);
  }
  return most;
}

/** Most tokens of context held at once by those between first and last output, looked at as each begins and ends. */
export function mostContext(seen: readonly Seen[]): number {
  const looks = seen.flatMap((s) => [s.sent + s.ttft, s.sent + s.ttft + (s.decode ?? 0)]).sort((a, b) => a - b);
  const order = [...seen].sort((a, b) => a.sent + a.ttft - (b.sent + b.ttft));
  let active: Seen[] = [];
  let next = 0;
  let most = 0;
  for (const t of looks) {
    while (next < order.length && order[next]!.sent + order[next]!.ttft <= t) active.push(order[next++]!);
    active = active.filter((s) => s.sent + s.ttft + (s.decode ?? 0) >= t);
    let sum = 0;
    for (const s of active) {
      const share = s.decode ? Math.min(1, (t - s.sent - s.ttft) / s.decode) : 1;
      sum += s.input + Math.max(1, share * s.output);
    }
    most = Math.max(most, sum);
  }
  return Math.ceil(most);
}

/**
 * Of the streams that decoded all through the computing of a long prompt, how many got fewer than 60 % of the tokens that
 * they got at other times. A prompt is long whose first token took four usual gaps or more; one that began while as many
 * streamed as ever did waited, and is left out.
 */
export function slowedByPrompts(streams: readonly Stream[]): { readonly share: number; readonly pairs: number } {
  const gapOf = ({ at }: Stream): number => {
    const gaps: number[] = [];
    for (let j = 1; j < at.length; j++) gaps.push(at[j]! - at[j - 1]!);
    return gaps.sort((a, b) => a - b)[gaps.length >> 1] ?? Number.POSITIVE_INFINITY;
  };
  const long = streams.filter((s) => s.at.length >= 8).map((s) => ({ s, gap: gapOf(s) }));
  const around = (from: Millis, to: Millis) => long.filter(({ s }) => s.at[0]! <= from && s.at[s.at.length - 1]! >= to);
  let most = 0;
  const found = streams.flatMap((s) => {
    const with_ = around(s.sent, s.at[0]!).filter((o) => o.s !== s);
    most = Math.max(most, with_.length);
    return with_.length > 0 ? [{ s, with_ }] : [];
  });
  let pairs = 0;
  let slowed = 0;
  for (const { s, with_ } of found) {
    if (with_.length === most && most > 1) continue;
    for (const { s: other, gap } of with_) {
      const took = s.at[0]! - s.sent;
      if (took < 4 * gap || pairs >= 10_000) continue;
      let tokens = 0;
      for (const t of other.at) if (t > s.sent && t <= s.at[0]!) tokens++;
      pairs++;
      if (tokens < (0.6 * took) / gap) slowed++;
    }
  }
  return { share: pairs > 0 ? slowed / pairs : 0, pairs };
}
