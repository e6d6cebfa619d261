import { describe, expect, it } from 'vitest';
import { segmentName, segmentsOf } from './segments.ts';

describe('segments', () => {
  it('are read in order, each row once', () => {
    const names = [
      'requests-000002.parquet',
      'requests-000001.parquet',
      'requests-000001-000002.parquet',
      'requests-000003.parquet',
      'requests-000004.parquet.tmp',
      'run.json',
      'server-000001.parquet',
      'requests-1000000.parquet',
    ];
    expect(segmentsOf(names).map((s) => s.file)).toEqual([
      'requests-000001-000002.parquet',
      'requests-000003.parquet',
      'requests-1000000.parquet',
    ]);
  });
  it('are named by what they hold', () => {
    expect(segmentName(7)).toBe('requests-000007.parquet');
    expect(segmentName(1, 60)).toBe('requests-000001-000060.parquet');
  });
});
