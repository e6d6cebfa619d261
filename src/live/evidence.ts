/**
 * What the transport showed beside the stamps: whether something between the engine and us gathers events before it
 * passes them on. Coalescing without event-loop delay is evidence about the upstream, not about the client.
 */
import type { Millis } from '../base/units.ts';
import { Turns } from './turns.ts';

/** Events in one read, and the silence before it, from which on a read counts as a burst. */
export const BURST_EVENTS = 4;
export const BURST_SILENCE: Millis = 100;

export interface LiveEvidence {
  /** Responses whose headers came. */
  readonly responses: number;
  /** Socket reads that completed at least one output event, and such events. */
  readonly reads: number;
  readonly outputEvents: number;
  /** Output events that came in the read of an earlier one, whose stamp is therefore not their own. */
  readonly coalesced: number;
  /** Reads with `BURST_EVENTS` output events or more after `BURST_SILENCE` ms or more without a byte. */
  readonly bursts: number;
  readonly largestBurst: number;
  /** Responses of several output events that all came in one read: nothing inside them can be timed. */
  readonly inOneRead: number;
  /** By how much stamps may be late because other streams, ready in the same turn of the event loop, were read first. */
  readonly stampLate?: { readonly p50: Millis; readonly p99: Millis; readonly max: Millis };
  /** Connections opened, and requests that were the first, or not the first, on theirs. */
  readonly connections: number;
  readonly onFreshConnection: number;
  readonly onReusedConnection: number;
  /** Values seen of headers that tell of software and proxies on the way, at most `HEADER_VALUES` each. */
  readonly headers: Readonly<Record<string, readonly string[]>>;
}

/** Headers worth keeping as evidence. */
export const EVIDENCE_HEADERS = [
  'server',
  'via',
  'x-powered-by',
  'x-accel-buffering',
  'content-encoding',
  'cache-control',
  'x-cache',
  'cf-ray',
  'x-envoy-upstream-service-time',
] as const;
export const HEADER_VALUES = 4;

/** Counts for one engine. Owned by it, written by its attempts. */
export class EvidenceCounters {
  responses = 0;
  reads = 0;
  outputEvents = 0;
  coalesced = 0;
  bursts = 0;
  largestBurst = 0;
  inOneRead = 0;
  connections = 0;
  onFreshConnection = 0;
  onReusedConnection = 0;
  readonly headers = new Map<string, Set<string>>();
  readonly turns = new Turns();

  snapshot(): LiveEvidence {
    const { headers, turns, ...counts } = this;
    const stampLate = turns.spread();
    return {
      ...counts,
      ...(stampLate && { stampLate }),
      headers: Object.fromEntries([...headers].map(([name, values]) => [name, [...values]])),
    };
  }

  response(headers: Readonly<Record<string, string | string[] | undefined>>, clean: (text: string) => string): void {
    this.responses++;
    if (this.responses > 64) return; // the first responses tell; later ones need not be looked at
    for (const name of EVIDENCE_HEADERS) {
      const value = headers[name];
      if (value === undefined) continue;
      const values = this.headers.get(name) ?? new Set();
      this.headers.set(name, values);
      if (values.size < HEADER_VALUES) values.add(clean(Array.isArray(value) ? value.join(', ') : value));
    }
  }

  /** A read of one response that completed `events` output events after `silence` ms without a byte. */
  read(events: number, silence: Millis): void {
    this.reads++;
    this.outputEvents += events;
    this.coalesced += events - 1;
    if (events >= BURST_EVENTS && silence >= BURST_SILENCE) {
      this.bursts++;
      if (events > this.largestBurst) this.largestBurst = events;
    }
  }
}
