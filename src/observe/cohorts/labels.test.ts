import { describe, expect, it } from 'vitest';
import { BoundedLabels } from './labels.ts';

describe('bounded labels', () => {
  it('keeps the first values and calls the rest other', () => {
    const labels = new BoundedLabels(2, 'default', ['gold']);
    expect(['gold', 'a', 'b', 'a', undefined, ''].map((v) => labels.of(v))).toEqual([
      'gold',
      'a',
      'other',
      'a',
      'default',
      'default',
    ]);
  });
  it('cleans what cannot be a label', () => {
    const labels = new BoundedLabels(9, 'default');
    expect(labels.of('a\u001b[31m\n')).toBe('a_[31m_');
    expect(labels.of('x'.repeat(1000))).toHaveLength(64);
    expect(labels.of('  ')).toBe('default');
  });
});
