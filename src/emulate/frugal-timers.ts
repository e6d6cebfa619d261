/**
 * Timers that spin within a budget. A wall clock waits out the last milliseconds before a deadline by `setImmediate`, which
 * is exact and keeps a core busy; with thousands of tokens a second there always is a deadline near, and the emulator
 * would take a whole core from the client it is there to test. Once the budget is used up, waiting is left to `setTimeout`:
 * tokens due within one millisecond then leave together.
 */
import type { Millis, Share } from '../base/index.ts';
import type { HostTimers } from '../core/index.ts';

/** Unused budget kept, as time that may be spun at a stretch. */
const MOST_SAVED: Millis = 10;

/** @param share of the time that may be spent spinning, in the long run. */
export function frugalTimers(timers: HostTimers, share: Share = 0.25): HostTimers {
  let saved = MOST_SAVED;
  let last = timers.now();
  type Handle = { immediate?: unknown; timeout?: unknown };
  return {
    ...timers,
    setImmediate: (run) => {
      const asked = timers.now();
      saved = Math.min(MOST_SAVED, saved + (asked - last) * share);
      last = asked;
      if (saved <= 0) return { timeout: timers.setTimeout(run, 1) } satisfies Handle;
      return {
        immediate: timers.setImmediate(() => {
          saved -= timers.now() - asked;
          run();
        }),
      } satisfies Handle;
    },
    clearImmediate: (handle: Handle) => {
      if (handle.timeout !== undefined) timers.clearTimeout(handle.timeout as never);
      else timers.clearImmediate(handle.immediate as never);
    },
  };
}
