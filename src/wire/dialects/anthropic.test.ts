import { describe, expect, it } from 'vitest';
import { inspectStream, inspectText, outputsOf, sse } from '../testing.ts';

describe('Anthropic messages', () => {
  const start = (model = 'claude-sonnet-4', usage: object = { input_tokens: 9, output_tokens: 1 }) => [
    'message_start',
    { type: 'message_start', message: { role: 'assistant', content: [], model, usage } },
  ];
  const block = (content_block: object, index = 0) => [
    'content_block_start',
    { type: 'content_block_start', index, content_block },
  ];
  const delta = (delta: object, index = 0) => ['content_block_delta', { type: 'content_block_delta', index, delta }];
  const end = (stop_reason: string | null, usage: object = { output_tokens: 5 }) => [
    'message_delta',
    { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage },
  ];
  const stop = ['message_stop', { type: 'message_stop' }];

  it('tools: the name and the arguments are output, the empty first piece is not', () => {
    const x = inspectStream(
      'anthropic.messages',
      start(),
      block({ type: 'tool_use', id: 't', name: 'get', input: {} }),
      delta({ type: 'input_json_delta', partial_json: '' }),
      delta({ type: 'input_json_delta', partial_json: '{"a":' }),
      delta({ type: 'input_json_delta', partial_json: '1}' }),
      end('tool_use'),
      stop,
    );
    expect(outputsOf(x).map(([index, kind]) => [index, kind])).toEqual([
      [1, 'tool'],
      [3, 'tool'],
      [4, 'tool'],
    ]);
    expect(x).toMatchObject({ finish: 'tool_use', outcome: 'ok', usageOut: 5, terminator: 'message_stop' });
  });
  it.each([
    ['claude-sonnet-4-5', 'summary'],
    ['claude-3-7-sonnet', 'reasoning'],
    ['Qwen/Qwen3-8B', 'reasoning'],
    ['claude', 'summary'],
    ['', 'summary'],
  ])('thinking of %s is %s; signatures and redactions are no output', (model, kind) => {
    const x = inspectStream(
      'anthropic.messages',
      start(model),
      block({ type: 'thinking', thinking: '', signature: '' }),
      delta({ type: 'thinking_delta', thinking: 'Hm' }),
      delta({ type: 'signature_delta', signature: 'Eq' }),
      block({ type: 'redacted_thinking', data: 'zz' }, 1),
      block({ type: 'text', text: '' }, 2),
      delta({ type: 'text_delta', text: 'Hi' }, 2),
      end('end_turn'),
      stop,
    );
    expect(outputsOf(x)).toEqual([
      [2, kind, 'Hm'],
      [6, 'text', 'Hi'],
    ]);
    expect(x).toMatchObject({ firstOutput: 2, firstAnswer: 6 });
    expect(x.tokens.n).toBe(kind === 'summary' ? null : 5);
  });
  it('server tools: the call is output, its result is not; citations are not', () => {
    const x = inspectStream(
      'anthropic.messages',
      start(),
      block({ type: 'server_tool_use', id: 's', name: 'web_search', input: {} }),
      block(
        { type: 'web_search_tool_result', tool_use_id: 's', content: [{ type: 'web_search_result', title: 'T' }] },
        1,
      ),
      delta({ type: 'citations_delta', citation: { cited_text: 'x' } }, 2),
      delta({ type: 'text_delta', text: 'a' }, 2),
      end('pause_turn'),
      stop,
    );
    expect(outputsOf(x).map(([index]) => index)).toEqual([1, 4]);
  });
  it('a delta and a block of a kind not known are output, and said to be unknown', () => {
    const x = inspectStream(
      'anthropic.messages',
      start(),
      block({ type: 'hologram', beam: 'x' }),
      delta({ type: 'beam_delta', beam: 'y' }),
      end('end_turn'),
      stop,
    );
    expect(x).toMatchObject({ unclassified: 2, outputEvents: 2 });
  });
  it.each(['max_tokens', 'stop_sequence', 'refusal', 'model_context_window_exceeded'])('finish %s', (reason) => {
    expect(
      inspectStream('anthropic.messages', start(), delta({ type: 'text_delta', text: 'a' }), end(reason), stop),
    ).toMatchObject({ finish: reason, outcome: 'ok' });
  });
  it('a refusal without output is an error', () => {
    expect(inspectStream('anthropic.messages', start(), end('refusal'), stop)).toMatchObject({
      outcome: 'error',
      finish: 'refusal',
    });
  });
  it('usage is cumulative, input counts what the cache held', () => {
    expect(
      inspectStream(
        'anthropic.messages',
        start('claude', {
          input_tokens: 9,
          cache_read_input_tokens: 100,
          cache_creation_input_tokens: 1,
          output_tokens: 1,
        }),
        delta({ type: 'text_delta', text: 'a' }),
        end(null, { output_tokens: 3 }),
        end('end_turn', { output_tokens: 7 }),
        stop,
      ),
    ).toMatchObject({ usageIn: 110, usageOut: 7 });
  });
  it('a stream cut before its stop reason is truncated, after it complete', () => {
    expect(inspectStream('anthropic.messages', start(), delta({ type: 'text_delta', text: 'a' }))).toMatchObject({
      outcome: 'truncated',
      usageOut: null,
    });
    expect(
      inspectStream('anthropic.messages', start(), delta({ type: 'text_delta', text: 'a' }), end('end_turn')),
    ).toMatchObject({ outcome: 'ok', terminator: 'eof-after-finish' });
  });
  it('overloaded before any output is a refusal', () => {
    expect(
      inspectText(sse(['error', { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }])),
    ).toMatchObject({
      dialect: 'anthropic.messages',
      outcome: 'error',
      ledger: 'rejected',
      reason: 'stream-error-529',
    });
  });
  it('a whole answer, and a whole error', () => {
    const body = {
      type: 'message',
      role: 'assistant',
      model: 'claude',
      content: [
        { type: 'text', text: 'Hi' },
        { type: 'tool_use', name: 'f', input: { a: 1 } },
      ],
      stop_reason: 'tool_use',
      usage: { input_tokens: 3, output_tokens: 4 },
    };
    expect(inspectText(JSON.stringify(body))).toMatchObject({
      dialect: 'anthropic.messages',
      whole: true,
      outcome: 'ok',
      finish: 'tool_use',
      usageOut: 4,
    });
    expect(inspectText('{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}')).toMatchObject({
      dialect: 'anthropic.messages',
      outcome: 'rejected',
    });
  });
});
