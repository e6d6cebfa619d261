import { performance } from 'node:perf_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Clock, virtualClock, wallClock } from '../../src/core/clock.ts';
import type { Engine } from '../../src/core/engine.ts';
import { ContinuousReplica, limitsOf, nullEngine, pacedClock, scriptedEngine, simEngine } from '../../src/sim/index.ts';
import { linearModel, spec } from '../../src/sim/testing.ts';
import { engineConformance } from './engine.ts';

const ENGINES: readonly [string, (clock: Clock) => Engine][] = [
  ['null', nullEngine],
  ['scripted', (clock) => scriptedEngine(clock, { ttft: 30, itl: 7, stagger: 2 })],
  [
    'simulated',
    (clock) => {
      const limits = limitsOf({ maxSeqs: 8, maxBatchedTokens: 64, kvBlocks: 64 });
      return simEngine(new ContinuousReplica(linearModel({ base: 5, perSequence: 0.5 }), limits), clock);
    },
  ],
];

for (const [name, make] of ENGINES) {
  engineConformance(`${name}, virtual clock`, async () => {
    const clock = virtualClock(1000);
    return {
      engine: make(clock),
      clock,
      spec: (operation, tokens) => spec(operation, 10, tokens),
      async pass(done) {
        while (!done()) {
          const next = clock.nextAt();
          if (next === Number.POSITIVE_INFINITY) throw new Error('nothing is planned, and yet it is not done');
          clock.advance(next);
        }
      },
    };
  });

  engineConformance(`${name}, paced clock`, async () => {
    const wall = wallClock({ now: () => performance.now(), setTimeout, clearTimeout, setImmediate, clearImmediate });
    const clock = pacedClock(wall, 50);
    return {
      engine: make(clock),
      clock,
      spec: (operation, tokens) => spec(operation, 10, tokens),
      async pass(done) {
        while (!done()) await nextTurn();
      },
    };
  });
}
