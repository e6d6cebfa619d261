import { describe, expect, it } from 'vitest';
import { type HostTimers, virtualClock, wallClock } from '../core/index.ts';
import { frugalTimers } from './frugal-timers.ts';

/** A host whose event loop turns every 10 µs when it spins. */
function host() {
  const time = virtualClock();
  let spun = 0;
  const timers: HostTimers = {
    now: time.now,
    setTimeout: (run, ms) => time.at(time.now() + ms, run),
    clearTimeout: (cancel: never) => (cancel as () => void)(),
    setImmediate: (run) => {
      spun++;
      return time.at(time.now() + 0.01, run);
    },
    clearImmediate: (cancel: never) => (cancel as () => void)(),
  };
  return { time, timers, spun: () => spun * 0.01 };
}

/** Plans a thing every `every` ms for 2 s. @returns the latest any was. */
function run(timers: HostTimers, advance: (to: number) => void, every: number): number {
  const clock = wallClock(timers);
  let latest = 0;
  for (let t = every; t < 2000; t += every) clock.at(t, () => (latest = Math.max(latest, clock.now() - t)));
  advance(3000);
  return latest;
}

describe('timers that spin within a budget', () => {
  it('are exact while deadlines are far apart', () => {
    const h = host();
    expect(run(frugalTimers(h.timers), (to) => h.time.advance(to), 20)).toBeLessThan(0.05);
  });
  it('spend no more than their share when deadlines are close, and are at most a tick late', () => {
    const h = host();
    const late = run(frugalTimers(h.timers), (to) => h.time.advance(to), 0.25);
    expect(late).toBeGreaterThan(0.5);
    expect(late).toBeLessThan(1.05);
    expect(h.spun()).toBeLessThan(0.27 * 2000);
    const without = host();
    run(without.timers, (to) => without.time.advance(to), 0.25);
    expect(without.spun()).toBeGreaterThan(0.9 * 2000);
  });
  it('cancel either kind of wait', () => {
    const h = host();
    const clock = wallClock(frugalTimers(h.timers, 0));
    let ran = 0;
    for (let i = 0; i < 100; i++) clock.at(i / 10, () => ran++)();
    h.time.advance(100);
    expect(ran).toBe(0);
  });
});
