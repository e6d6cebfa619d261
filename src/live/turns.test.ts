import { expect, it } from 'vitest';
import { Turns } from './turns.ts';

it('holds each read against the first of its turn of the event loop', async () => {
  const turns = new Turns();
  expect(turns.spread()).toBeUndefined();
  for (const t of [10, 10.4, 11]) turns.read(t);
  await new Promise((resolve) => setImmediate(resolve));
  await new Promise((resolve) => setImmediate(resolve));
  turns.read(50);
  expect(turns.spread()?.max).toBeCloseTo(1, 2);
  expect(turns.spread()?.p50).toBeLessThan(0.41);
});
