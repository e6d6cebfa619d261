/** Received spans on disk: one JSON object a line, so that any tool reads them. Bounded: a full file is put aside, the one before it goes. */
import { closeSync, createReadStream, fstatSync, openSync, renameSync, writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { InputError, messageOf, oneLine } from '../../base/errors.ts';
import { DURATIONS, type DurationConcept } from '../../core/evidence.ts';
import type { SpanEvidence } from './request.ts';

export class SpanFile {
  readonly path: string;
  readonly #maxBytes: number;
  #file: number;
  #size: number;
  dropped = 0;

  /** @param maxBytes of one file; at most two are kept. @throws InputError */
  constructor(path: string, maxBytes = 256 * 1024 * 1024) {
    this.path = path;
    this.#maxBytes = maxBytes;
    this.#file = this.#open();
    this.#size = fstatSync(this.#file).size;
  }

  /** Never throws: a full disk drops spans. */
  add(spans: readonly SpanEvidence[]): void {
    if (spans.length === 0) return;
    const text = `${spans.map((s) => JSON.stringify(s)).join('\n')}\n`;
    try {
      if (this.#size + text.length > this.#maxBytes && this.#size > 0) this.#rotate();
      writeSync(this.#file, text);
      this.#size += Buffer.byteLength(text);
    } catch {
      this.dropped += spans.length;
    }
  }

  close(): void {
    closeSync(this.#file);
  }

  #rotate(): void {
    closeSync(this.#file);
    renameSync(this.path, `${this.path}.1`);
    this.#file = this.#open();
    this.#size = 0;
  }

  #open(): number {
    try {
      return openSync(this.path, 'a');
    } catch (error) {
      throw new InputError(
        `${oneLine(this.path)}: spans cannot be kept there (${messageOf(error)}); choose another with --out FILE`,
        { cause: error },
      );
    }
  }
}

/** Lines that are none of ours are passed over and counted. @throws InputError where the file cannot be read. */
export async function readSpans(path: string): Promise<{ readonly spans: SpanEvidence[]; readonly unread: number }> {
  const spans: SpanEvidence[] = [];
  let unread = 0;
  try {
    for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY })) {
      if (line.trim() === '') continue;
      const span = spanIn(line);
      if (span === undefined) unread++;
      else spans.push(span);
    }
  } catch (error) {
    throw new InputError(
      `${oneLine(path)}: the spans cannot be read (${messageOf(error)}); goodput spans --listen writes them`,
      { cause: error },
    );
  }
  return { spans, unread };
}

function spanIn(line: string): SpanEvidence | undefined {
  try {
    const s = JSON.parse(line) as Partial<SpanEvidence> | null;
    if (typeof s?.request !== 'string' || typeof s.durations !== 'object' || s.durations === null) return undefined;
    const durations: Partial<Record<DurationConcept, number>> = {};
    for (const concept of DURATIONS) {
      const value = (s.durations as Record<string, unknown>)[concept];
      if (typeof value === 'number' && value >= 0) durations[concept] = value;
    }
    const number = (x: unknown): x is number => typeof x === 'number' && Number.isFinite(x);
    return {
      request: s.request,
      durations,
      ...(number(s.promptTokens) && { promptTokens: s.promptTokens }),
      ...(number(s.cachedTokens) && { cachedTokens: s.cachedTokens }),
      ...(number(s.outputTokens) && { outputTokens: s.outputTokens }),
      ...(typeof s.trace === 'string' && { trace: s.trace }),
      ...(typeof s.service === 'string' && { service: s.service }),
      ...(number(s.ended) && { ended: s.ended }),
    };
  } catch {
    return undefined;
  }
}
