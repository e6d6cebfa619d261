import { describe, expect, it } from 'vitest';
import { inspectStream, inspectText, outputsOf } from '../testing.ts';

describe('Gemini', () => {
  const parts = (parts: object[], more: object = {}, index = 0) => ({
    candidates: [{ content: { role: 'model', parts }, index, ...more }],
    modelVersion: 'gemini-2.5-flash',
  });
  const usage = (candidatesTokenCount?: number, thoughtsTokenCount?: number) => ({
    usageMetadata: {
      promptTokenCount: 4,
      ...(candidatesTokenCount !== undefined && { candidatesTokenCount }),
      ...(thoughtsTokenCount !== undefined && { thoughtsTokenCount }),
      totalTokenCount: 9,
    },
  });

  it('parts: text, thoughts, calls, code, images; signatures and results are no output', () => {
    const x = inspectStream(
      'gemini.stream',
      parts([{ text: 'Plan', thought: true }]),
      parts([{ text: '', thoughtSignature: 'zz' }]),
      parts([{ functionCall: { name: 'f', args: { a: 1 } }, thoughtSignature: 'q' }]),
      parts([{ executableCode: { language: 'PYTHON', code: 'print(1)' } }]),
      parts([{ codeExecutionResult: { outcome: 'OUTCOME_OK', output: '1' } }]),
      parts([{ inlineData: { mimeType: 'image/png', data: 'zz' } }]),
      parts([{ text: 'a' }, { text: 'b' }]),
      parts([], { finishReason: 'STOP' }),
    );
    expect(outputsOf(x)).toEqual([
      [0, 'summary', 'Plan'],
      [2, 'tool', 'f{"a":1}'],
      [3, 'tool', 'print(1)'],
      [5, 'unclassified', undefined],
      [6, 'text', 'ab'],
    ]);
    expect(x).toMatchObject({ firstAnswer: 2, outcome: 'ok', finish: 'STOP' });
  });
  it('counts chunk by chunk where one candidate is counted on each', () => {
    const x = inspectStream(
      'gemini.stream',
      { ...parts([{ text: 'a' }]), ...usage(2, 10) },
      { ...parts([{ text: 'b' }], { finishReason: 'STOP' }), ...usage(7, 10) },
    );
    expect(x.tokens).toEqual({ n: 7, source: 'per-chunk', exactness: 'no' });
    expect(x).toMatchObject({ usageOut: 17, reasoningTokens: 10, candidateTokens: 7 });
  });
  it('several candidates', () => {
    expect(
      inspectStream(
        'gemini.stream',
        parts([{ text: 'a' }]),
        parts([{ text: 'b' }], {}, 1),
        parts([], { finishReason: 'STOP' }),
        parts([], { finishReason: 'MAX_TOKENS' }, 1),
      ),
    ).toMatchObject({ perChoiceOutput: { 0: 1, 1: 1 }, finish: 'STOP|MAX_TOKENS', outcome: 'ok' });
  });
  it.each(['SAFETY', 'OTHER', 'PROHIBITED_CONTENT', 'BLOCKLIST', 'IMAGE_SAFETY'])(
    'a prompt blocked for %s is an error',
    (blockReason) => {
      expect(inspectStream('gemini.stream', { promptFeedback: { blockReason }, ...usage() })).toMatchObject({
        finish: blockReason,
        outcome: 'error',
        usageOut: 0,
        outputEvents: 0,
      });
    },
  );
  it('prompt feedback without a block is nothing', () => {
    expect(
      inspectStream(
        'gemini.stream',
        { promptFeedback: { safetyRatings: [] }, ...parts([{ text: 'a' }]) },
        parts([], { finishReason: 'STOP' }),
      ),
    ).toMatchObject({ finish: 'STOP', outcome: 'ok' });
  });
  it('a candidate blocked without output is an error, with output it is filtered', () => {
    expect(
      inspectStream('gemini.stream', { candidates: [{ finishReason: 'SAFETY', index: 0 }], ...usage() }),
    ).toMatchObject({
      outcome: 'error',
      finish: 'SAFETY',
    });
    expect(
      inspectStream('gemini.stream', parts([{ text: 'a' }]), parts([], { finishReason: 'RECITATION' })),
    ).toMatchObject({
      outcome: 'ok',
      finish: 'RECITATION',
    });
    expect(
      inspectStream('gemini.stream', parts([{ text: 'a' }]), parts([], { finishReason: 'MALFORMED_FUNCTION_CALL' })),
    ).toMatchObject({ outcome: 'error' });
  });
  it('a JSON array, compact or as the server writes it', () => {
    const elements = [parts([{ text: 'a' }]), { ...parts([{ text: 'b' }], { finishReason: 'STOP' }), ...usage(2) }];
    for (const text of [
      JSON.stringify(elements),
      `[${elements.map((e) => JSON.stringify(e, null, 2)).join('\r\n,\r\n')}\r\n]\r\n`,
    ]) {
      expect(inspectText(text)).toMatchObject({
        dialect: 'gemini.stream',
        framing: 'json-array',
        events: 2,
        outputEvents: 2,
        usageOut: 2,
        outcome: 'ok',
      });
    }
  });
  it('errors, in a stream, in an array, and as a body', () => {
    const error = { error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } };
    expect(inspectStream('gemini.stream', error)).toMatchObject({
      outcome: 'error',
      ledger: 'rejected',
      reason: 'stream-error-503',
    });
    expect(inspectText(JSON.stringify([error]))).toMatchObject({
      dialect: 'gemini.stream',
      events: 1,
      outcome: 'error',
    });
    expect(inspectText(JSON.stringify(error, null, 2))).toMatchObject({
      dialect: 'gemini.stream',
      events: 0,
      outcome: 'rejected',
    });
  });
  it('a whole answer', () => {
    expect(
      inspectText(
        JSON.stringify(
          { ...parts([{ text: 'Plan', thought: true }, { text: 'Hi' }], { finishReason: 'STOP' }), ...usage(1, 2) },
          null,
          2,
        ),
      ),
    ).toMatchObject({ whole: true, outcome: 'ok', usageOut: 3, finish: 'STOP' });
  });
});
