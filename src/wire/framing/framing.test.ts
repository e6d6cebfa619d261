import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Frame, Framing } from './frame.ts';
import { JsonArrayFraming } from './json-array.ts';
import { JsonBodyFraming } from './json-body.ts';
import { NdjsonFraming } from './ndjson.ts';
import { SseFraming } from './sse.ts';

const bytesOf = (text: string) => new TextEncoder().encode(text);

/** Frames of a body given in reads that end at `cuts`. */
function frames(framing: Framing, body: Uint8Array, cuts: readonly number[] = []): Frame[] {
  const out: Frame[] = [];
  const emit = (frame: Frame) => void out.push(frame);
  let from = 0;
  for (const cut of [...cuts.filter((c) => c < body.length)].sort((a, b) => a - b)) {
    framing.push(body.subarray(from, cut), emit);
    from = cut;
  }
  framing.push(body.subarray(from), emit);
  framing.end(emit);
  return out;
}
const data = (framing: Framing, text: string) => frames(framing, bytesOf(text)).map((f) => f.data);

describe('server-sent events', () => {
  const sse = (text: string) => data(new SseFraming(), text);

  it('ends lines at LF, CRLF and CR, in any mixture', () => {
    expect(sse('data: a\n\ndata: b\r\n\r\ndata: c\r\rdata: d\r\n\ndata: e\n\r\n')).toEqual(['a', 'b', 'c', 'd', 'e']);
  });
  it('drops a byte order mark, and only at the start', () => {
    expect(sse('\ufeffdata: a\n\ndata: \ufeffb\n\n')).toEqual(['a', '\ufeffb']);
  });
  it('takes off one space after the colon, and needs none', () => {
    expect(sse('data:a\n\ndata:  b\n\ndata\n\n')).toEqual(['a', ' b', '']);
  });
  it('joins data lines', () => {
    expect(sse('data: {\ndata: "a": 1\ndata:\ndata: }\n\n')).toEqual(['{\n"a": 1\n\n}']);
  });
  it('names events, and forgets the name after each', () => {
    expect(frames(new SseFraming(), bytesOf('event: x\ndata: 1\n\ndata: 2\n\nevent:y\n\ndata: 3\n\n'))).toEqual([
      { data: '1', event: 'x' },
      { data: '2' },
      { data: '3' },
    ]);
  });
  it('ignores id, retry and what it does not know', () => {
    expect(sse('id: 1\nretry: 5\nfoo: bar\nbaz\ndata: 1\n\n')).toEqual(['1']);
  });
  it('counts comments apart', () => {
    const framing = new SseFraming();
    expect(frames(framing, bytesOf(': a\n\n:b\ndata: 1\n: c\n\n:')).map((f) => f.data)).toEqual(['1']);
    expect(framing.comments).toBe(4);
  });
  it('delivers a last event that nothing follows, and says when its line was cut', () => {
    expect(frames(new SseFraming(), bytesOf('data: 1\n'))).toEqual([{ data: '1' }]);
    expect(frames(new SseFraming(), bytesOf('data: 1\r'))).toEqual([{ data: '1' }]);
    expect(frames(new SseFraming(), bytesOf('event: e\ndata: 1'))).toEqual([{ data: '1', event: 'e', cut: true }]);
  });
  it('delivers an event that a CR ends with the read it ends in', () => {
    const out: string[] = [];
    const framing = new SseFraming();
    framing.push(bytesOf('data: 1\r\n\r'), (f) => void out.push(f.data));
    expect(out).toEqual(['1']);
    framing.push(bytesOf('\ndata: 2\r\r'), (f) => void out.push(f.data));
    expect(out).toEqual(['1', '2']);
  });
  it("reads llama.cpp's old error field as an event", () => {
    expect(frames(new SseFraming(), bytesOf('error: {"code":500}\n\n'))).toEqual([
      { data: '{"code":500}', event: 'error' },
    ]);
  });
  it('says what a body that is no event stream begins with', () => {
    const framing = new SseFraming();
    frames(framing, bytesOf('Internal Server Error'));
    expect(framing.stray).toBe('Internal Server Error');
  });
  it('drops a frame that is too large, in one line or in many, and goes on', () => {
    for (const large of [`data: ${'x'.repeat(100)}`, `data: ${'x'.repeat(9)}\n`.repeat(10)]) {
      for (const step of [1, 7, 1000]) {
        const body = bytesOf(`data: 1\n\n${large}\n\ndata: 2\n\n`);
        const cuts = Array.from({ length: Math.ceil(body.length / step) }, (_, i) => i * step);
        expect(frames(new SseFraming(50), body, cuts)).toEqual([
          { data: '1' },
          { data: '', malformed: 'a frame is larger than 50 bytes' },
          { data: '2' },
        ]);
      }
    }
  });
});

describe('lines of JSON', () => {
  it('takes a line a frame, blank lines none, and the last without its end', () => {
    expect(frames(new NdjsonFraming(), bytesOf('\ufeff{"a":1}\r\n\n  {"b":2}  \n\u001e{"c":3}'))).toEqual([
      { data: '{"a":1}' },
      { data: '{"b":2}' },
      { data: '{"c":3}', cut: true },
    ]);
  });
  it('drops a line that is too large and goes on', () => {
    const body = bytesOf(`{"a":1}\n${'x'.repeat(100)}\n{"b":2}\n`);
    for (const cuts of [[], [20, 40, 60, 80, 100], [9, 109], [8, 108]]) {
      expect(frames(new NdjsonFraming(50), body, cuts)).toEqual([
        { data: '{"a":1}' },
        { data: '', malformed: 'a frame is larger than 50 bytes' },
        { data: '{"b":2}' },
      ]);
    }
  });
});

describe('a JSON array', () => {
  it('delivers each element when it ends', () => {
    const out: string[] = [];
    const framing = new JsonArrayFraming();
    const emit = (f: Frame) => void out.push(f.data);
    framing.push(bytesOf('[{"a":"]},{"}\n,'), emit);
    expect(out).toEqual(['{"a":"]},{"}']);
    framing.push(bytesOf('\r\n{"b":[1,{"c":"\\"}"}]'), emit);
    expect(out).toHaveLength(1);
    framing.push(bytesOf('}'), emit);
    expect(out[1]).toBe('{"b":[1,{"c":"\\"}"}]}');
    framing.push(bytesOf(' , 1,"x" ,null]'), emit);
    framing.end(emit);
    expect(out.slice(2)).toEqual(['1', '"x"', 'null']);
  });
  it('says when the body ended inside an element', () => {
    expect(frames(new JsonArrayFraming(), bytesOf('[{"a":1},{"b'))).toEqual([
      { data: '{"a":1}' },
      { data: '{"b', cut: true },
    ]);
  });
  it('bounds an element', () => {
    expect(frames(new JsonArrayFraming(10), bytesOf(`[{"a":1},"${'x'.repeat(50)}",{"b":2}]`), [20, 30])).toEqual([
      { data: '{"a":1}' },
      { data: '', malformed: 'a frame is larger than 10 bytes' },
      { data: '{"b":2}' },
    ]);
  });
});

describe('any split of the bytes into reads gives the same frames', () => {
  const piece = fc.constantFrom(
    'data: {"a":"é😀"}',
    'data:',
    'data: x',
    '\n',
    '\n\n',
    '\r',
    '\r\n',
    '\r\r',
    ': c',
    'event: e',
    'id: 1',
    '{"a":[1,"]"]}',
    '[',
    ']',
    ',',
    '"',
    '\\',
    '\ufeff',
    '嗯',
    ' ',
    'error: {}',
  );
  const body = fc.array(piece, { maxLength: 30 }).map((pieces) => bytesOf(pieces.join('')));
  const makes: [string, () => Framing][] = [
    ['sse', () => new SseFraming()],
    ['ndjson', () => new NdjsonFraming()],
    ['json-array', () => new JsonArrayFraming()],
    ['json', () => new JsonBodyFraming()],
  ];
  for (const [name, make] of makes) {
    it(name, () => {
      fc.assert(
        fc.property(body, fc.array(fc.nat(200)), (bytes, cuts) => {
          const whole = make();
          const split = make();
          expect(frames(split, bytes, cuts)).toEqual(frames(whole, bytes));
          expect(split.comments).toBe(whole.comments);
        }),
        { numRuns: 500 },
      );
    });
    it(`${name}, byte by byte, of any bytes`, () => {
      fc.assert(
        fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
          expect(frames(make(), bytes, [...bytes.keys()])).toEqual(frames(make(), bytes));
        }),
      );
    });
  }

  it('a CRLF that two reads share is one line end', () => {
    const bytes = bytesOf('error: {}\r\ndata: 1\r\n\r\n');
    for (let cut = 1; cut < bytes.length; cut++) {
      expect(frames(new SseFraming(), bytes, [cut]), `cut at ${cut}`).toEqual([{ data: '{}\n1', event: 'error' }]);
    }
  });

  it('does not keep what it was handed', () => {
    const out: Frame[] = [];
    const framing = new SseFraming();
    const read = bytesOf('data: abc');
    framing.push(read, (f) => void out.push(f));
    read.fill(0);
    framing.push(bytesOf('\n\n'), (f) => void out.push(f));
    expect(out).toEqual([{ data: 'abc' }]);
  });
});
