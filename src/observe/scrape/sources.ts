/** What the arguments of `merge` name: files, pairs of files, folders, standard input. */
import { closeSync, fstatSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { InputError, messageOf, oneLine } from '../../base/errors.ts';
import { type Snapshot, SnapshotReader } from '../evidence/index.ts';
import { isScrapeFolder, scrapesIn, snapshotsOf } from './read.ts';

/** A server's metrics are below a few MiB; what is far larger is none, and would fill the memory. */
export const MOST_BYTES = 128 * 1024 * 1024;

export interface SourceOptions {
  readonly isWindow: boolean;
  /** Unix ms, of scrape folders. */
  readonly from?: number;
  readonly to?: number;
}

export interface Sources {
  readonly sources: readonly (readonly Snapshot[])[];
  /** Bodies read. */
  readonly scraped: number;
}

export async function readSources(args: readonly string[], options: SourceOptions): Promise<Sources> {
  const reader = new SnapshotReader();
  const names = namesOf(args, options.isWindow);
  const sources: (readonly Snapshot[])[] = [];
  let scraped = 0;
  for (const name of names) {
    if (name.files.length === 1 && isFolder(name.files[0]!)) {
      const read = snapshotsOf(scrapesIn(name.files[0]!, options.from, options.to), reader);
      if (read.length === 0)
        throw new InputError(
          `${oneLine(name.files[0]!)}: there is no scrape in it${options.from === undefined && options.to === undefined ? '' : ' in that time'}`,
        );
      sources.push(...read);
      scraped += read.reduce((n, s) => n + s.length, 0);
      continue;
    }
    scraped += name.files.length;
    sources.push(name.files.map((file) => snapshotOf(file, name.source, reader)));
  }
  return { sources, scraped };
}

interface Named {
  readonly source: string;
  readonly files: readonly string[];
}

function namesOf(args: readonly string[], isWindow: boolean): Named[] {
  if (isWindow) {
    if (args.length !== 2)
      throw new InputError(
        `--window: give the scrape before and the one after; ${args.length} were given. For several replicas write BEFORE..AFTER for each`,
      );
    const [before, after] = args as [string, string];
    if (!isFolder(before) && !isFolder(after)) return [{ source: basename(after), files: [before, after] }];
    if (!isFolder(before) || !isFolder(after)) throw new InputError('--window: give two files or two folders');
    const later = new Set(filesIn(after));
    const both = filesIn(before).filter((f) => later.has(f));
    if (both.length === 0)
      throw new InputError(`--window: ${oneLine(before)} and ${oneLine(after)} have no file of one name`);
    return both.map((f) => ({ source: f, files: [join(before, f), join(after, f)] }));
  }
  const shown = shortNames(args);
  return args.flatMap((arg, i): Named[] => {
    const source = shown[i]!;
    if (arg === '-' || exists(arg)) {
      if (!isFolder(arg) || isScrapeFolder(arg)) return [{ source, files: [arg] }];
      const files = filesIn(arg);
      if (files.length === 0) throw new InputError(`${oneLine(arg)}: there is no file in it`);
      return files.map((f) => ({ source: f, files: [join(arg, f)] }));
    }
    const at = arg.indexOf('..', 1);
    const pair = /^(.+?[^./])\.\.([^/.].*|\/.+|\.\.?\/.+)$/.exec(arg);
    if (at > 0 && pair !== null) return [{ source: basename(pair[2]!), files: [pair[1]!, pair[2]!] }];
    return [{ source, files: [arg] }];
  });
}

/** The file's own name, and its folder where several have the same. */
function shortNames(args: readonly string[]): string[] {
  const bases = args.map((a) => basename(a));
  return bases.map((b, i) => (bases.indexOf(b) === bases.lastIndexOf(b) ? b : args[i]!));
}

function snapshotOf(file: string, source: string, reader: SnapshotReader): Snapshot {
  const failed = (why: string): Snapshot => ({
    source,
    replicas: [],
    errors: [oneLine(`${file}: ${why}`)],
    families: 0,
    unmapped: 0,
  });
  try {
    const bytes = readBounded(file);
    if (bytes.length === 0) return failed('it is empty');
    const zipped = bytes[0] === 0x1f && bytes[1] === 0x8b;
    return reader.read(zipped ? gunzipSync(bytes, { maxOutputLength: MOST_BYTES }) : bytes, oneLine(source));
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ENOENT')
      throw new InputError(`${oneLine(file)}: there is no such file; name files of a server's /metrics`, {
        cause: error,
      });
    return failed(messageOf(error));
  }
}

/** Pipes and standard input too, never more than the bound. */
function readBounded(file: string): Buffer {
  const fd = file === '-' ? 0 : openSync(file, 'r');
  try {
    const { size } = fstatSync(fd);
    const tooLarge = `it is larger than ${MOST_BYTES / 1024 / 1024} MiB, which no server's metrics are`;
    if (size > MOST_BYTES) throw new Error(tooLarge);
    const chunks: Buffer[] = [];
    let total = 0;
    for (;;) {
      const chunk = Buffer.allocUnsafe(Math.max(64 * 1024, Math.min(size + 1, 1 << 22)));
      const n = readSync(fd, chunk, 0, chunk.length, null);
      if (n === 0) break;
      total += n;
      if (total > MOST_BYTES) throw new Error(tooLarge);
      chunks.push(n === chunk.length ? chunk : chunk.subarray(0, n));
    }
    return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
  } finally {
    if (fd !== 0) closeSync(fd);
  }
}

function exists(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}

function isFolder(path: string): boolean {
  return path !== '-' && statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function filesIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((e) => e.isFile() && !e.name.startsWith('.'))
    .map((e) => e.name)
    .sort();
}
