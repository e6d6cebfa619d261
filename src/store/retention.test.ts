import { describe, expect, it } from 'vitest';
import { type RowFile, toForget, toRoll } from './retention.ts';

const file = (first: number, bytes: number, at: number): RowFile => ({
  first,
  last: first,
  rows: 1,
  bytes,
  born: at,
  newest: at,
});
const files = Array.from({ length: 100 }, (_, i) => file(i + 1, 1000, 1000 * i));

describe('retention', () => {
  it('forgets the oldest by age and by size, never the last', () => {
    expect(toForget(files, {}, 1e9)).toHaveLength(0);
    expect(toForget(files, { age: 50_000 }, 99_000).map((f) => f.first)).toEqual(
      Array.from({ length: 49 }, (_, i) => i + 1),
    );
    expect(toForget(files, { bytes: 90_000 }, 99_000)).toHaveLength(10);
    expect(toForget(files, { age: 1, bytes: 1 }, 1e9)).toHaveLength(99);
  });

  it('rolls many small files at the end into one, and leaves what is full or old', () => {
    expect(toRoll(files.slice(0, 59), {}, 99_000)).toHaveLength(0);
    expect(toRoll(files, {}, 99_000)).toHaveLength(100);
    expect(toRoll([file(0, 64 * 2 ** 20, 0), ...files], {}, 99_000)).toHaveLength(100);
    expect(toRoll(files, { age: 8 * 70_000 }, 99_000).map((f) => f.first)[0]).toBe(30);
    expect(toRoll(files, { age: 8 * 10_000 }, 99_000)).toHaveLength(0);
  });
});
