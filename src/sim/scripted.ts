/** Engines without a model behind them: fixed timing, and no time at all. */
import { InputError } from '../base/errors.ts';
import type { Millis } from '../base/units.ts';
import type { Cancel, Clock } from '../core/clock.ts';
import type { Engine, Observer } from '../core/engine.ts';
import type { RequestSpec } from '../core/request.ts';
import { finalEvent, TOKEN } from './token-event.ts';

export interface Script {
  /** From submission to the first token. */
  readonly ttft: Millis;
  /** From each token to the next. */
  readonly itl: Millis;
  /** Output tokens of every request; absent: what the request asks for. */
  readonly tokens?: number;
  /** Each submission starts this much later than the one before, modulo `itl`: streams do not tick in lock-step. */
  readonly stagger?: Millis;
}

/**
 * Every request gets token k at `start + ttft + k·itl`, however many there are: absolute deadlines, so lateness of one
 * timer does not move the next token. `t` handed along is that deadline.
 */
export function scriptedEngine(clock: Clock, script: Script): Engine {
  const { ttft, itl, stagger = 0 } = script;
  for (const [name, value] of Object.entries({ ttft, itl, stagger })) {
    if (!(value >= 0) || !Number.isFinite(value))
      throw new InputError(`scripted ${name} ${value} ms must be 0 or more`);
  }
  let submissions = 0;
  return {
    name: `scripted ttft=${ttft}ms itl=${itl}ms`,
    submit(spec, to) {
      const now = clock.now();
      const shift = itl > 0 ? (submissions++ * stagger) % itl : 0;
      return play(clock, spec, to, now, now + shift + ttft, itl, script.tokens ?? spec.outputTokens);
    },
    close: () => Promise.resolve(),
  };
}

/** Answers every request whole at the instant it is asked: what is left is the caller's own cost. */
export function nullEngine(clock: Clock): Engine {
  return {
    name: 'null',
    submit(spec, to) {
      const now = clock.now();
      return play(clock, spec, to, now, now, 0, spec.outputTokens);
    },
    close: () => Promise.resolve(),
  };
}

function play(
  clock: Clock,
  spec: RequestSpec,
  to: Observer,
  start: Millis,
  first: Millis,
  itl: Millis,
  wanted: number,
): Cancel {
  const tokens = Math.max(1, wanted);
  const choices = Math.max(1, spec.choices);
  const last = finalEvent(spec, tokens);
  let sent = 0;
  let over = false;
  let cancelTimer: Cancel;
  const next = (): void => {
    // All tokens due by now, in one wake-up when the timer was late or there is no time between them.
    for (let due = first + sent * itl; due <= clock.now() && !over; due = first + sent * itl) {
      sent++;
      if (sent < tokens) {
        for (let c = 0; c < choices && !over; c++) to.event(due, TOKEN(c), false);
        continue;
      }
      to.event(due, last, false);
      if (over) return;
      over = true;
      to.ended(due, { kind: 'closed' });
      return;
    }
    if (!over) cancelTimer = clock.at(first + sent * itl, next);
  };
  cancelTimer = clock.at(start, () => {
    to.dispatched(start);
    if (over) return;
    to.sent(start);
    if (!over) next();
  });
  return () => {
    over = true;
    cancelTimer();
  };
}
