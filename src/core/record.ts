/**
 * The one record of a request. `bench`, the simulator, the proxy and the fetch wrapper all make it; `measure` and `judge`
 * read nothing else. A row of a run folder is one of these.
 */
import type { Millis } from '../base/units.ts';
import type { Connection } from './engine.ts';
import type { FinishClass, Outcome, Phase } from './outcome.ts';
import type { ServerTimes, Usage } from './stream.ts';
import type { Timeline } from './timeline.ts';

/** Stamps of an attempt in order, ms since the run's epoch, on the microsecond grid. Any but the first may be missing. */
export interface Stamps {
  readonly scheduled: Millis;
  readonly dispatched?: Millis;
  readonly connected?: Millis;
  readonly sent?: Millis;
  readonly headers?: Millis;
  /** First parsed stream event of any kind. */
  readonly firstEvent?: Millis;
  /** First, last output event; first that is not reasoning. Equal to the timeline's, kept for readers without it. */
  readonly firstOutput?: Millis;
  readonly firstAnswer?: Millis;
  readonly lastOutput?: Millis;
  readonly ended?: Millis;
}

/** The names of the stamps, in their order. */
export const STAMPS: readonly (keyof Stamps)[] = [
  'scheduled',
  'dispatched',
  'connected',
  'sent',
  'headers',
  'firstEvent',
  'firstOutput',
  'firstAnswer',
  'lastOutput',
  'ended',
];

/** What was asked for, kept so that achieved lengths can be held against it. */
export interface Asked {
  readonly input: number;
  readonly output: number;
  readonly choices: number;
  readonly stream: boolean;
}

/** One attempt, or the fold of an operation's attempts (`foldAttempts`), which has the same shape. */
export interface RequestRecord {
  readonly operation: number;
  /** 0 for the first; of a folded operation, the last attempt's number. */
  readonly attempt: number;
  /** Attempts this record stands for: 1, or in a fold all that were sent. */
  readonly attempts: number;
  /** A hedge that lost: load, not an outcome. */
  readonly lostHedge: boolean;
  readonly class: string;
  readonly session?: number;
  readonly turn?: number;
  readonly asked: Asked;
  readonly stamps: Stamps;
  readonly connection?: Connection;
  readonly status?: number;
  readonly timeline: Timeline;
  /** False when the answer came whole: then only E2E and last-token latency can be measured. */
  readonly streamed: boolean;
  readonly usage?: Usage;
  /** End tokens that usage counts and nobody saw. */
  readonly unseenEndTokens: number;
  /** Output tokens by a tokenizer the user named, over the whole text. */
  readonly tokenized?: number;
  readonly outcome: Outcome;
  /** Why, in one word of ours: `http-503`, `reset`, `stream-error`, `no-finish`, `deadline`, … Empty when completed. */
  readonly reason: string;
  /** Why, in the server's or system's words, cleaned and cut. */
  readonly detail: string;
  readonly phase: Phase;
  /** The worst finish over the choices; absent where none was told. */
  readonly finish?: FinishClass;
  /** The server's own finish word, choices joined by `|`. */
  readonly finishReason?: string;
  /** The dialect marks no end: a clean early end would look the same. */
  readonly impliedEnd: boolean;
  /** Parsed stream events, and how many of them shared an earlier one's read. */
  readonly events: number;
  readonly coalesced: number;
  /** Chunks of a kind we did not know. */
  readonly unclassified: number;
  readonly model?: string;
  /** The server's own times: evidence only. */
  readonly server?: ServerTimes;
  /** How real traffic was seen on its way; absent in a load of our own. */
  readonly passage?: Passage;
}

/** What a proxy or a wrapped client adds to a record. Bounded, and nothing of prompts or keys. */
export interface Passage {
  /** Who asked, of bounded cardinality. */
  readonly tenant?: string;
  /** Where it went, without user or password. */
  readonly upstream?: string;
  /** `x-request-id` as passed on, by which the server's own spans can be joined. */
  readonly requestId?: string;
  /** W3C trace id of the caller. */
  readonly traceId?: string;
  /** How long the proxy's own concurrency cap held it back. */
  readonly queued?: Millis;
  /** When the first and the last output were written on to the client. The other stamps are receipts from upstream. */
  readonly firstWritten?: Millis;
  readonly lastWritten?: Millis;
  /** How long the upstream was kept waiting because the client read slowly. */
  readonly stalled?: Millis;
}
