import { describe, expect, it } from 'vitest';
import { virtualClock } from '../core/clock.ts';
import type { Offer, Workload } from '../core/request.ts';
import { drawnAhead } from './ahead.ts';
import { openLoop, REQUEST_DEFAULTS } from './synthetic.ts';

/** Offers at given times, which tells how many were drawn. */
function counted(at: readonly number[]): Workload & { drawn: () => number } {
  const from = openLoop(REQUEST_DEFAULTS, { process: 'constant', rate: 1 }, 1);
  let i = 0;
  return {
    next: (): Offer | undefined => {
      const offer = from.next();
      return offer && i < at.length ? { ...offer, at: at[i++]! } : undefined;
    },
    ended: () => [],
    drawn: () => i,
  };
}

describe('a workload drawn ahead', () => {
  it('is the same offers in the same order', () => {
    const plain = openLoop(REQUEST_DEFAULTS, { process: 'poisson', rate: 5 }, 1);
    const clock = virtualClock();
    const ahead = drawnAhead(openLoop(REQUEST_DEFAULTS, { process: 'poisson', rate: 5 }, 1), clock);
    for (let i = 0; i < 50; i++) {
      const offer = ahead.next()!;
      expect(offer).toEqual(plain.next());
      clock.advance(offer.at);
    }
  });
  it('draws in the pause, all of what comes together, and nothing close before an arrival', () => {
    const clock = virtualClock();
    const load = counted([0, 1000, 1000, 1000, 1001, 9000]);
    const ahead = drawnAhead(load, clock);
    ahead.next(); // due now: nothing is drawn beside it
    clock.advance(0);
    expect(load.drawn()).toBe(1);
    ahead.next();
    expect(load.drawn()).toBe(2);
    clock.advance(500);
    expect(load.drawn()).toBe(6);
    expect([ahead.next(), ahead.next(), ahead.next(), ahead.next(), ahead.next()].map((o) => o?.at)).toEqual([
      1000,
      1000,
      1001,
      9000,
      undefined,
    ]);
  });
});
