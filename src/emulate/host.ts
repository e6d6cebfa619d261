/** What the emulator takes from the machine, so that its clock can be handed in. */
import type { HostTimers } from '../core/index.ts';

export interface EmulatorHost {
  /**
   * Monotonic milliseconds and timers. `now` should be the machine's own monotonic clock without an offset: then stamps
   * of this process can be held against a client's in another process of the same machine.
   */
  readonly timers: HostTimers;
  /** Seconds since 1970, only to label answers (`created`) and the process start. */
  readonly unixSeconds: () => number;
}

/** Milliseconds of the machine's monotonic clock (CLOCK_MONOTONIC on Linux): one epoch for all its processes. */
export function monotonicMillis(): number {
  const [seconds, nanos] = process.hrtime();
  return seconds * 1000 + nanos / 1e6;
}

export const nodeHost: EmulatorHost = {
  timers: {
    now: monotonicMillis,
    setTimeout: (run, ms) => setTimeout(run, ms),
    clearTimeout: (handle) => clearTimeout(handle),
    setImmediate: (run) => setImmediate(run),
    clearImmediate: (handle) => clearImmediate(handle),
  },
  unixSeconds: () => Date.now() / 1000,
};
