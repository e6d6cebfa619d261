/** Operations that were offered and whose end nobody saw: DEFINITIONS calls them undecided. */
import type { RequestRecord } from '../core/record.ts';
import { EMPTY_TIMELINE } from '../core/timeline.ts';
import type { OpenOperation } from './meta.ts';

/** The record of an operation that was open when the run was cut, or when one being written was read. */
export function undecided(open: OpenOperation, why: 'cut' | 'running'): RequestRecord {
  return {
    operation: open.operation,
    attempt: open.attempt,
    attempts: open.dispatched === undefined ? 0 : 1,
    lostHedge: false,
    class: open.class,
    ...(open.session !== undefined && { session: open.session }),
    ...(open.turn !== undefined && { turn: open.turn }),
    asked: open.asked ?? { input: 0, output: 0, choices: 1, stream: true },
    stamps: {
      scheduled: open.scheduled,
      ...(open.dispatched !== undefined && { dispatched: open.dispatched }),
    },
    timeline: EMPTY_TIMELINE,
    streamed: open.asked?.stream ?? true,
    unseenEndTokens: 0,
    outcome: 'undecided',
    reason: why,
    detail: why === 'cut' ? 'the run was cut off before it ended' : 'the run was still being written',
    phase: open.dispatched === undefined ? 'unsent' : 'waiting',
    impliedEnd: false,
    events: 0,
    coalesced: 0,
    unclassified: 0,
  };
}

/** The open operations of a cursor less those a row has since ended (a run killed between a segment and its cursor). */
export class OpenOperations {
  readonly #open: Map<number, OpenOperation>;

  constructor(open: readonly OpenOperation[]) {
    this.#open = new Map(open.map((o) => [o.operation, o]));
  }
  has(operation: number): boolean {
    return this.#open.has(operation);
  }
  /** Takes note of a row. */
  see(record: RequestRecord): void {
    const open = this.#open.get(record.operation);
    if (!open) return;
    const isFinal = record.outcome === 'completed' && !record.lostHedge;
    if (isFinal || record.attempt === open.attempt) this.#open.delete(record.operation);
  }
  left(): Iterable<OpenOperation> {
    return this.#open.values();
  }
}
