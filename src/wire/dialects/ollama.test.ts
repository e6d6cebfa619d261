import { describe, expect, it } from 'vitest';
import { inspectText, ndjson } from '../testing.ts';

describe('Ollama', () => {
  it('thinking, tools and unknown fields of a message', () => {
    const line = (message: object, more: object = {}) => ({
      model: 'm',
      message: { role: 'assistant', content: '', ...message },
      done: false,
      ...more,
    });
    const x = inspectText(
      ndjson(
        line({ thinking: 'Hm' }),
        line({ tool_calls: [{ function: { name: 'f', arguments: {} } }] }),
        line({ hologram: 'x' }),
        line({}, { done: true, done_reason: 'length', eval_count: 3, prompt_eval_count: 2, load_duration: 5e6 }),
      ),
    );
    expect(x).toMatchObject({
      dialect: 'ollama.chat',
      firstOutput: 0,
      firstAnswer: 1,
      outputEvents: 3,
      unclassified: 1,
      finish: 'length',
      usageIn: 2,
      usageOut: 3,
      outcome: 'ok',
    });
  });
  it('an error in mid-stream, and instead of a stream', () => {
    expect(
      inspectText(
        ndjson(
          { model: 'm', response: 'a', done: false },
          { error: 'an error was encountered while running the model' },
        ),
      ),
    ).toMatchObject({ dialect: 'ollama.generate', events: 2, outcome: 'error' });
    expect(inspectText(ndjson({ error: "model 'x' not found" }))).toMatchObject({
      outcome: 'error',
      detail: "model 'x' not found",
    });
  });
  it('a stream that stops before done is truncated', () => {
    expect(inspectText(ndjson({ model: 'm', response: 'a', done: false }))).toMatchObject({ outcome: 'truncated' });
  });
  it('done without a reason (older servers) is an end', () => {
    expect(
      inspectText(
        ndjson(
          { model: 'm', response: 'a', done: false },
          { model: 'm', response: '', done: true, context: [1, 2], eval_count: 1 },
        ),
      ),
    ).toMatchObject({ outcome: 'ok', finish: null, usageOut: 1, terminator: 'done:true' });
  });
  it('lines without the last line end, and CRLF', () => {
    const text = ndjson(
      { model: 'm', response: 'a', done: false },
      { model: 'm', response: '', done: true, done_reason: 'stop' },
    );
    expect(inspectText(text.trimEnd())).toMatchObject({ events: 2, outcome: 'ok' });
    expect(inspectText(text.replaceAll('\n', '\r\n'))).toMatchObject({ events: 2, outcome: 'ok' });
  });
});
