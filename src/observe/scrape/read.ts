/** Reads a folder of scrapes back as evidence. */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { InputError, messageOf, oneLine } from '../../base/errors.ts';
import type { Evidence } from '../../core/evidence.ts';
import { evidenceOf, type Snapshot, SnapshotReader } from '../evidence/index.ts';
import { readSegment, type Scrape, SEGMENT } from './segments.ts';

/** Scrapes of a target that are read: the first, the last, and the others evenly between, for gauges and restarts. */
const MOST_SCRAPES = 240;

export interface Scrapes {
  /** By target, in order of time. */
  readonly targets: ReadonlyMap<string, readonly Scrape[]>;
  readonly errors: readonly string[];
}

export function isScrapeFolder(folder: string): boolean {
  return readdirSync(folder).some((name) => SEGMENT.test(name));
}

/** @param from, to Unix ms, both inclusive. */
export function scrapesIn(folder: string, from = Number.NEGATIVE_INFINITY, to = Number.POSITIVE_INFINITY): Scrapes {
  const errors: string[] = [];
  const targets = new Map<string, Scrape[]>();
  let names: string[];
  try {
    names = readdirSync(folder).filter((name) => SEGMENT.test(name));
  } catch (error) {
    throw new InputError(
      `${oneLine(folder)}: the scrapes cannot be read (${messageOf(error)}); name a folder of goodput scrape`,
    );
  }
  for (const name of names.sort((a, b) => numberIn(a) - numberIn(b))) {
    try {
      const { scrapes, problem } = readSegment(readFileSync(join(folder, name)));
      if (problem !== undefined) errors.push(`${name}: ${problem}; what could be read is told`);
      for (const scrape of scrapes) {
        if (scrape.at < from || scrape.at > to) continue;
        const own = targets.get(scrape.target);
        if (own === undefined) targets.set(scrape.target, [scrape]);
        else own.push(scrape);
      }
    } catch (error) {
      errors.push(`${name}: ${messageOf(error)}`);
    }
  }
  for (const list of targets.values()) list.sort((a, b) => a.at - b.at);
  return { targets, errors };
}

function numberIn(name: string): number {
  return Number(SEGMENT.exec(name)![1]);
}

/** The snapshots of each target, thinned evenly; failed scrapes are counted into the errors of the last. */
export function snapshotsOf({ targets, errors }: Scrapes, reader = new SnapshotReader()): Snapshot[][] {
  const sources: Snapshot[][] = [];
  for (const [target, scrapes] of targets) {
    const good = scrapes.filter((s) => s.error === undefined);
    const failed = scrapes.length - good.length;
    const said =
      failed === 0
        ? []
        : [`${target}: ${failed} of ${scrapes.length} scrapes failed (${scrapes.find((s) => s.error)!.error})`];
    if (good.length === 0) {
      sources.push([
        { source: oneLine(target), replicas: [], errors: said.map((s) => oneLine(s)), families: 0, unmapped: 0 },
      ]);
      continue;
    }
    const snapshots = thinned(good).map((s) => reader.read(s.body, oneLine(s.target), s.at));
    const last = snapshots.at(-1)!;
    snapshots[snapshots.length - 1] = { ...last, errors: [...last.errors, ...said.map((s) => oneLine(s))] };
    sources.push(snapshots);
  }
  if (sources[0]?.[0] !== undefined && errors.length > 0) {
    const [first, ...rest] = sources[0];
    sources[0] = [{ ...first, errors: [...first.errors, ...errors.map((e) => oneLine(e))] }, ...rest];
  }
  return sources;
}

function thinned<T>(list: readonly T[]): T[] {
  if (list.length <= MOST_SCRAPES) return [...list];
  return Array.from(
    { length: MOST_SCRAPES },
    (_, i) => list[Math.round((i * (list.length - 1)) / (MOST_SCRAPES - 1))]!,
  );
}

/**
 * What servers said between two moments, from a folder of `goodput scrape` or a run folder that was scraped.
 * @param from, to Unix ms, both inclusive: the first scrape at or after `from` to the last at or before `to`.
 * @throws InputError where the folder cannot be read or has no scrape in between.
 */
export function readScrapes(folder: string, from?: number, to?: number): Evidence {
  const scrapes = scrapesIn(folder, from, to);
  if (scrapes.targets.size === 0) {
    const why = scrapes.errors.length > 0 ? ` (${scrapes.errors[0]})` : '';
    throw new InputError(
      `${oneLine(basename(folder))}: there is no scrape in it${from === undefined ? '' : ' in that time'}${why}; goodput scrape writes them`,
    );
  }
  return evidenceOf(snapshotsOf(scrapes));
}
