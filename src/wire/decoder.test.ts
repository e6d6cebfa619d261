import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { StreamEvent } from '../core/stream.ts';
import { streamDecoder } from './decoder.ts';
import { DIALECT_NAMES, type DialectName } from './dialect.ts';
import { inspectCapture } from './inspect/inspect.ts';
import { inspectionText } from './inspect/text.ts';
import { bytesOf, chunk, finish, inspectText, ndjson, sse } from './testing.ts';

const FOLDER = new URL('../../samples/wire/', import.meta.url);
const SAMPLES = readdirSync(FOLDER).map((file) => {
  const bytes = readFileSync(new URL(file, FOLDER));
  const lf = bytes.indexOf(10);
  const { format } = JSON.parse(bytes.subarray(5, lf).toString()) as { format: DialectName };
  return { file, dialect: format, body: bytes.subarray(lf + 1) };
});

function events(
  dialect: DialectName,
  body: Uint8Array,
  cuts: readonly number[] = [],
  contentType?: string,
): StreamEvent[] {
  const out: StreamEvent[] = [];
  const decoder = streamDecoder(dialect, contentType);
  const emit = (event: StreamEvent) => void out.push(event);
  let from = 0;
  for (const cut of [...cuts.filter((c) => c < body.length)].sort((a, b) => a - b)) {
    decoder.push(body.subarray(from, cut), emit);
    from = cut;
  }
  decoder.push(body.subarray(from), emit);
  decoder.end(emit);
  return out;
}

describe('any split of the bytes into reads gives the same events', () => {
  for (const { file, dialect, body } of SAMPLES) {
    it(file, () => {
      const whole = events(dialect, body);
      expect(events(dialect, body, [...body.keys()])).toEqual(whole);
      fc.assert(
        fc.property(fc.array(fc.nat(body.length), { maxLength: 20 }), (cuts) => {
          expect(events(dialect, body, cuts)).toEqual(whole);
        }),
        { numRuns: 30 },
      );
    });
  }
});

describe('anything is decoded without a throw', () => {
  const anything = fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc.json().map((text) => bytesOf(text)),
    fc.array(fc.json()).map((all) => bytesOf(all.map((text) => `data: ${text}\n\n`).join(''))),
    fc.array(fc.json()).map((all) => bytesOf(all.join('\n'))),
  );
  const type = fc.constantFrom(undefined, 'text/event-stream', 'application/json', 'application/x-ndjson', 'text/html');
  for (const dialect of DIALECT_NAMES) {
    it(dialect, () => {
      fc.assert(
        fc.property(anything, type, (body, contentType) => {
          events(dialect, body, [3, 10], contentType);
          inspectionText(inspectCapture(body, { dialect }));
        }),
      );
    });
  }

  it('also where a real stream has values of the wrong kind in it', () => {
    const value = fc.constantFrom(
      null,
      true,
      0,
      -1,
      Number.MAX_VALUE,
      '',
      'x',
      [],
      [null],
      ['x'],
      {},
      { text: 'x' },
      { a: { b: 'c' } },
      [{ text: [] }],
    );
    fc.assert(
      fc.property(
        fc.constantFrom(...SAMPLES),
        fc.array(fc.tuple(fc.nat(1000), value), { minLength: 1, maxLength: 6 }),
        ({ dialect, body }, changes) => {
          const text = body.toString().replace(/^(data: ?)?(\{.*\})\r?$/gm, (_, prefix = '', json: string) => {
            let n = 0;
            const changed = JSON.parse(json, (key, old) => {
              const change = key === '' ? undefined : changes.find(([at]) => at % 17 === n++ % 17);
              return change === undefined ? old : structuredClone(change[1]);
            });
            return `${prefix}${JSON.stringify(changed)}`;
          });
          inspectionText(inspectCapture(bytesOf(text), { dialect }));
        },
      ),
      { numRuns: 400 },
    );
  });
});

describe('the body decides the framing, whatever the content type says', () => {
  const stream = sse(chunk({ content: 'a' }), finish('stop'), '[DONE]');
  it.each([undefined, 'text/event-stream', 'application/json', 'text/plain; charset=utf-8'])(
    'an event stream as %s',
    (contentType) => {
      expect(inspectText(stream, { dialect: 'openai.chat', ...(contentType && { contentType }) })).toMatchObject({
        framing: 'sse',
        events: 3,
        outcome: 'ok',
      });
    },
  );
  it.each([undefined, 'text/event-stream', 'application/json'])('one JSON body as %s', (contentType) => {
    const body = JSON.stringify({ error: { message: 'no', code: 502 } }, null, 2);
    expect(inspectText(body, { dialect: 'openai.chat', ...(contentType && { contentType }) })).toMatchObject({
      framing: 'json',
      whole: true,
      events: 0,
      outcome: 'error',
    });
  });
  it('lines of JSON in a dialect that streams events', () => {
    const lines = ndjson(chunk({ content: 'a' }), finish('stop'));
    for (const contentType of ['application/x-ndjson', 'application/json']) {
      expect(inspectText(lines, { dialect: 'openai.chat', contentType })).toMatchObject({
        framing: 'ndjson',
        events: 2,
        outcome: 'ok',
      });
    }
  });
  it('an answer of Ollama that was not streamed', () => {
    const answer = {
      model: 'm',
      message: { role: 'assistant', content: 'Hi' },
      done: true,
      done_reason: 'stop',
      eval_count: 2,
    };
    const whole = { whole: true, events: 0, usageOut: 2, outcome: 'ok', finish: 'stop' };
    expect(inspectText(JSON.stringify(answer))).toMatchObject(whole);
    expect(inspectText(ndjson(answer), { contentType: 'application/json; charset=utf-8' })).toMatchObject(whole);
    expect(inspectText(JSON.stringify(answer, null, 2))).toMatchObject(whole);
    expect(inspectText(ndjson(answer), { contentType: 'application/x-ndjson' })).toMatchObject({
      whole: false,
      events: 1,
    });
  });
  it('a refusal with the status of one, as a whole body', () => {
    expect(inspectText('{"error":{"message":"slow down","type":"rate_limit_error","code":null}}')).toMatchObject({
      outcome: 'rejected',
      ledger: 'rejected',
    });
  });
  it.each([
    ['<!DOCTYPE html><html><head><title>502 Bad\nGateway</title></head></html>', /HTML, titled '502 Bad Gateway'/],
    ['<html><body>nginx</body></html>', /HTML/],
    ['Internal Server Error', /not an event stream: it begins with 'Internal Server Error'/],
    ['"a text"', /not a JSON object/],
    ['{"a":1} trailing', /not JSON/],
    ['{"hello":"world"}', /neither choices nor an error/],
  ])('%s', (body, message) => {
    for (const contentType of ['text/event-stream', 'text/html', 'application/json']) {
      const x = inspectText(body, { dialect: 'openai.chat', contentType });
      expect(x).toMatchObject({ events: 0, outcome: 'error', ledger: 'failed', reason: 'malformed' });
      if (!(contentType === 'application/json' && body.startsWith('Internal'))) expect(x.detail).toMatch(message);
    }
  });
  it('white space before the body, in a read of its own', () => {
    expect(events('openai.chat', bytesOf(`\r\n \n${stream}`), [1, 2, 3])).toEqual(
      events('openai.chat', bytesOf(stream)),
    );
    expect(events('openai.chat', bytesOf(`\ufeff${stream}`), [1, 2, 3])).toEqual(
      events('openai.chat', bytesOf(stream)),
    );
    expect(events('openai.chat', bytesOf(' \n '))).toEqual([]);
  });
});

describe('a body that ends early', () => {
  it('inside an event is truncated, and the rest of the event none', () => {
    expect(inspectText(`${sse(chunk({ content: 'a' }))}data: {"id":"c","choi`)).toMatchObject({
      events: 1,
      outcome: 'truncated',
    });
  });
  it('inside a line, an array, a document', () => {
    expect(inspectText('{"model":"m","response":"a","done":false}\n{"model":"m","resp')).toMatchObject({
      dialect: 'ollama.generate',
      events: 1,
      outcome: 'truncated',
    });
    expect(inspectText('[{"candidates":[{"content":{"parts":[{"text":"a"}]}}]},{"cand')).toMatchObject({
      dialect: 'gemini.stream',
      framing: 'json-array',
      events: 1,
      outcome: 'truncated',
    });
    expect(inspectText('{"id":"c","object":"chat.completion","choices":[{', { dialect: 'openai.chat' })).toMatchObject({
      events: 0,
      outcome: 'truncated',
    });
  });
  it('after nothing at all', () => {
    expect(inspectText('')).toMatchObject({ events: 0, outcome: 'truncated', framing: null });
    expect(inspectText(': ping\n\n')).toMatchObject({ events: 0, comments: 1, outcome: 'truncated' });
  });
  it('but an event that is complete and not JSON is malformed', () => {
    expect(inspectText(sse(chunk({ content: 'a' }), '{"id":"c","choi'))).toMatchObject({
      events: 2,
      outcome: 'error',
      reason: 'malformed',
    });
  });
  it('keep-alives with a body that is no JSON are none', () => {
    expect(
      inspectText(`event: ping\ndata: x\n\ndata:\n\n${sse(chunk({ content: 'a' }), finish('stop'))}`),
    ).toMatchObject({ events: 4, outcome: 'ok' });
  });
});
