import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Clock, type HostTimers, virtualClock, wallClock } from './clock.ts';

/** A host whose time moves only by what it is asked to wait, plus a little for every look at the clock. */
function fakeHost(tick = 0.005) {
  let now = 0;
  const timeouts = new Map<number, { at: number; run: () => void }>();
  const immediates = new Map<number, () => void>();
  let id = 0;
  let turns = 0;
  const host: HostTimers = {
    now: () => (now += tick),
    setTimeout: (run, ms) => {
      timeouts.set(++id, { at: now + ms, run });
      return id;
    },
    clearTimeout: (h: number) => void timeouts.delete(h),
    setImmediate: (run) => {
      immediates.set(++id, run);
      return id;
    },
    clearImmediate: (h: number) => void immediates.delete(h),
  };
  return {
    host,
    get turns() {
      return turns;
    },
    /** Runs the host's event loop until nothing is armed. */
    loop() {
      while (timeouts.size + immediates.size > 0) {
        if (++turns > 1_000_000) throw new Error('the loop never comes to rest');
        if (immediates.size > 0) {
          const all = [...immediates];
          immediates.clear();
          now += 0.01;
          for (const [, run] of all) run();
        } else {
          const [key, next] = [...timeouts].sort((a, b) => a[1].at - b[1].at)[0] as [
            number,
            { at: number; run: () => void },
          ];
          timeouts.delete(key);
          now = Math.max(now, next.at);
          next.run();
        }
      }
    },
  };
}

function order(clock: Clock, times: readonly number[], drain: () => void): { planned: number; at: number }[] {
  const seen: { planned: number; at: number }[] = [];
  for (const t of times) clock.at(t, () => seen.push({ planned: t, at: clock.now() }));
  drain();
  return seen;
}

describe.each(['virtual', 'wall'])('%s clock', (kind) => {
  it('runs what is planned once, in order of time, never early', () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 50, noNaN: true }), { maxLength: 30 }), (times) => {
        const fake = fakeHost();
        const virtual = virtualClock();
        const clock = kind === 'wall' ? wallClock(fake.host) : virtual;
        const seen = order(clock, times, kind === 'wall' ? () => fake.loop() : () => virtual.runAll());
        expect(seen.map((s) => s.planned)).toEqual([...times].sort((a, b) => a - b));
        for (const s of seen) expect(s.at).toBeGreaterThanOrEqual(s.planned);
      }),
    );
  });

  it('does not run what was cancelled, and cancelling late does nothing', () => {
    const fake = fakeHost();
    const virtual = virtualClock();
    const clock = kind === 'wall' ? wallClock(fake.host) : virtual;
    const ran: string[] = [];
    const cancels = ['a', 'b', 'c'].map((name, i) => clock.at(5 + i, () => ran.push(name)));
    cancels[1]?.();
    if (kind === 'wall') fake.loop();
    else virtual.runAll();
    cancels[2]?.();
    expect(ran).toEqual(['a', 'c']);
  });
});

describe('wall clock', () => {
  it('is at most a turn of the loop late', () => {
    const fake = fakeHost();
    const seen = order(wallClock(fake.host), [3, 7.7, 7.71, 40], () => fake.loop());
    for (const s of seen) expect(s.at - s.planned).toBeLessThan(0.1);
  });

  it('sleeps while nothing is near, and leaves nothing armed when all is cancelled', () => {
    const fake = fakeHost();
    const clock = wallClock(fake.host);
    const cancel = clock.at(1000, () => {});
    cancel();
    fake.loop();
    expect(fake.turns).toBe(0);
    clock.at(1000, () => {});
    fake.loop();
    expect(fake.turns).toBeLessThan(300); // one long sleep, then the last two milliseconds
  });

  it('keeps time when a callback throws', () => {
    const fake = fakeHost();
    const clock = wallClock(fake.host);
    let later = false;
    clock.at(1, () => {
      throw new Error('of the caller');
    });
    clock.at(2, () => {
      later = true;
    });
    expect(() => fake.loop()).toThrow('of the caller');
    fake.loop();
    expect(later).toBe(true);
  });
});
