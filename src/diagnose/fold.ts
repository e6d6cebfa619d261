/** Records → the rows and joint silences a diagnosis reads. Memory is bounded: rows beyond `MAX_ROWS` are counted alone. */
import { between, type Millis } from '../base/units.ts';
import { measure } from '../core/measure.ts';
import type { RequestRecord } from '../core/record.ts';
import type { RequestRow, Requests } from './side.ts';
import { jointStalls, type PauseKind, type Silence } from './stalls.ts';

export const MAX_ROWS = 200_000;
const MAX_SILENCES = 500_000;

/** Chunks nearer than this came together. */
const TOGETHER: Millis = 1;

export class RequestFold {
  readonly #rows: RequestRow[] = [];
  readonly #silences: OwnSilence[] = [];
  #dropped = 0;

  add(record: RequestRecord): void {
    if (record.outcome === 'unsent') return;
    if (this.#rows.length >= MAX_ROWS) {
      this.#dropped++;
      return;
    }
    const gaps = gapsOf(record);
    const row = rowOf(record, gaps);
    this.#rows.push(row);
    if (gaps) this.#silencesOf(record, gaps, row);
  }

  finish(): Requests {
    const paused = new Map<RequestRow, Record<PauseKind, Millis>>();
    this.#rows.sort((x, y) => x.at - y.at);
    const stalls = jointStalls(this.#silences, this.#rows, ({ row, excess }, kind) => {
      const own = paused.get(row) ?? { prefill: 0, joint: 0, alone: 0 };
      own[kind] += excess;
      paused.set(row, own);
    });
    const rows = this.#rows.map((row) => {
      const own = paused.get(row);
      return own ? { ...row, paused: own } : row;
    });
    const span = rows.length > 1 ? (rows.at(-1)!.at - rows[0]!.at) / 1000 : 0;
    return { rows, stalls, span, dropped: this.#dropped };
  }

  /** Gaps well beyond the stream's own rhythm. */
  #silencesOf({ timeline }: RequestRecord, gaps: Gaps, row: RequestRow): void {
    const { each, middle, step = middle, together, largest } = gaps;
    const n = timeline.length;
    const least = leastSilence(middle);
    if (n < 4 || largest < least || this.#silences.length >= MAX_SILENCES) return;
    for (let i = 1; i < n; i++) {
      if (each[i - 1]! < least) continue;
      let released = 1;
      while (i + released < n && each[i + released - 1]! < TOGETHER) released++;
      this.#silences.push({
        start: timeline.at[i - 1]!,
        end: timeline.at[i]!,
        released,
        row,
        excess: Math.max(0, each[i - 1]! - (step * released) / together),
      });
    }
  }
}

/** Five times the stream's middle gap, and 25 ms at least. */
const leastSilence = (middle: Millis): Millis => Math.max(25, 5 * middle);

interface OwnSilence extends Silence {
  readonly row: RequestRow;
  /** Beyond the stream's step. */
  readonly excess: Millis;
}

interface Gaps {
  readonly each: Float64Array;
  readonly middle: Millis;
  readonly step: Millis | undefined;
  /** Chunks that usually came together: 1, or what a step of drafts brought. */
  readonly together: number;
  readonly largest: Millis;
  readonly bunched: number;
}

function gapsOf({ timeline }: RequestRecord): Gaps | undefined {
  const n = timeline.length;
  if (n < 2) return undefined;
  const each = new Float64Array(n - 1);
  let largest = 0;
  let bunched = 0;
  for (let i = 1; i < n; i++) {
    const gap = timeline.at[i]! - timeline.at[i - 1]!;
    each[i - 1] = gap;
    if (gap > largest) largest = gap;
    if (gap < TOGETHER) bunched++;
  }
  const sorted = each.slice().sort();
  const apart = n - 1 - bunched;
  const middle = sorted[(n - 1) >> 1] ?? 0;
  return {
    each,
    middle,
    together: usuallyTogether(each, leastSilence(middle)),
    step: apart > 0 ? sorted[bunched + (apart >> 1)] : undefined,
    largest,
    bunched,
  };
}

/** Mean size of the groups of chunks that came at once, those that ended a silence aside: they were held back. */
function usuallyTogether(each: Float64Array, least: Millis): number {
  let groups = 0;
  let chunks = 0;
  for (let i = 0; i < each.length; ) {
    let size = 1;
    while (i + size < each.length && each[i + size]! < TOGETHER) size++;
    if (each[i]! < least) {
      groups++;
      chunks += size;
    }
    i += size;
  }
  return groups > 0 ? chunks / groups : 1;
}

export function rowOf(record: RequestRecord, gaps: Gaps | undefined = gapsOf(record)): RequestRow {
  const { stamps, server, usage, timeline, asked } = record;
  const m = measure(record);
  const prompt = usage?.input ?? (asked.input > 0 ? asked.input : undefined);
  const output = m.n ?? usage?.output;
  const serverTtft = serverTtftOf(record);
  return {
    at: stamps.scheduled,
    class: record.class,
    ok: record.outcome === 'completed',
    attempts: Math.max(1, record.attempts),
    ...(m.ttft !== undefined && { ttft: m.ttft }),
    ...(m.sendLag !== undefined && { client: m.sendLag }),
    ...(stamps.dispatched !== undefined &&
      stamps.sent !== undefined && { connect: between(stamps.dispatched, stamps.sent) }),
    ...(server?.queue !== undefined && { queue: server.queue }),
    ...(server?.prefill !== undefined && { prefill: server.prefill }),
    ...(serverTtft !== undefined && { serverTtft }),
    ...(server?.load !== undefined && { load: server.load }),
    ...(m.tpot !== undefined && { tpot: m.tpot }),
    ...(m.gap !== undefined && { gap: m.gap }),
    ...(m.latency !== undefined && { latency: m.latency }),
    ...(prompt !== undefined && { prompt }),
    ...(usage?.cachedInput !== undefined && { cached: usage.cachedInput }),
    ...(output !== undefined && { output }),
    chunks: timeline.length,
    bunched: gaps?.bunched ?? 0,
    ...(gaps && timeline.length > 3 && { middle: gaps.middle }),
    ...(gaps?.step !== undefined &&
      timeline.length > 3 && {
        step: gaps.step,
        steps: (timeline.length - 1) / gaps.together,
      }),
  };
}

/** The server's own TTFT: all it took less its decode. Both are durations of its own clock. */
function serverTtftOf({ server }: RequestRecord): Millis | undefined {
  if (server?.e2e === undefined || server.decode === undefined) return undefined;
  const ttft = server.e2e - server.decode;
  return ttft >= 0 ? ttft : undefined;
}
