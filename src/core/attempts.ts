/**
 * Attempts folded into operations. However many attempts succeed an operation is at most one success; output already
 * shown before a retry keeps its TTFT and the stall enters the gaps; losing hedges are load, not outcomes.
 */
import type { Millis } from '../base/units.ts';
import type { RequestRecord, Stamps } from './record.ts';
import { TimelineBuilder } from './timeline.ts';

/** The record of an operation from its attempts, in any order. @throws on none, or on attempts of two operations. */
export function foldAttempts(attempts: readonly RequestRecord[]): RequestRecord {
  const first = attempts[0];
  if (!first) throw new Error('internal: an operation without attempts');
  if (attempts.length === 1 && !first.lostHedge) return first;
  if (attempts.some((a) => a.operation !== first.operation)) {
    throw new Error('internal: attempts of different operations folded together');
  }
  const sent = attempts.reduce((sum, a) => sum + a.attempts, 0);
  const kept = attempts.filter((a) => !a.lostHedge).sort((a, b) => a.attempt - b.attempt);
  const opening = [...attempts].sort((a, b) => a.attempt - b.attempt)[0] as RequestRecord;
  const last = kept.at(-1) ?? opening;
  const shown = kept.filter((a) => a.timeline.length > 0);
  const timeline = new TimelineBuilder();
  for (const a of shown) timeline.append(a.timeline);
  const usage = shown.length <= 1 ? (shown[0] ?? last).usage : undefined; // one attempt's usage does not count another's tokens
  const { usage: _, ...rest } = last;
  return {
    ...rest,
    attempts: sent,
    stamps: foldStamps(opening, kept, last),
    timeline: timeline.finish(),
    ...(usage && { usage }),
    events: kept.reduce((sum, a) => sum + a.events, 0),
    coalesced: kept.reduce((sum, a) => sum + a.coalesced, 0),
    unclassified: kept.reduce((sum, a) => sum + a.unclassified, 0),
  };
}

function foldStamps(opening: RequestRecord, kept: readonly RequestRecord[], last: RequestRecord): Stamps {
  const earliest = (name: 'firstEvent' | 'firstOutput' | 'firstAnswer'): Millis | undefined =>
    kept.map((a) => a.stamps[name]).find((t) => t !== undefined);
  const lastOutput = kept.findLast((a) => a.stamps.lastOutput !== undefined)?.stamps.lastOutput;
  const { scheduled, dispatched, connected, sent, headers } = opening.stamps;
  const ended = last.stamps.ended;
  const firstEvent = earliest('firstEvent');
  const firstOutput = earliest('firstOutput');
  const firstAnswer = earliest('firstAnswer');
  return {
    scheduled,
    ...(dispatched !== undefined && { dispatched }),
    ...(connected !== undefined && { connected }),
    ...(sent !== undefined && { sent }),
    ...(headers !== undefined && { headers }),
    ...(firstEvent !== undefined && { firstEvent }),
    ...(firstOutput !== undefined && { firstOutput }),
    ...(firstAnswer !== undefined && { firstAnswer }),
    ...(lastOutput !== undefined && { lastOutput }),
    ...(ended !== undefined && { ended }),
  };
}
