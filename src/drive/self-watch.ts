/**
 * The generator watches itself: how late its event loop comes round, and what CPU it burns. A timer asked for every
 * 10 ms measures the first; the operating system accounts for the second.
 */
import type { Millis } from '../base/units.ts';
import type { Spread } from '../core/health.ts';
import { LogSketch } from '../stats/sketch.ts';

export interface SelfWatch {
  readings(): { readonly eventLoop: Spread; readonly cpu: number };
  stop(): void;
}

const EVERY: Millis = 10;

export interface WatchHost {
  readonly now: () => Millis;
  /** CPU time of this process so far, in ms. */
  readonly cpu: () => Millis;
}

export const NODE_WATCH: WatchHost = {
  now: () => Number(process.hrtime.bigint()) / 1e6,
  cpu: () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  },
};

export function selfWatch(host: WatchHost = NODE_WATCH): SelfWatch {
  const delays = new LogSketch();
  const wallStart = host.now();
  const cpuStart = host.cpu();
  let due = wallStart + EVERY;
  const tick = (): void => {
    const now = host.now();
    // A timer of whole milliseconds is up to 1 ms late by construction; that much is not delay.
    delays.add(Math.max(0, now - due - 1));
    due = now + EVERY;
    timer = setTimeout(tick, EVERY);
    timer.unref();
  };
  let timer = setTimeout(tick, EVERY);
  timer.unref();
  return {
    readings: () => ({
      eventLoop: { p50: delays.quantile(0.5) ?? 0, p99: delays.quantile(0.99) ?? 0, max: delays.max ?? 0 },
      cpu: (host.cpu() - cpuStart) / Math.max(1, host.now() - wallStart),
    }),
    stop: () => clearTimeout(timer),
  };
}
