/** Requests whose tokens are stamped one by one, as schedulers keep them that take their steps one by one. */
import type { Millis } from '../base/units.ts';
import type { RequestSpec } from '../core/request.ts';
import { Finished } from './cluster.ts';

export interface Stamped {
  readonly handle: number;
  readonly spec: RequestSpec;
  readonly arrived: Millis;
  /** When each token came. */
  readonly times: Millis[];
  /** NaN until it first ran. */
  readonly scheduled: Millis;
  /** Absent where nothing is preempted. */
  readonly preemptions?: number;
}

/** What is told of one that has ended: nothing is stamped after. */
export function finishedOf(item: Stamped, cancelled: boolean, t: Millis): Finished {
  const f = new Finished(item.handle, item.spec, cancelled, item.arrived, t);
  f.scheduled = item.scheduled;
  f.preemptions = item.preemptions ?? 0;
  f.generated = item.times.length;
  f.firstToken = item.times[0] ?? Number.NaN;
  f.lastToken = item.times.at(-1) ?? Number.NaN;
  f.lead = item.times;
  return f;
}
