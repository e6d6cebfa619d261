import { describe, expect, it } from 'vitest';
import { inspectStream, inspectText } from '../testing.ts';

describe('llama.cpp', () => {
  const piece = (content: string, more: object = {}) => ({ index: 0, content, tokens: [], stop: false, ...more });
  it('counts by what is predicted, and an end token nobody saw', () => {
    const x = inspectStream(
      'llamacpp.completion',
      piece('a', { tokens_predicted: 1, tokens_evaluated: 5 }),
      piece('', { tokens_predicted: 2 }),
      piece('b', { tokens_predicted: 3 }),
      piece('', {
        stop: true,
        stop_type: 'eos',
        tokens_predicted: 4,
        tokens_evaluated: 5,
        timings: { prompt_ms: 3, predicted_ms: 9, cache_n: 2 },
      }),
    );
    expect(x.eventList.map((e) => e.tokens)).toEqual([1, null, 2, null]);
    expect(x).toMatchObject({
      finish: 'eos',
      usageIn: 5,
      usageOut: 4,
      outcome: 'ok',
      tokens: { n: 3, source: 'per-chunk' },
    });
  });
  it('older ends', () => {
    for (const [flag, reason] of [
      ['stopped_eos', 'eos'],
      ['stopped_limit', 'limit'],
      ['stopped_word', 'word'],
    ] as const) {
      expect(inspectStream('llamacpp.completion', piece('a'), piece('', { stop: true, [flag]: true }))).toMatchObject({
        finish: reason,
        outcome: 'ok',
      });
    }
  });
  it('progress of the prompt is no output; the last event may carry some', () => {
    expect(
      inspectStream(
        'llamacpp.completion',
        piece('', { prompt_progress: { total: 9, processed: 4 } }),
        piece('a', { stop: true, stop_type: 'limit' }),
      ),
    ).toMatchObject({ firstOutput: 1, outcome: 'ok' });
  });
  it('an error', () => {
    expect(
      inspectStream('llamacpp.completion', piece('a'), {
        error: { code: 500, message: 'context size has been exceeded', type: 'server_error' },
      }),
    ).toMatchObject({ outcome: 'error', reason: 'stream-error-500' });
  });
  it('a whole answer', () => {
    expect(
      inspectText(
        JSON.stringify({ ...piece('Hi'), stop: true, stop_type: 'limit', tokens_predicted: 2, tokens_evaluated: 5 }),
      ),
    ).toMatchObject({ dialect: 'llamacpp.completion', whole: true, usageOut: 2, outcome: 'ok' });
  });
});
