import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { bytesOf, chunk, finish, inspectText, sse } from '../testing.ts';
import { inspectCapture } from './inspect.ts';
import { inspectionText } from './text.ts';

const sample = (name: string) => readFileSync(new URL(`../../../samples/wire/${name}.txt`, import.meta.url));
const why = (...events: unknown[]) => inspectText(sse(...events)).eventList.map((e) => e.why);

describe('inspecting a capture', () => {
  it('says why each event is output, or what it is instead', () => {
    expect(
      why(
        { choices: [], prompt_filter_results: [] },
        chunk({ role: 'assistant', content: '' }),
        chunk({ role: 'assistant', content: null }, { prompt_progress: { total: 9, processed: 3 } }),
        chunk({ content: '\n' }),
        chunk({ reasoning: 'Hm' }),
        chunk({ tool_calls: [{ id: 'call_1' }] }),
        chunk({ future: 'x' }),
        chunk({}),
        finish('stop', { stop_reason: null }),
        { choices: [], usage: { prompt_tokens: 3, completion_tokens: 2 } },
        'nonsense',
        { error: { message: 'boom', code: 500 } },
        '[DONE]',
      ),
    ).toEqual([
      'no choices, not output',
      'role only, not output',
      'progress of the prompt, not output',
      'text "␊" (white space is output)',
      'reasoning "Hm"',
      'only tool_calls, not output',
      'output of an unknown kind in delta.future "x"',
      'empty delta, not output',
      'empty delta, not output; finish: stop, and usage counts an end token that is not shown',
      'no choices, usage only; usage: 3 in, 2 out',
      "cannot be read: an event is not JSON: 'nonsense'",
      'error 500: boom',
      'end marker [DONE], which is not success',
    ]);
  });

  it('skips a leading #wire line, whatever is in it', () => {
    const body = sse(chunk({ content: 'a' }), finish('stop'));
    for (const header of ['#wire {"name":"x"}\n', '#wire nonsense\n', '#wire\n', '']) {
      expect(inspectText(header + body)).toMatchObject({
        dialect: 'openai.chat',
        dialectFrom: 'detected',
        events: 2,
        outcome: 'ok',
      });
    }
    expect(inspectText(`#wire {"format":"anthropic.messages"}\n${body}`).dialectFrom).toBe('header');
    expect(inspectText('#wire {"format":"openai.chat"}')).toMatchObject({ events: 0, outcome: 'truncated' });
  });

  it('skips the head that curl -i prints, and believes its status and content type', () => {
    const head = (status: string, type: string) => `HTTP/1.1 ${status}\r\nServer: x\r\nContent-Type: ${type}\r\n\r\n`;
    const body = sse(chunk({ content: 'a' }), finish('stop'));
    const proxied = `HTTP/1.0 200 Connection established\r\n\r\n${head('200 OK', 'text/event-stream')}${body}`;
    for (const text of [head('200 OK', 'text/event-stream') + body, proxied, proxied.replaceAll('\r', '')]) {
      expect(inspectText(text)).toMatchObject({ events: 2, outcome: 'ok', framing: 'sse' });
    }
    expect(inspectText(`${head('503 Busy', 'text/html')}<html></html>`)).toMatchObject({
      outcome: 'rejected',
      reason: 'http-503',
      whole: true,
    });
    expect(inspectText(head('502 Bad Gateway', 'text/html'))).toMatchObject({ outcome: 'error', reason: 'http-502' });
    expect(inspectText('HTTP/1.1 is not enough')).toMatchObject({ outcome: 'error', reason: 'malformed' });
  });

  it('says when nothing shows the dialect', () => {
    expect(inspectText(sse({ foo: 'bar' }))).toMatchObject({ dialect: 'openai.chat', dialectFrom: 'assumed' });
  });

  it('keeps the server from writing to the terminal', () => {
    const text = inspectionText(
      inspectText(
        `event: \u001b[31m\n${sse(chunk({ content: '\u001b[2J\u202e' }), finish('\u001b]0;x'), { error: { message: '\u001b[H', type: '\u0007' } })}`,
      ),
    );
    expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]/);
  });

  it('prints a line an event and what it comes to', () => {
    expect(
      inspectionText(inspectCapture(sample('anthropic-text'), { dialect: 'anthropic.messages' })),
    ).toMatchInlineSnapshot(`
      "#  out  tokens  event                what and why
      0               message_start        message_start; usage: 25 in
      1               content_block_start  content_block_start: framing, not output
      2               ping                 ping
      3  ▶         ?  content_block_delta  text "Hello"
      4  •         ?  content_block_delta  text "!"
      5               content_block_stop   content_block_stop: framing, not output
      6               message_delta        message_delta; finish: end_turn; usage: 15 out
      7               message_stop         message_stop; terminal event

      dialect        anthropic.messages (as given)
      model          claude
      framing        sse
      events         8
      output events  2; first #3, first answer #3
      tokens         15 streamed, from the final usage
      usage          input 25, output 15
      finish         end_turn
      ended by       message_stop
      outcome        ok (filed as completed)
      "
    `);
  });

  it('prints a body that is no stream as one', () => {
    const text = inspectionText(inspectText('{"error":{"message":"upstream connect error","code":502}}'));
    expect(text).toContain('one body, not a stream');
    expect(text).toContain('error (filed as failed; stream-error-502: upstream connect error)');
  });
});

it('decoding what was encoded as bytes is what the text says', () => {
  expect(inspectCapture(bytesOf(sse(chunk({ content: '😀é' }), finish('stop')))).eventList[0]?.text).toBe('😀é');
});
