/**
 * Mixes of classes as workloads. Sessions arrive open-loop; a turn is scheduled a think time after its predecessor ended,
 * so a slow server is offered less, and capacity is in sessions per second. The turns after one that failed are offered
 * and not sent.
 */
import { keyedSource } from '../base/random.ts';
import type { Millis } from '../base/units.ts';
import { type Offer, PREDECESSOR_FAILED, type Workload } from '../core/request.ts';
import { type ArrivalPlan, arrivals } from './arrivals.ts';
import { type ClassPlan, hasSessions, type MixPlan, MixSource, type Turn } from './classes.ts';
import { drawPause, type PausePlan } from './pauses.ts';

/** Requests, or sessions of them, of a mix under an arrival process, without end. */
export function openMix(mix: MixPlan, plan: ArrivalPlan, seed: number): Workload {
  return hasSessions(mix) ? new SessionLoop(mix, plan, seed) : singles(mix, arrivals(plan, seed), seed);
}

function singles(mix: MixPlan, next: () => Millis, seed: number): Workload {
  const source = new MixSource(mix, seed);
  let operation = 0;
  return {
    next: () => ({ at: next(), spec: source.single(operation++) }),
    ended: () => [],
  };
}

/** A closed loop over a mix without sessions. */
export function closedMix(mix: MixPlan, concurrency: number, seed: number, think: Millis = 0): Workload {
  const source = new MixSource(mix, seed);
  let operation = 0;
  const offer = (at: Millis): Offer => ({ at, spec: source.single(operation++) });
  return {
    next: () => (operation < concurrency ? offer(0) : undefined),
    ended: (_operation, t) => [offer(t + think)],
  };
}

interface Session {
  readonly index: number;
  readonly arrival: number;
  readonly turns: readonly Turn[];
  /** The turn that is under way. */
  at: number;
}

class SessionLoop implements Workload {
  readonly #source: MixSource;
  readonly #next: () => Millis;
  readonly #think: ReturnType<typeof keyedSource>;
  /** Sessions with turns to come, by the operation under way. */
  readonly #open = new Map<number, Session>();
  #arrival = 0;
  #operation = 0;

  constructor(mix: MixPlan, plan: ArrivalPlan, seed: number) {
    this.#source = new MixSource(mix, seed);
    this.#next = arrivals(plan, seed);
    this.#think = keyedSource(seed, 'think');
  }

  next(): Offer {
    const arrival = this.#arrival++;
    const index = this.#source.pick(arrival);
    const turns = this.#source.turnsOf(index, arrival, this.#operation);
    // Numbered ahead of time, so that a turn's number does not depend on when it comes to be sent.
    this.#operation += turns.length;
    const session: Session = { index, arrival, turns, at: 0 };
    if (turns.length > 1) this.#open.set((turns[0] as Turn).operation, session);
    return { at: this.#next(), spec: this.#spec(session) };
  }

  ended(operation: number, t: Millis, ok: boolean): readonly Offer[] {
    const session = this.#open.get(operation);
    if (!session) return [];
    this.#open.delete(operation);
    const offers: Offer[] = [];
    if (!ok) {
      while (++session.at < session.turns.length) {
        offers.push({ at: t, spec: this.#spec(session), unsent: PREDECESSOR_FAILED });
      }
      return offers;
    }
    session.at++;
    const spec = this.#spec(session);
    const plan = this.#source.mix.classes[session.index] as ClassPlan;
    const think = drawPause(plan.session?.think as PausePlan, this.#think(spec.operation));
    if (session.at + 1 < session.turns.length) this.#open.set(spec.operation, session);
    return [{ at: t + think, spec }];
  }

  #spec({ index, arrival, turns, at }: Session) {
    return this.#source.spec(index, arrival, turns, at, true);
  }
}
