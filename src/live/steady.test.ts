import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { StreamEvent } from '../core/stream.ts';
import { type DialectName, streamDecoder } from '../wire/index.ts';
import type { Decoder } from './attempt.ts';
import { STEADY, steady } from './steady.ts';

function decode(decoder: Decoder, reads: readonly Buffer[]): StreamEvent[] {
  const events: StreamEvent[] = [];
  for (const read of reads) decoder.push(read, (event) => void events.push(event));
  decoder.end((event) => void events.push(event));
  return events;
}

const frame = (choice: object, more: object = {}): string =>
  `data: ${JSON.stringify({ id: 'c1', created: 1, model: 'm', choices: [choice], ...more })}\n\n`;

const text = fc.oneof(
  fc.constantFrom(
    ' token',
    'content',
    'index',
    'm',
    'c1',
    '',
    ' ',
    '"',
    '\\',
    '\n',
    'ü',
    '日本',
    '🎉',
    '</think>',
    '\u007f',
    'data: x',
  ),
  fc.string({ maxLength: 6, unit: 'binary' }),
);
const choice = fc.oneof(
  { weight: 6, arbitrary: text.map((content) => ({ index: 0, delta: { content }, finish_reason: null })) },
  text.map((content) => ({ index: 1, delta: { content }, finish_reason: null })),
  text.map((reasoning_content) => ({ index: 0, delta: { reasoning_content }, finish_reason: null })),
  text.map((t) => ({ index: 0, delta: { reasoning: t, reasoning_content: t }, finish_reason: null })),
  text.map((t) => ({ index: 0, delta: { content: t }, logprobs: { content: [{ token: t }] }, finish_reason: null })),
  text.map((t) => ({ index: 0, text: t, finish_reason: null })),
  text.map((content) => ({ index: 0, delta: { content }, finish_reason: 'stop' })),
  text.map((content) => ({ index: 0, delta: { content }, token_ids: [7], finish_reason: null })),
);
const frames = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: choice.map((c) => frame(c)) },
    fc.tuple(choice, fc.nat(9)).map(([c, n]) => frame(c, { usage: { completion_tokens: n } })),
    fc.constantFrom(
      ': ping\n\n',
      'data: [DONE]\n\n',
      'data: {bad\n\n',
      'event: x\n',
      '\n',
      frame({ index: 0, delta: { role: 'assistant' } }),
    ),
  ),
  { maxLength: 30 },
);

describe('steady', () => {
  it('gives the events that the decoder alone gives, however the bytes are read', () => {
    fc.assert(
      fc.property(
        frames,
        fc.array(fc.nat(400), { maxLength: 8 }),
        fc.constantFrom(...STEADY),
        (list, cuts, dialect) => {
          const whole = list.map((f) => Buffer.from(f));
          const all = Buffer.concat(whole);
          const at = [...new Set([0, ...cuts.map((c) => c % (all.length + 1)), all.length])].sort((a, b) => a - b);
          const cut = at.slice(1).map((end, i) => all.subarray(at[i], end));
          for (const reads of [whole, cut]) {
            const expected = decode(streamDecoder(dialect, 'text/event-stream'), reads);
            expect(decode(steady(streamDecoder(dialect, 'text/event-stream')), reads)).toEqual(expected);
          }
        },
      ),
      { numRuns: 400, seed: 5 },
    );
  });

  it('asks the decoder nothing for events that follow one of their kind', () => {
    let asked = 0;
    const inner = streamDecoder('openai.chat' satisfies DialectName, 'text/event-stream');
    const counted: Decoder = {
      push(bytes, emit) {
        asked++;
        inner.push(bytes, emit);
      },
      end: (emit) => inner.end(emit),
    };
    const reads = Array.from({ length: 50 }, (_, i) => Buffer.from(frame({ index: 0, delta: { content: ` t${i}` } })));
    const events = decode(steady(counted), reads);
    expect(events.map((e) => e.outputs[0]?.text)).toEqual(reads.map((_, i) => ` t${i}`));
    expect(asked).toBe(2); // the first also tells the model
  });

  it('stops looking where no event follows another', () => {
    const reads = Array.from({ length: 200 }, (_, i) =>
      Buffer.from(frame({ index: 0, delta: { content: ' t' } }, { created: i })),
    );
    const events = decode(steady(streamDecoder('openai.chat', 'text/event-stream')), reads);
    expect(events).toEqual(decode(streamDecoder('openai.chat', 'text/event-stream'), reads));
  });
});
