import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BodyCutter } from './body-cutter.ts';
import { BadResponse, bodyLength, parseHead } from './response-head.ts';

/** Feeds `text` in reads of the given sizes; gives what was passed on, the data in it, and what lay behind. */
function cut(text: string, sizes: readonly number[], cutter = new BodyCutter({ kind: 'chunked' })) {
  const bytes = Buffer.from(text, 'latin1');
  let passed = '';
  let data = '';
  let rest = '';
  let at = 0;
  for (let i = 0; at < bytes.length; i++) {
    const read = Buffer.from(bytes.subarray(at, at + Math.max(1, sizes[i % sizes.length] ?? 1)));
    at += read.length;
    if (cutter.done) {
      rest += read.toString('latin1');
      continue;
    }
    const pass = cutter.read(read, 0, read.length);
    passed += cutter.before + read.toString('latin1', 0, pass);
    for (let k = 0; k < cutter.count; k += 2) data += read.toString('latin1', cutter.ranges[k], cutter.ranges[k + 1]);
    if (cutter.done) rest += read.toString('latin1', cutter.rest);
  }
  return { passed, data, rest, done: cutter.done, trailers: cutter.trailers };
}

const line = (text: string, extension = ''): string => `${text.length.toString(16)}${extension}\r\n${text}\r\n`;

describe('the framing of a body', () => {
  it('passes all but the last chunk on, however the bytes come', () => {
    const parts = fc.array(fc.string({ minLength: 1, maxLength: 40, unit: 'binary-ascii' }), { maxLength: 8 });
    fc.assert(
      fc.property(
        parts,
        fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1 }),
        fc.boolean(),
        (texts, sizes, ext) => {
          const framed = texts.map((t) => line(t, ext ? ';a=b' : '')).join('');
          const r = cut(`${framed}0\r\nx-t: 1\r\n\r\nHTTP/1.1 next`, sizes);
          expect(r).toEqual({
            passed: framed,
            data: texts.join(''),
            rest: 'HTTP/1.1 next',
            done: true,
            trailers: ['x-t', '1'],
          });
        },
      ),
    );
  });

  it('counts a length, and knows nothing of an end that only a close gives', () => {
    const byLength = cut('abcdeREST', [2], new BodyCutter({ kind: 'length', bytes: 5 }));
    expect([byLength.passed, byLength.rest, byLength.done]).toEqual(['abcde', 'REST', true]);
    const byClose = cut('abcde', [3], new BodyCutter({ kind: 'close' }));
    expect([byClose.passed, byClose.done]).toEqual(['abcde', false]);
  });

  it('refuses sizes that are none, lines without end and chunks that are longer than they say', () => {
    for (const bad of [
      'xyz\r\n',
      '-1\r\n',
      `${'1'.repeat(9)}\r\n`,
      `1;${'a'.repeat(5000)}`,
      '2\r\nabc\r\n',
      ' 1\r\na\r\n',
    ])
      expect(() => cut(bad, [7]), bad.slice(0, 20)).toThrow(BadResponse);
    expect(() => cut(`0\r\n${'x: y\r\n'.repeat(4000)}`, [1000])).toThrow(BadResponse);
  });
});

describe('the head of a response', () => {
  const length = (text: string, method = 'GET') => bodyLength(parseHead(text), method).kind;
  it('says how its body ends', () => {
    expect(length('HTTP/1.1 200 OK\r\ncontent-length: 3\r\n')).toBe('length');
    expect(length('HTTP/1.1 200\r\nTransfer-Encoding: Chunked\r\n')).toBe('chunked');
    expect(length('HTTP/1.0 200 OK\r\n')).toBe('close');
    expect(length('HTTP/1.1 204 No Content\r\n')).toBe('none');
    expect(length('HTTP/1.1 200 OK\r\ncontent-length: 3\r\n', 'HEAD')).toBe('none');
    expect(length('HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 3\r\n')).toBe('length');
  });
});
