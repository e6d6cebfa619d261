import { describe, expect, it } from 'vitest';
import { inspectStream, inspectText, outputsOf } from '../testing.ts';

describe('OpenAI responses', () => {
  const delta = (type: string, delta: unknown, index = 0) => ({
    type: `response.${type}.delta`,
    item_id: 'i',
    output_index: index,
    delta,
    sequence_number: 1,
  });
  const done = (status: string, more: object = {}) => ({
    type: `response.${status}`,
    response: { id: 'r', object: 'response', status, model: 'm', ...more },
  });
  const item = (type: string, item: object, index = 0) => ({
    type: `response.output_item.${type}`,
    output_index: index,
    item,
  });

  it.each([
    ['output_text', 'text'],
    ['refusal', 'refusal'],
    ['reasoning_text', 'reasoning'],
    ['reasoning_summary_text', 'summary'],
    ['function_call_arguments', 'tool'],
    ['custom_tool_call_input', 'tool'],
    ['mcp_call_arguments', 'tool'],
    ['code_interpreter_call_code', 'tool'],
    ['audio.transcript', 'text'],
    ['audio', 'unclassified'],
    ['something_new', 'unclassified'],
  ])('%s is %s', (type, kind) => {
    const x = inspectStream('openai.responses', delta(type, 'abc'), delta(type, ''), done('completed'));
    expect(outputsOf(x)).toEqual([[0, kind, type === 'audio' ? undefined : 'abc']]);
    expect(x).toMatchObject({ outcome: 'ok', finish: 'completed', terminator: 'response.completed' });
  });

  it('incomplete finishes with its reason', () => {
    const x = inspectStream(
      'openai.responses',
      delta('output_text', 'a'),
      done('incomplete', {
        incomplete_details: { reason: 'max_output_tokens' },
        usage: { input_tokens: 1, output_tokens: 2 },
      }),
    );
    expect(x).toMatchObject({
      finish: 'max_output_tokens',
      outcome: 'ok',
      usageOut: 2,
      terminator: 'response.incomplete',
    });
    expect(inspectStream('openai.responses', delta('output_text', 'a'), done('incomplete'))).toMatchObject({
      finish: 'incomplete',
    });
  });
  it('failed is an error', () => {
    expect(
      inspectStream(
        'openai.responses',
        delta('output_text', 'a'),
        done('failed', { error: { code: 'server_error', message: 'boom' } }),
      ),
    ).toMatchObject({
      outcome: 'error',
      finish: null,
      reason: 'stream-error-500',
      terminator: 'response.failed',
    });
    expect(
      inspectStream(
        'openai.responses',
        done('in_progress'),
        done('failed', { error: { code: 'rate_limit_exceeded', message: 'slow down' } }),
      ),
    ).toMatchObject({ outcome: 'error', ledger: 'rejected' });
  });
  it('both shapes of an error event', () => {
    for (const error of [
      { type: 'error', code: 'x', message: 'boom' },
      { type: 'error', error: { type: 'x', message: 'boom' } },
    ]) {
      expect(inspectStream('openai.responses', done('created'), ['error', error])).toMatchObject({
        outcome: 'error',
        detail: 'boom',
        terminator: 'error',
      });
    }
  });
  it('cancelled is a failure', () => {
    expect(inspectStream('openai.responses', delta('output_text', 'a'), done('cancelled'))).toMatchObject({
      outcome: 'error',
      ledger: 'failed',
    });
  });
  it('a stream that only stops is truncated', () => {
    expect(inspectStream('openai.responses', done('created'), delta('output_text', 'a'))).toMatchObject({
      outcome: 'truncated',
      finish: null,
    });
  });
  it('names of tools are output; calls without a name, and images in the making, are not', () => {
    const x = inspectStream(
      'openai.responses',
      item('added', { type: 'web_search_call', id: 'w', status: 'in_progress' }),
      { type: 'response.web_search_call.searching', output_index: 0 },
      item('added', { type: 'mcp_call', name: 'roll', arguments: '' }, 1),
      item('added', { type: 'custom_tool_call', name: 'sql', input: '' }, 2),
      item('added', { type: 'image_generation_call', result: null }, 3),
      { type: 'response.image_generation_call.partial_image', output_index: 3, partial_image_b64: 'abc' },
      item('added', { type: 'code_interpreter_call', code: null }, 4),
      { type: 'response.output_text.annotation.added', annotation: { type: 'url_citation' } },
      done('completed'),
    );
    expect(outputsOf(x)).toEqual([
      [2, 'tool', 'roll'],
      [3, 'tool', 'sql'],
    ]);
  });
  it('counts a whole item only where no delta brought it', () => {
    const message = (text: string) => ({
      type: 'message',
      role: 'assistant',
      content: [{ type: 'output_text', text }],
    });
    expect(
      outputsOf(
        inspectStream(
          'openai.responses',
          delta('output_text', 'Hi'),
          item('done', message('Hi')),
          done('completed', { output: [message('Hi')] }),
        ),
      ),
    ).toEqual([[0, 'text', 'Hi']]);
    expect(
      outputsOf(
        inspectStream(
          'openai.responses',
          item('added', message('')),
          item('done', message('Hi')),
          done('completed', { output: [message('Hi')] }),
        ),
      ),
    ).toEqual([[1, 'text', 'Hi']]);
    expect(
      outputsOf(inspectStream('openai.responses', done('created'), done('completed', { output: [message('Hi')] }))),
    ).toEqual([[1, 'text', 'Hi']]);
  });
  it('a whole answer', () => {
    const body = {
      object: 'response',
      status: 'completed',
      model: 'm',
      output: [
        { type: 'reasoning', summary: [] },
        { type: 'message', content: [{ type: 'output_text', text: 'Hi' }] },
      ],
      usage: { input_tokens: 3, output_tokens: 2, output_tokens_details: { reasoning_tokens: 1 } },
    };
    expect(inspectText(JSON.stringify(body))).toMatchObject({
      dialect: 'openai.responses',
      whole: true,
      outcome: 'ok',
      usageOut: 2,
      reasoningTokens: 1,
      finish: 'completed',
    });
  });
});
