import { describe, expect, it } from 'vitest';
import { inspectStream } from '../testing.ts';

describe('Triton', () => {
  const piece = (text_output: string, more: object = {}) => ({
    model_name: 'm',
    model_version: '1',
    sequence_end: false,
    sequence_id: 0,
    text_output,
    ...more,
  });
  it('ends where the body ends, and says that nothing marked it', () => {
    const x = inspectStream('triton.generate_stream', piece('a'), piece(''), piece('b'));
    expect(x).toMatchObject({ outputEvents: 2, finish: null, outcome: 'ok', terminator: 'eof', events: 3 });
  });
  it('takes counts and finishes where the backend sends them', () => {
    expect(
      inspectStream(
        'triton.generate_stream',
        piece('a', { num_output_tokens: 1, num_input_tokens: 4, finish_reason: 'None' }),
        piece('b', { num_output_tokens: 2, finish_reason: 'stop' }),
      ),
    ).toMatchObject({ usageIn: 4, usageOut: 3, finish: 'stop', tokens: { n: 3, source: 'per-chunk' } });
  });
  it('an output of another name is unclassified', () => {
    expect(inspectStream('triton.generate_stream', { model_name: 'm', model_version: '1', OUT: ['a'] })).toMatchObject({
      unclassified: 1,
      outputEvents: 1,
    });
  });
  it('an error', () => {
    expect(inspectStream('triton.generate_stream', piece('a'), { error: 'boom' })).toMatchObject({
      outcome: 'error',
      detail: 'boom',
      terminator: 'error',
    });
    expect(inspectStream('triton.generate_stream', { error: 'request queue full' })).toMatchObject({
      outcome: 'error',
      ledger: 'rejected',
    });
  });
});
