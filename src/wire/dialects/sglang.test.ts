import { describe, expect, it } from 'vitest';
import { inspectStream, inspectText, outputsOf } from '../testing.ts';

describe('SGLang generate', () => {
  const event = (text: string, completion_tokens: number, more: object = {}, finish: unknown = null) => ({
    text,
    meta_info: { id: 'x', finish_reason: finish, prompt_tokens: 3, completion_tokens },
    ...more,
  });
  const stop = { type: 'stop', matched: 2 };

  it('cumulative text: only what is added is output', () => {
    const x = inspectStream(
      'sglang.generate',
      event('a', 1),
      event('a', 2),
      event('a é', 3),
      event('a éb', 5, {}, stop),
      '[DONE]',
    );
    expect(outputsOf(x)).toEqual([
      [0, 'text', 'a'],
      [2, 'text', ' é'],
      [3, 'text', 'b'],
    ]);
    expect(x.eventList.map((e) => e.tokens)).toEqual([1, null, 2, 1, null]);
  });
  it('incremental text', () => {
    const x = inspectStream('sglang.generate', event(' The', 1), event(' cat', 2), event('', 3, {}, stop), '[DONE]');
    expect(outputsOf(x).map(([, , text]) => text)).toEqual([' The', ' cat']);
    expect(x).toMatchObject({ usageOut: 3, finish: 'stop', outcome: 'ok' });
  });
  it('incremental text that repeats, told by its ids', () => {
    const x = inspectStream(
      'sglang.generate',
      event('ha', 1, { output_ids: [7] }),
      event('ha', 2, { output_ids: [7] }),
      event('ha', 3, { output_ids: [7] }, { type: 'length', length: 3 }),
      '[DONE]',
    );
    expect(x).toMatchObject({ outputEvents: 3, tokens: { n: 3 } });
  });
  it('cumulative ids beside cumulative text', () => {
    const x = inspectStream(
      'sglang.generate',
      event('', 1, { output_ids: [5] }),
      event('', 2, { output_ids: [5, 6] }),
      event('', 3, { output_ids: [5, 6, 2] }, stop),
      '[DONE]',
    );
    expect(x).toMatchObject({ outputEvents: 2, tokens: { n: 2, source: 'per-chunk' } });
  });
  it('several choices by index', () => {
    const x = inspectStream(
      'sglang.generate',
      event('a', 1, { index: 0 }),
      event('b', 1, { index: 1 }),
      event('ab', 2, { index: 0 }, stop),
      event('bc', 4, { index: 1 }, { type: 'length', length: 4 }),
      '[DONE]',
    );
    expect(x).toMatchObject({ perChoiceOutput: { 0: 2, 1: 2 }, usageOut: 6, finish: 'stop|length', outcome: 'ok' });
  });
  it('an abort is an error, with the status it says', () => {
    expect(
      inspectStream(
        'sglang.generate',
        event(
          '',
          0,
          {},
          { type: 'abort', message: 'The request queue is full.', status_code: 503, err_type: 'QueueFull' },
        ),
        '[DONE]',
      ),
    ).toMatchObject({ finish: 'abort', outcome: 'error', ledger: 'rejected', reason: 'stream-error-503' });
    expect(
      inspectStream(
        'sglang.generate',
        event('a', 1),
        event('a', 1, {}, { type: 'abort', message: 'Aborted' }),
        '[DONE]',
      ),
    ).toMatchObject({ outcome: 'error', ledger: 'failed', finish: 'abort' });
  });
  it('an error event', () => {
    expect(inspectStream('sglang.generate', event('a', 1), { error: { message: 'boom' } }, '[DONE]')).toMatchObject({
      outcome: 'error',
      detail: 'boom',
    });
  });
  it('a whole answer, one or a list', () => {
    const body = event('Hi', 2, {}, stop);
    expect(inspectText(JSON.stringify(body))).toMatchObject({
      dialect: 'sglang.generate',
      whole: true,
      outcome: 'ok',
      usageOut: 2,
    });
    expect(inspectText(JSON.stringify([body, body]))).toMatchObject({
      whole: true,
      outcome: 'ok',
      usageOut: 4,
      finish: 'stop|stop',
    });
  });
});
