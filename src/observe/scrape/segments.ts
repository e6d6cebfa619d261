/**
 * Scrapes on disk: `server-000001.prom.gz`, each scrape one gzip member that begins with a line of ours, so that `zcat` shows
 * them, a killed writer loses at most its last, and what an engine exposes is kept whole for adapters yet to come.
 *
 *   # goodput scrape {"at":1790000000000,"target":"a:8000"}
 *   …the body…
 */
import { gunzipSync } from 'node:zlib';
import { messageOf, oneLine } from '../../base/errors.ts';

export const SEGMENT = /^server-(\d{6,})\.prom\.gz$/;
const MARK = '# goodput scrape ';

export interface Scrape {
  readonly target: string;
  /** Unix ms. */
  readonly at: number;
  /** Of a failed scrape: why, and no body. */
  readonly error?: string;
  readonly body: string;
}

export function segmentName(n: number): string {
  return `server-${String(n).padStart(6, '0')}.prom.gz`;
}

export function scrapeText({ target, at, error, body }: Scrape): string {
  const head = JSON.stringify({ at, target, ...(error !== undefined && { error }) });
  return `${MARK}${head}\n${body === '' || body.endsWith('\n') ? body : `${body}\n# goodput: the body had no last line feed\n`}`;
}

/** Decompressed bytes a segment may have: rotation keeps them far below. */
const MOST_BYTES = 1 << 30;

/** Every scrape of a segment; of one that is cut short or damaged, those before the damage, and why. */
export function readSegment(bytes: Uint8Array): { readonly scrapes: readonly Scrape[]; readonly problem?: string } {
  const scrapes: Scrape[] = [];
  let problem: string | undefined;
  for (const part of membersOf(bytes)) {
    try {
      const text = gunzipSync(part, { maxOutputLength: MOST_BYTES }).toString('utf8');
      const scrape = scrapeOf(text);
      if (scrape === undefined) problem ??= 'a part of it is no scrape';
      else scrapes.push(scrape);
    } catch (error) {
      problem ??= messageOf(error);
    }
  }
  return { scrapes, ...(problem !== undefined && { problem: oneLine(problem) }) };
}

/** A member's length stands nowhere; each of ours is followed by the next one's magic, which deflate may hold by chance. */
function membersOf(bytes: Uint8Array): Uint8Array[] {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const starts: number[] = [];
  for (let at = buffer.indexOf(MAGIC); at >= 0; at = buffer.indexOf(MAGIC, at + 1)) starts.push(at);
  return starts.map((from, i) => buffer.subarray(from, starts[i + 1] ?? buffer.length));
}

/** The gzip header as we write it, with a comment no compressed stream holds but by design: 17 bytes. */
export const MAGIC = Buffer.from([
  0x1f, 0x8b, 8, 0x10, 0, 0, 0, 0, 0, 0xff, 0x67, 0x6f, 0x6f, 0x64, 0x70, 0x75, 0x74, 0,
]);

/** A gzip member as written by zlib, with our comment in its header. */
export function withComment(gzip: Uint8Array): Buffer {
  return Buffer.concat([MAGIC, gzip.subarray(10)]);
}

function scrapeOf(text: string): Scrape | undefined {
  if (!text.startsWith(MARK)) return undefined;
  const end = text.indexOf('\n');
  try {
    const head = JSON.parse(text.slice(MARK.length, end)) as Partial<Scrape>;
    if (typeof head.at !== 'number' || !Number.isFinite(head.at) || typeof head.target !== 'string') return undefined;
    const body = text.slice(end + 1);
    return { target: head.target, at: head.at, body, ...(typeof head.error === 'string' && { error: head.error }) };
  } catch {
    return undefined;
  }
}
