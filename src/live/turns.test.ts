import { expect, it } from 'vitest';
import { Turns } from './turns.ts';

it('holds each read against the first of those that followed one another without a pause', () => {
  const turns = new Turns();
  expect(turns.spread()).toBeUndefined();
  for (let i = 0; i < 11; i++) turns.read(10 + i * 0.1); // a volley a millisecond long
  for (let i = 0; i < 11; i++) turns.read(50 + i); // each on its own
  const spread = turns.spread();
  expect(spread?.max).toBeCloseTo(1, 9);
  expect(spread?.p99).toBeCloseTo(1, 1);
  expect(spread?.p50).toBeLessThanOrEqual(0.01);
});
