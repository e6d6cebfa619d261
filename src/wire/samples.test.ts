import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { DialectName } from './dialect.ts';
import { inspectCapture } from './inspect/inspect.ts';

const FOLDER = new URL('../../samples/wire/', import.meta.url);

interface Header {
  readonly name: string;
  readonly format: DialectName;
  readonly framing: string;
  readonly expect: Readonly<Record<string, unknown>>;
}

/** The sample's own header, and its payload alone: the header must not help. */
function sample(file: string): { header: Header; payload: Uint8Array; bytes: Uint8Array } {
  const bytes = readFileSync(new URL(file, FOLDER));
  const lf = bytes.indexOf(10);
  return { header: JSON.parse(bytes.subarray(5, lf).toString()), payload: bytes.subarray(lf + 1), bytes };
}

describe('samples decode to what they say of themselves', () => {
  for (const file of readdirSync(FOLDER)) {
    const { header, payload, bytes } = sample(file);
    it(`${header.name}, named`, () => {
      expect(inspectCapture(payload, { dialect: header.format })).toMatchObject(header.expect);
    });
    it(`${header.name}, by itself`, () => {
      const inspection = inspectCapture(payload);
      expect(inspection).toMatchObject(header.expect);
      expect(inspection.dialect).toBe(header.format);
    });
    it(`${header.name}, with its header`, () => {
      const inspection = inspectCapture(bytes);
      expect(inspection).toMatchObject({ ...header.expect, dialect: header.format, framing: header.framing });
    });
  }
});
