import { describe, expect, it } from 'vitest';
import { inspectStream } from '../testing.ts';

describe('OpenAI completions', () => {
  it('several choices, logprobs, empty texts', () => {
    const text = (text: string, index = 0, more: object = {}) => ({
      object: 'text_completion',
      choices: [{ index, text, logprobs: null, finish_reason: null, ...more }],
    });
    expect(
      inspectStream(
        'openai.completions',
        text('a', 0, { logprobs: { tokens: ['a'] } }),
        text('', 1),
        text('b', 1),
        text('', 0, { finish_reason: 'stop', stop_reason: null }),
        text('', 1, { finish_reason: 'length' }),
        '[DONE]',
      ),
    ).toMatchObject({ outputEvents: 2, perChoiceOutput: { 0: 1, 1: 1 }, finish: 'stop|length', outcome: 'ok' });
  });
});
