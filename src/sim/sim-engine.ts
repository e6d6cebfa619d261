/** The door with a clock: a cluster as an `Engine`, each token an event as virtual time passes the end of its step. */
import type { Millis } from '../base/units.ts';
import type { Cancel, Clock } from '../core/clock.ts';
import type { Engine, Observer } from '../core/engine.ts';
import type { RequestSpec } from '../core/request.ts';
import { type Cluster, type Finished, QUEUE_FULL } from './cluster.ts';
import { REFUSAL_DETAIL, serverTimes } from './record-of.ts';
import { finalEvent, TOKEN } from './token-event.ts';

/** One submitted attempt. */
interface Attempt {
  readonly spec: RequestSpec;
  readonly to: Observer;
  handle: number;
  /** Tokens told of so far. */
  sent: number;
  /** Nothing more may be told: ended, or cancelled. */
  over: boolean;
}

interface Pending {
  readonly t: Millis;
  readonly attempt: Attempt;
  readonly kind: 'offer' | 'cancel';
}

/** A cluster's request is one sequence; whoever fronts it fans choices out. */
const SEVERAL_CHOICES = 'a simulated request has one choice; submit one attempt a choice';

export interface SimEngine extends Engine {
  readonly cluster: Cluster;
}

/**
 * @param clock virtual, or paced over a wall. Stamps handed along are the step ends themselves, so a late wake-up delays
 *   an event but never its stamp.
 */
export function simEngine(cluster: Cluster, clock: Clock, name = 'sim'): SimEngine {
  const attempts = new Map<number, Attempt>();
  const out: Finished[] = [];
  const due: Attempt[] = [];
  const counts: number[] = [];
  let pending: Pending[] = [];
  let reached: Millis = clock.now();
  let timer: Cancel | undefined;
  let timerAt = Number.POSITIVE_INFINITY;
  let pumping = false;
  let closed = false;

  const collect = (handle: number, generated: number): void => {
    const attempt = attempts.get(handle);
    if (!attempt || attempt.over || generated <= attempt.sent) return;
    due.push(attempt);
    counts.push(generated - attempt.sent);
    attempt.sent = generated;
  };

  /** Tells every stream that gained tokens in the step that ended at `t`, then those that completed. */
  const emit = (t: Millis): void => {
    due.length = 0;
    counts.length = 0;
    cluster.forEachDecoding(collect);
    const event = TOKEN(0);
    for (let i = 0; i < due.length; i++) {
      const attempt = due[i]!;
      for (let k = counts[i]!; k > 0 && !attempt.over; k--) attempt.to.event(t, event, false);
    }
    const finished = out.splice(0);
    for (const f of finished) {
      const attempt = attempts.get(f.handle);
      attempts.delete(f.handle);
      if (!attempt) continue;
      for (; attempt.sent < f.generated - 1 && !attempt.over; attempt.sent++) attempt.to.event(t, event, false);
      if (attempt.over) continue;
      attempt.to.event(t, finalEvent(f.spec, f.generated, f.cached, serverTimes(f)), false);
      if (attempt.over) continue;
      attempt.over = true;
      attempt.to.ended(t, { kind: 'closed' });
    }
  };

  const take = ({ t, attempt, kind }: Pending): void => {
    if (kind === 'cancel') {
      if (attempt.handle >= 0) {
        cluster.cancel(attempt.handle, t);
        attempts.delete(attempt.handle);
      }
      return;
    }
    if (attempt.over) return; // cancelled before it got here
    const { to } = attempt;
    to.dispatched(t);
    if (!attempt.over) to.sent(t);
    if (attempt.over) return;
    if (attempt.spec.choices > 1) {
      attempt.over = true;
      to.ended(t, { kind: 'failed', reason: 'engine', detail: SEVERAL_CHOICES });
      return;
    }
    attempt.handle = cluster.offer(attempt.spec, t);
    if (attempt.handle >= 0) {
      attempts.set(attempt.handle, attempt);
      return;
    }
    attempt.over = true;
    if (attempt.handle === QUEUE_FULL) to.ended(t, { kind: 'refused', detail: REFUSAL_DETAIL['queue-full'] });
    else to.ended(t, { kind: 'failed', reason: 'engine', detail: REFUSAL_DETAIL['too-long'] });
  };

  /** Brings the cluster to the clock: step ends, and what was asked meanwhile, each at its own time and in order. */
  const pump = (): void => {
    timer = undefined;
    timerAt = Number.POSITIVE_INFINITY;
    if (closed || pumping) return;
    pumping = true;
    const now = clock.now();
    for (;;) {
      while (pending.length > 0 && pending[0]!.t <= reached) take(pending.shift()!);
      const step = cluster.nextStepAt();
      const asked = pending[0]?.t ?? Number.POSITIVE_INFINITY;
      const t = Math.min(step, asked);
      if (t > now) break;
      reached = t;
      cluster.advance(t, out);
      if (step <= t) emit(t);
    }
    pumping = false;
    arm(cluster.nextStepAt());
  };

  const arm = (t: Millis): void => {
    if (closed || t >= timerAt || t === Number.POSITIVE_INFINITY) return;
    timer?.();
    timerAt = t;
    timer = clock.at(t, pump);
  };

  const ask = (attempt: Attempt, kind: 'offer' | 'cancel'): void => {
    const t = Math.max(clock.now(), reached, pending.at(-1)?.t ?? 0);
    pending.push({ t, attempt, kind });
    if (!pumping) arm(t);
  };

  return {
    name,
    cluster,
    submit(spec, to) {
      const attempt: Attempt = { spec, to, handle: -1, sent: 0, over: false };
      ask(attempt, 'offer');
      return () => {
        if (attempt.over) return;
        attempt.over = true;
        ask(attempt, 'cancel');
      };
    },
    close() {
      closed = true;
      timer?.();
      pending = [];
      attempts.clear();
      return Promise.resolve();
    },
  };
}
