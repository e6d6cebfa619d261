import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { StreamEvent } from '../core/stream.ts';
import { streamDecoder } from './decoder.ts';
import type { DialectName } from './dialect.ts';
import { DIALECTS } from './dialects/index.ts';
import { bytesOf, chunk, finish, sse } from './testing.ts';

/** An event, and the text of the frame it was read from. */
type Told = readonly [event: StreamEvent, frame: string | undefined];

/**
 * Events, each with the text of its frame, by the decoder as it is and by one that parses each; the former with a read an
 * event, where whole reads are matched, and with all in one.
 */
function both(dialect: DialectName, text: string): [Told[], Told[]] {
  const run = (d: Parameters<typeof streamDecoder>[0], reads: readonly string[]): Told[] => {
    const out: Told[] = [];
    const decoder = streamDecoder(d);
    for (const read of reads) decoder.push(bytesOf(read), (event, frame) => void out.push([event, frame?.data]));
    decoder.end((event, frame) => void out.push([event, frame?.data]));
    return out;
  };
  const parsing = {
    ...DIALECTS[dialect],
    decoder: () => {
      const decoder = DIALECTS[dialect].decoder();
      return { event: decoder.event.bind(decoder), end: decoder.end.bind(decoder) };
    },
  };
  const parsed = run(parsing, [text]);
  expect(run(dialect, text.split(/(?<=\n\n)/))).toEqual(parsed);
  return [run(dialect, [text]), parsed];
}

describe('events that repeat mean what they would mean when parsed', () => {
  const text = fc.oneof(
    fc.constantFrom(
      'a',
      ' the',
      'assistant',
      'stop',
      'm',
      '',
      '"',
      '\\',
      '\n',
      '😀',
      '}',
      '"}}]}',
      'content',
      'probe of the text',
    ),
    fc.string({ unit: 'binary', maxLength: 5 }),
  );
  const usage = { usage: { prompt_tokens: 1, completion_tokens: 2 } };
  const chatEvent = fc.oneof(
    { weight: 8, arbitrary: text.map((content) => chunk({ content })) },
    text.map((reasoning) => chunk({ reasoning })),
    text.map((content) => chunk({ role: 'assistant', content })),
    text.map((content) => chunk({ content }, {}, { index: 1 })),
    text.map((content) => chunk({ content }, usage)),
    text.map((content) => chunk({ content }, { created: content })),
    text.map((future) => chunk({ future })),
    text.map((content) => chunk({ content, tool_calls: [{ function: { name: content } }] })),
    fc.constantFrom(finish('stop'), chunk({}), { choices: [], ...usage }, '[DONE]'),
  );
  it('OpenAI chat', () => {
    fc.assert(
      fc.property(fc.array(chatEvent, { maxLength: 40 }), (events) => {
        const [quick, parsed] = both('openai.chat', sse(...events));
        expect(quick).toEqual(parsed);
      }),
      { numRuns: 300 },
    );
  });
  it('Anthropic', () => {
    const delta = fc
      .tuple(fc.constantFrom('text', 'thinking', 'partial_json', 'future'), text, fc.nat(1))
      .map(([key, value, index]) => [
        'content_block_delta',
        {
          type: 'content_block_delta',
          index,
          delta: { type: key === 'partial_json' ? 'input_json_delta' : `${key}_delta`, [key]: value },
        },
      ]);
    fc.assert(
      fc.property(fc.array(delta, { maxLength: 40 }), (events) => {
        const [quick, parsed] = both('anthropic.messages', sse(...events));
        expect(quick).toEqual(parsed);
      }),
      { numRuns: 300 },
    );
  });
  it('an unescaped control character is still malformed', () => {
    const broken =
      sse(chunk({ content: 'a' }), chunk({ content: 'b' })) +
      sse(JSON.stringify(chunk({ content: 'x' })).replace('"x"', '"\u0001"'));
    const [quick, parsed] = both('openai.chat', broken);
    expect(quick).toEqual(parsed);
    expect(quick.at(-1)![0].malformed).toContain('not JSON');
  });
});
