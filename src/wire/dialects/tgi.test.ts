import { describe, expect, it } from 'vitest';
import { inspectStream, inspectText } from '../testing.ts';

describe('TGI', () => {
  const token = (id: number, text: string, more: object = {}, special = false) => ({
    index: 1,
    token: { id, text, logprob: -1, special },
    generated_text: null,
    details: null,
    ...more,
  });
  it('a token an event; one without text is output, a special one is not', () => {
    const x = inspectStream(
      'tgi.generate_stream',
      token(1, ' a'),
      token(2, ''),
      token(3, 'é'),
      token(
        9,
        '</s>',
        { generated_text: ' aé', details: { finish_reason: 'eos_token', generated_tokens: 4, seed: null } },
        true,
      ),
    );
    expect(x).toMatchObject({
      outputEvents: 3,
      finish: 'eos_token',
      usageOut: 4,
      usageIn: null,
      outcome: 'ok',
      tokens: { n: 3, source: 'per-chunk', exactness: 'exact' },
    });
  });
  it('a last event with output, at the limit or without details', () => {
    expect(
      inspectStream(
        'tgi.generate_stream',
        token(1, 'a'),
        token(2, 'b', { generated_text: 'ab', details: { finish_reason: 'length', generated_tokens: 2 } }),
      ),
    ).toMatchObject({ outputEvents: 2, finish: 'length', terminator: 'eof-after-final' });
    expect(inspectStream('tgi.generate_stream', token(1, 'a', { generated_text: 'a' }))).toMatchObject({
      outcome: 'ok',
      finish: null,
    });
  });
  it('errors', () => {
    expect(
      inspectStream('tgi.generate_stream', token(1, 'a'), {
        error: 'Request failed during generation',
        error_type: 'generation',
      }),
    ).toMatchObject({ outcome: 'error', ledger: 'failed' });
    expect(
      inspectStream('tgi.generate_stream', { error: 'Model is overloaded', error_type: 'overloaded' }),
    ).toMatchObject({
      outcome: 'error',
      ledger: 'rejected',
    });
  });
  it('truncated', () => {
    expect(inspectStream('tgi.generate_stream', token(1, 'a'))).toMatchObject({ outcome: 'truncated' });
  });
  it('a whole answer', () => {
    for (const body of [
      { generated_text: 'Hi', details: { finish_reason: 'length', generated_tokens: 2 } },
      [{ generated_text: 'Hi' }],
    ]) {
      expect(inspectText(JSON.stringify(body))).toMatchObject({
        dialect: 'tgi.generate_stream',
        whole: true,
        outcome: 'ok',
      });
    }
  });
});
