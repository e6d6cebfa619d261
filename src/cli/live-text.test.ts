import { describe, expect, it } from 'vitest';
import type { Look } from '../observe/live/poll.ts';
import { paint } from '../report/text.ts';
import { liveText } from './live-text.ts';

const meaning = { metric: 'm', observation: 'a request', unit: 'requests' } as const;
const gauge = (last: number) => ({ last, mean: last, min: last, max: last, samples: 1, meaning });
const engine = (replica: string, waiting: number): Look => ({
  kind: 'engine',
  url: 'http://e',
  since: false,
  replicas: [
    {
      replica,
      engine: 'vllm',
      window: {},
      reset: false,
      durations: { queue: { count: 4, sum: 2, meaning: { ...meaning, unit: 'seconds' } } },
      sizes: {},
      totals: {},
      gauges: { waiting: gauge(waiting) },
      notes: [],
    },
  ],
});
const options = { windows: 5, paint: paint(false), now: 0 };

describe('goodput live', () => {
  it('puts replicas side by side and names the one that holds the queue', () => {
    const text = liveText([engine('a:8000', 40), engine('b:8000', 0), engine('c:8000', 1)], options).join('\n');
    expect(text).toMatch(/a:8000 +vllm .* 40 +- +500 ?ms/);
    expect(text).toContain('a:8000 holds 40 of 41 waiting requests');
  });

  it('says why one is not seen, and lets no escape code through', () => {
    const text = liveText(
      [{ kind: 'down', url: 'http://x', why: 'refused' }, engine('evil\u001b[2J', 0)],
      options,
    ).join('\n');
    expect(text).toContain('http://x: not seen (refused)');
    expect(text).not.toContain('\u001b');
  });
});
