/** The composition root's clock: the operating system's monotonic clock, and the one wall reading that labels a run. */
import { performance } from 'node:perf_hooks';
import type { Millis } from '../base/units.ts';
import { type Clock, wallClock } from '../core/clock.ts';

export interface HostClock {
  /** Milliseconds since the run's epoch. */
  readonly clock: Clock;
  /** Wall time of the epoch, ms since 1970 UTC. */
  readonly epochWall: Millis;
  /** The epoch on the machine's monotonic clock (`hrtime`), ms: lets another process's stamps be brought on it. */
  readonly epochMonotonic: Millis;
}

/**
 * A clock that starts now. `performance.now()` reads the same monotonic clock as `hrtime` without allocating, but counts
 * from each thread's own origin; its distance to `hrtime` is measured once.
 */
export function hostClock(epochMonotonic: Millis = monotonicNow()): HostClock {
  const offset = originOffset() - epochMonotonic;
  const now = (): Millis => performance.now() + offset;
  const epochWall = Date.now() - now();
  return {
    clock: wallClock({ now, setTimeout, clearTimeout, setImmediate, clearImmediate }),
    epochWall,
    epochMonotonic,
  };
}

/** The machine's monotonic clock in ms. */
export function monotonicNow(): Millis {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** hrtime − performance.now(), from the tightest of a few bracketed readings: good to about a microsecond. */
function originOffset(): Millis {
  let best = Number.POSITIVE_INFINITY;
  let offset = 0;
  for (let i = 0; i < 50; i++) {
    const before = performance.now();
    const hr = monotonicNow();
    const after = performance.now();
    if (after - before < best) {
      best = after - before;
      offset = hr - (before + after) / 2;
    }
  }
  return offset;
}
