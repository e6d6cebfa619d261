import { describe, expect, it } from 'vitest';
import { chunk, finish, inspectText, sse } from '../testing.ts';

const inspect = (...events: unknown[]) => inspectText(sse(...events), { dialect: 'openai.chat' });
/** Kind and text of the one output a delta is, or null. */
const output = (delta: object) => {
  const { kinds, text } = inspect(chunk(delta), finish('stop')).eventList[0]!;
  return kinds.length === 0 ? null : [kinds[0], text];
};
const tokens = (...events: unknown[]) =>
  inspect(...events)
    .eventList.filter((e) => e.output)
    .map((e) => e.tokens);
const usage = (completion_tokens: number, more: object = {}) => ({
  usage: { prompt_tokens: 5, completion_tokens, total_tokens: 5 + completion_tokens, ...more },
});

describe('what a delta carries', () => {
  it.each([
    ['text', { content: 'Hi' }, ['text', 'Hi']],
    ['white space', { role: 'assistant', content: '\n' }, ['text', '\n']],
    ['a role', { role: 'assistant', content: '' }, null],
    ['nothing', {}, null],
    ['nulls', { content: null, refusal: null, tool_calls: null, function_call: null, audio: null }, null],
    ['a refusal', { refusal: 'No' }, ['refusal', 'No']],
    ['reasoning_content (DeepSeek, SGLang)', { content: null, reasoning_content: 'Hm' }, ['reasoning', 'Hm']],
    ['reasoning (vLLM, OpenRouter, Groq)', { reasoning: 'Hm' }, ['reasoning', 'Hm']],
    ['the same reasoning under two names', { reasoning: 'Hm', reasoning_content: 'Hm' }, ['reasoning', 'Hm']],
    [
      'reasoning_text with its opaque blob (Copilot)',
      { reasoning_text: 'Hm', reasoning_opaque: 'x9' },
      ['reasoning', 'Hm'],
    ],
    ['an opaque blob alone', { reasoning_opaque: 'x9', cot_id: 'c1', encrypted_content: 'zz', signature: 'q' }, null],
    ['a chain of thought summary', { cot_id: 'c1', cot_summary: 'Plan' }, ['summary', 'Plan']],
    ['an answer beside reasoning', { reasoning: 'Hm', content: 'Hi' }, ['text', 'HiHm']],
    [
      'reasoning details (OpenRouter)',
      { content: '', reasoning: 'Hm', reasoning_details: [{ type: 'reasoning.text', text: 'Hm', signature: null }] },
      ['reasoning', 'Hm'],
    ],
    [
      'summarised reasoning (OpenRouter)',
      { content: '', reasoning: 'Plan', reasoning_details: [{ type: 'reasoning.summary', summary: 'Plan' }] },
      ['summary', 'Plan'],
    ],
    ['details alone', { reasoning_details: [{ type: 'reasoning.text', text: 'Hm' }] }, ['reasoning', 'Hm']],
    [
      'details that summarise, alone',
      { reasoning_details: [{ type: 'reasoning.summary', summary: 'P' }] },
      ['summary', 'P'],
    ],
    [
      'encrypted details',
      { content: '', reasoning: null, reasoning_details: [{ type: 'reasoning.encrypted', data: 'x' }] },
      null,
    ],
    [
      'thinking blocks (LiteLLM)',
      { thinking_blocks: [{ type: 'thinking', thinking: 'Hm', signature: 's' }] },
      ['reasoning', 'Hm'],
    ],
    [
      'content as parts (Mistral)',
      {
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
      },
      ['text', 'ab'],
    ],
    [
      'thinking parts (Mistral)',
      { content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'Hm' }] }] },
      ['reasoning', 'Hm'],
    ],
    [
      'thinking that closes beside text',
      {
        content: [
          { type: 'thinking', thinking: [], closed: true },
          { type: 'text', text: 'a' },
        ],
      },
      ['text', 'a'],
    ],
    ['references (Mistral)', { content: [{ type: 'reference', reference_ids: [1, 2] }] }, null],
    ['empty parts', { content: [{ type: 'text', text: '' }] }, null],
    [
      'summary parts (Databricks)',
      { content: [{ type: 'reasoning', summary: [{ type: 'summary_text', text: 'P' }] }] },
      ['summary', 'P'],
    ],
    [
      "a tool's name",
      { tool_calls: [{ index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '' } }] },
      ['tool', 'f'],
    ],
    ['arguments', { tool_calls: [{ index: 0, function: { arguments: '{"' } }] }, ['tool', '{"']],
    [
      'arguments as an object',
      { tool_calls: [{ index: 0, function: { name: '', arguments: { a: 1 } } }] },
      ['tool', '{"a":1}'],
    ],
    [
      'an id alone',
      { tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: null, arguments: '' } }] },
      null,
    ],
    ['two calls', { tool_calls: [{ function: { name: 'f' } }, { index: 1, function: { name: 'g' } }] }, ['tool', 'fg']],
    [
      'a custom tool',
      { tool_calls: [{ type: 'custom', custom: { name: 'sql', input: 'select' } }] },
      ['tool', 'sqlselect'],
    ],
    ['no calls', { tool_calls: [] }, null],
    ['a legacy function call', { function_call: { name: 'f', arguments: '' } }, ['tool', 'f']],
    ['its arguments', { function_call: { arguments: '{}' } }, ['tool', '{}']],
    ['a transcript', { audio: { id: 'a', transcript: 'Hi' } }, ['text', 'Hi']],
    ['sound', { audio: { id: 'a', data: 'UklGRg==' } }, ['unclassified', undefined]],
    ["sound's beginning", { audio: { id: 'a', expires_at: 17 } }, null],
    ['annotations', { content: '', annotations: [{ type: 'url_citation', url: 'x' }] }, null],
    ['images', { images: [{ type: 'image_url', image_url: { url: 'data:x' } }] }, ['unclassified', undefined]],
    ['a field nobody knows', { future_text: 'x' }, ['unclassified', 'x']],
    ['structure nobody knows', { future: [{ a: { b: 'c' } }] }, ['unclassified', undefined]],
    ['unknown but empty', { future: '', other: {}, third: [], fourth: false, fifth: [{ a: '' }] }, null],
    ['an unknown field beside text', { content: 'a', future: 'x' }, ['text', 'a']],
  ])('%s', (_, delta, expected) => {
    expect(output(delta)).toEqual(expected);
  });

  it('names the field of unclassified output', () => {
    expect(inspect(chunk({ future_text: 'x' }), finish('stop'))).toMatchObject({
      unclassified: 1,
      firstOutput: 0,
      firstAnswer: 0,
    });
    expect(inspect(chunk({ future_text: 'x' })).eventList[0]?.why).toContain('delta.future_text');
  });
});

describe('finishes and ends', () => {
  it.each(['stop', 'length', 'tool_calls', 'function_call', 'content_filter', 'model_length'])('%s', (reason) => {
    expect(inspect(chunk({ content: 'a' }), finish(reason), '[DONE]')).toMatchObject({
      finish: reason,
      outcome: 'ok',
      terminator: '[DONE]',
    });
  });
  it.each(['abort', 'error', 'insufficient_system_resource'])(
    '%s is a failure of the engine, [DONE] or not',
    (reason) => {
      expect(inspect(chunk({ content: 'a' }), finish(reason), '[DONE]')).toMatchObject({
        finish: reason,
        outcome: 'error',
        ledger: 'failed',
      });
    },
  );
  it('[DONE] without a finish reason is truncated', () => {
    expect(inspect(chunk({ content: 'a' }), '[DONE]')).toMatchObject({ finish: null, outcome: 'truncated', events: 2 });
  });
  it('a filtered answer without output is an error', () => {
    expect(inspect(chunk({ content: '' }), finish('content_filter'), '[DONE]')).toMatchObject({
      finish: 'content_filter',
      outcome: 'error',
    });
  });
  it('an empty finish reason is none, and a repeated one counts once', () => {
    expect(inspect(chunk({ content: 'a' }, {}, { finish_reason: '' }), finish('stop'), finish('stop'))).toMatchObject({
      finish: 'stop',
      outcome: 'ok',
    });
  });
  it('every choice has to finish', () => {
    const two = [chunk({ content: 'a' }), chunk({ content: 'b' }, {}, { index: 1 }), finish('stop')];
    expect(inspect(...two)).toMatchObject({ outcome: 'truncated', perChoiceOutput: { 0: 1, 1: 1 } });
    expect(inspect(...two, finish('length', { index: 1 }))).toMatchObject({ outcome: 'ok', finish: 'stop|length' });
  });
  it('several choices in one chunk', () => {
    const both = {
      object: 'chat.completion.chunk',
      choices: [
        { index: 0, delta: { content: 'a' } },
        { index: 1, delta: { content: 'b' } },
      ],
    };
    expect(inspect(both, finish('stop'), finish('stop', { index: 1 }))).toMatchObject({
      outputEvents: 1,
      perChoiceOutput: { 0: 1, 1: 1 },
    });
  });
  it("Azure's chunks without choices and without delta", () => {
    const azure = { object: '', choices: [], prompt_filter_results: [{ prompt_index: 0 }] };
    const trailing = {
      id: '',
      object: '',
      choices: [{ content_filter_offsets: { end_offset: 9 }, finish_reason: null, index: 0 }],
    };
    expect(
      inspect(azure, chunk({ role: 'assistant' }), chunk({ content: 'a' }), finish('stop'), trailing, '[DONE]'),
    ).toMatchObject({
      firstOutput: 2,
      outputEvents: 1,
      outcome: 'ok',
    });
  });
  it('a whole message in one event, and one that repeats the stream', () => {
    const whole = {
      object: 'chat.completion',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
    };
    expect(inspect(whole, '[DONE]')).toMatchObject({ outputEvents: 1, firstOutput: 0, finish: 'stop' });
    expect(inspect(chunk({ content: 'Hi' }), whole, '[DONE]')).toMatchObject({ outputEvents: 1, finish: 'stop' });
  });
});

describe('errors inside the stream', () => {
  const error = (event: unknown, ...before: unknown[]) => {
    const { outcome, ledger, reason, detail } = inspect(...before, event, '[DONE]');
    return [outcome, ledger, reason, detail];
  };
  it.each([
    [
      'vLLM',
      { error: { message: 'boom', type: 'InternalServerError', param: null, code: 500 } },
      'failed',
      'stream-error-500',
    ],
    [
      'vLLM before 0.10',
      { object: 'error', message: 'boom', type: 'BadRequestError', param: null, code: 400 },
      'failed',
      'stream-error-400',
    ],
    [
      'a queue that is full',
      { error: { message: 'boom', type: 'SERVICE_UNAVAILABLE', code: 503 } },
      'rejected',
      'stream-error-503',
    ],
    [
      'a code in words',
      { error: { message: 'boom', type: 'requests', code: 'rate_limit_exceeded' } },
      'rejected',
      'stream-error-429',
    ],
    ['a code as text', { error: { message: 'boom', code: '502' } }, 'failed', 'stream-error-502'],
    ['a plain text', { error: 'boom' }, 'failed', 'stream-error'],
    ['FastAPI', { detail: 'boom' }, 'failed', 'stream-error'],
    ['FastAPI, validating', { detail: [{ loc: ['body', 'n'], msg: 'boom', type: 'x' }] }, 'failed', 'stream-error'],
    ['a gateway', { code: 429, message: 'boom' }, 'rejected', 'stream-error-429'],
    ['a named event', ['error', { reason: 'boom', message: 'boom' }], 'failed', 'stream-error'],
  ])('%s', (_, event, ledger, reason) => {
    const found = error(event);
    expect(found.slice(0, 3)).toEqual(['error', ledger, reason]);
    expect(found[3]).toContain('boom');
  });
  it('a refusal after output is a failure', () => {
    expect(error({ error: { message: 'queue full', code: 503 } }, chunk({ content: 'a' }))).toEqual([
      'error',
      'failed',
      'stream-error-503',
      'queue full',
    ]);
  });
  it("OpenRouter's, beside a choice that finishes with error", () => {
    const event = {
      ...chunk({ content: '' }, {}, { finish_reason: 'error' }),
      error: { code: 'server_error', message: 'Provider disconnected' },
    };
    expect(inspect(chunk({ content: 'a' }), event)).toMatchObject({
      finish: 'error',
      outcome: 'error',
      outputEvents: 1,
      reason: 'stream-error-500',
    });
  });
  it('a named error event that is no JSON', () => {
    expect(inspectText(`${sse(chunk({ content: 'a' }))}event: error\ndata: upstream reset\n\n`)).toMatchObject({
      outcome: 'error',
      detail: 'upstream reset',
    });
  });
  it("llama.cpp's old error line", () => {
    expect(
      inspectText(`${sse(chunk({ content: 'a' }))}error: {"code":500,"message":"context","type":"server_error"}\n\n`),
    ).toMatchObject({ outcome: 'error', reason: 'stream-error-500' });
  });
  it('no error where the field is null', () => {
    expect(inspect(chunk({ content: 'a' }, { error: null }), finish('stop'))).toMatchObject({
      outcome: 'ok',
      outputEvents: 1,
    });
  });
});

describe('tokens a chunk', () => {
  it('are unknown without counts', () => {
    expect(tokens(chunk({ content: 'a' }), finish('stop'))).toEqual([null]);
  });
  it('grow with continuous usage; what was held back comes with the next chunk, the end token with none', () => {
    expect(
      tokens(
        chunk({ role: 'assistant', content: '' }, usage(0)),
        chunk({ content: 'a' }, usage(1)),
        chunk({}, usage(2)),
        chunk({ content: 'b' }, usage(4)),
        chunk({ content: 'c' }, usage(6), { finish_reason: 'stop', stop_reason: null }),
      ),
    ).toEqual([1, 3, 1]);
  });
  it('are not those of a usage that only comes at the end', () => {
    expect(tokens(chunk({ content: 'a' }), chunk({ content: 'b' }, usage(9), { finish_reason: 'stop' }))).toEqual([
      null,
      null,
    ]);
    expect(tokens(chunk({ content: 'ab' }, usage(9), { finish_reason: 'stop' }))).toEqual([null]);
    expect(inspect(chunk({ content: 'ab' }, usage(9), { finish_reason: 'stop' })).tokens).toMatchObject({
      n: 9,
      source: 'usage',
    });
  });
  it('are not those of a usage that stands still', () => {
    const x = inspect(chunk({ content: 'a' }, usage(1)), chunk({ content: 'b' }, usage(1)), finish('stop'), {
      choices: [],
      ...usage(30),
    });
    expect(x.eventList.filter((e) => e.output).map((e) => e.tokens)).toEqual([1, null]);
    expect(x.tokens).toMatchObject({ n: 30, source: 'usage' });
  });
  it('count each choice by itself, and the usage is their sum', () => {
    const x = inspect(
      chunk({ content: 'a' }, usage(2)),
      chunk({ content: 'b' }, usage(3), { index: 1 }),
      chunk({ content: 'a' }, usage(4)),
      finish('stop'),
      finish('stop', { index: 1 }),
    );
    expect(x.eventList.filter((e) => e.output).map((e) => e.tokens)).toEqual([2, 3, 2]);
    expect(x.usageOut).toBe(7);
  });
  it('come from token ids, less the end token', () => {
    expect(
      tokens(
        chunk({ content: 'a' }, {}, { token_ids: [1, 2] }),
        chunk({ content: '' }, {}, { token_ids: [3] }),
        chunk({ content: 'b' }, {}, { token_ids: [4, 0], finish_reason: 'stop', stop_reason: null }),
      ),
    ).toEqual([2, 2]);
  });
  it("come from llama.cpp's timings", () => {
    const timings = (predicted_n: number) => ({ timings: { predicted_n, prompt_ms: 12, predicted_ms: 30 } });
    expect(tokens(chunk({ content: 'a' }, timings(1)), chunk({ content: 'b' }, timings(3)), finish('stop'))).toEqual([
      1, 2,
    ]);
    expect(tokens(chunk({ content: 'a' }), chunk({ content: 'b' }, timings(3), { finish_reason: 'stop' }))).toEqual([
      null,
      null,
    ]);
  });
  it('leave an end token that usage counts and nobody saw out of the final usage', () => {
    for (const choice of [{ stop_reason: null }, { matched_stop: 2 }]) {
      expect(inspect(chunk({ content: 'a' }), finish('stop', choice), { choices: [], ...usage(2) }).tokens).toEqual({
        n: 1,
        source: 'usage',
        exactness: 'inferred',
      });
    }
    for (const choice of [{ stop_reason: '\n' }, { matched_stop: 'END' }, {}]) {
      expect(inspect(chunk({ content: 'a' }), finish('stop', choice), { choices: [], ...usage(2) }).tokens.n).toBe(2);
    }
    expect(
      inspect(chunk({ content: 'a' }), finish('length', { stop_reason: null }), { choices: [], ...usage(2) }).tokens.n,
    ).toBe(2);
  });
});

describe('usage', () => {
  it.each([
    [
      'OpenAI',
      usage(4, { prompt_tokens_details: { cached_tokens: 2 }, completion_tokens_details: { reasoning_tokens: 3 } }),
      3,
    ],
    ['SGLang', usage(4, { reasoning_tokens: 3 }), 3],
    ['Groq', { x_groq: { id: 'r', ...usage(4), usage_breakdown: null } }, null],
  ])('of %s', (_, more, reasoning) => {
    expect(inspect(chunk({ content: 'a' }), { ...finish('stop'), ...more })).toMatchObject({
      usageIn: 5,
      usageOut: 4,
      reasoningTokens: reasoning,
    });
  });
  it('on the choice (Moonshot)', () => {
    expect(inspect(chunk({ content: 'a' }), finish('stop', usage(4)))).toMatchObject({ usageOut: 4 });
  });
  it('hidden reasoning is not streamed', () => {
    const details = { completion_tokens_details: { reasoning_tokens: 20 } };
    expect(
      inspect(chunk({ content: 'a' }), chunk({ content: 'b' }), finish('stop'), { choices: [], ...usage(22, details) })
        .tokens,
    ).toMatchObject({ n: 2 });
  });
});

describe('answers that were not streamed', () => {
  it('chat', () => {
    const body = {
      object: 'chat.completion',
      model: 'm',
      choices: [
        { index: 0, message: { role: 'assistant', content: 'Hi', refusal: null }, finish_reason: 'stop' },
        {
          index: 1,
          message: { role: 'assistant', content: null, tool_calls: [{ function: { name: 'f', arguments: '{}' } }] },
          finish_reason: 'tool_calls',
        },
      ],
      ...usage(9),
    };
    const x = inspectText(JSON.stringify(body));
    expect(x).toMatchObject({
      dialect: 'openai.chat',
      whole: true,
      events: 0,
      outputEvents: 0,
      usageOut: 9,
      finish: 'stop|tool_calls',
      outcome: 'ok',
      model: 'm',
    });
    expect(x.eventList[0]).toMatchObject({ kinds: ['text', 'tool'], choices: [0, 1], text: 'Hif{}' });
  });
  it('completions', () => {
    const body = {
      object: 'text_completion',
      choices: [{ index: 0, text: 'Hi', finish_reason: 'length' }],
      ...usage(2),
    };
    expect(inspectText(JSON.stringify(body))).toMatchObject({
      dialect: 'openai.completions',
      finish: 'length',
      outcome: 'ok',
      usageOut: 2,
    });
  });
});
