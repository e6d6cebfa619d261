/** Virtual time that follows a wall at some speed. */

import { InputError } from '../base/errors.ts';
import type { Clock } from '../core/clock.ts';

/**
 * A clock that starts at 0 when made and runs `speed` times as fast as `wall`. Each deadline is converted on its own from
 * one origin, so nothing accumulates: chained timers would drift by their lateness at every step.
 * @throws InputError unless `speed` is a positive number.
 */
export function pacedClock(wall: Clock, speed = 1): Clock {
  if (!(speed > 0) || !Number.isFinite(speed)) {
    throw new InputError(`speed ${speed} is not a positive number; 1 is real time, 10 ten times as fast`);
  }
  const origin = wall.now();
  /** The latest planned time that has come: converting to the wall and back may round to just below it. */
  let reached = 0;
  return {
    now: () => Math.max(reached, (wall.now() - origin) * speed),
    at: (time, run) =>
      wall.at(origin + time / speed, () => {
        reached = Math.max(reached, time);
        run();
      }),
  };
}
