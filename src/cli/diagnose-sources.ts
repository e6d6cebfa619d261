/**
 * A side from what the user named: run folders, scrape folders, pairs of metrics files, a Prometheus with a time range, told
 * figures. Several sources make one side.
 */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { InputError, oneLine } from '../base/errors.ts';
import type { Evidence } from '../core/evidence.ts';
import { type ClientState, RequestFold, type Requests, type Side, type Told } from '../diagnose/index.ts';
import { evidenceOf, type Snapshot, SnapshotReader } from '../observe/evidence/index.ts';
import { isScrapeFolder, readScrapes as readScrapeFolder } from '../observe/scrape/index.ts';
import type { Cli } from './cli.ts';
import { readText, readToldFile } from './diagnose-files.ts';

/** What a side is, beside its figures: whether the two sides can be held against each other. */
export interface About {
  readonly sources: readonly string[];
  /** Unix ms of what was measured, where known. */
  readonly from?: number;
  readonly to?: number;
  readonly engines: readonly string[];
  /** Of a run folder: its contract and target, as text. */
  readonly contract?: string;
  readonly model?: string;
}

export interface ReadSide {
  readonly side: Side;
  readonly about: About;
}

interface Draft {
  contract?: string;
  model?: string;
  from?: number;
  to?: number;
  requests?: Requests;
  client?: ClientState;
  readonly evidence: Evidence[];
  told?: Told;
  readonly notes: string[];
}

/** @throws InputError naming the flag, the source and what to give instead. */
export async function readSide(sources: readonly string[], flag: string, cli: Pick<Cli, 'stderr'>): Promise<ReadSide> {
  const draft: Draft = { evidence: [], notes: [] };
  for (const source of sources) await readSource(source, flag, draft, cli);
  const evidence = draft.evidence;
  const merged: Evidence | undefined =
    evidence.length === 0
      ? undefined
      : { replicas: evidence.flatMap((e) => e.replicas), errors: evidence.flatMap((e) => e.errors) };
  if (merged) {
    draft.notes.push(...merged.errors.map((e) => `left out: ${e}`));
    draft.notes.push(...new Set(merged.replicas.flatMap((r) => r.notes.map((n) => `${r.replica}: ${n}`))));
  }
  const side: Side = {
    name: oneLine(sources.join(' + ')),
    ...(draft.requests && { requests: draft.requests }),
    ...(draft.client && { client: draft.client }),
    ...(merged && { evidence: merged }),
    ...(draft.told && { told: draft.told }),
    notes: draft.notes,
  };
  return { side, about: aboutOf(sources, draft, merged) };
}

function aboutOf(sources: readonly string[], draft: Draft, merged: Evidence | undefined): About {
  const engines = (merged?.replicas ?? []).filter((r) => (r.role ?? 'engine') === 'engine');
  const starts = [draft.from, ...engines.map((r) => r.window.start)].filter((t) => t !== undefined);
  const ends = [draft.to, ...engines.map((r) => r.window.end)].filter((t) => t !== undefined);
  return {
    sources,
    engines: [...new Set(engines.map((r) => r.engine))].sort(),
    ...(starts.length > 0 && { from: Math.min(...starts) }),
    ...(ends.length > 0 && { to: Math.max(...ends) }),
    ...(draft.contract !== undefined && { contract: draft.contract }),
    ...(draft.model !== undefined && { model: draft.model }),
  };
}

async function readSource(source: string, flag: string, draft: Draft, cli: Pick<Cli, 'stderr'>): Promise<void> {
  if (/^prometheus\+https?:/.test(source)) {
    const { readPrometheusRange } = await import('./diagnose-prometheus.ts');
    draft.evidence.push(evidenceOf(await readPrometheusRange(source, flag)));
    return;
  }
  const pair = pairOf(source);
  if (pair) {
    draft.evidence.push(evidenceOf([readPair(pair, flag)]));
    return;
  }
  const shown = oneLine(source);
  if (!existsSync(source)) {
    throw new InputError(
      `${flag}: ${shown} does not exist; give a run folder, a folder of scrapes, start.txt..end.txt, prometheus+http://host:9090@FROM/TO or a file of told figures`,
    );
  }
  if (!statSync(source).isDirectory()) {
    if (/\.(ya?ml|json)$/i.test(source)) {
      if (draft.told) throw new InputError(`${flag}: told figures are given twice; put them in one file`);
      draft.told = readToldFile(source, flag);
      return;
    }
    throw new InputError(
      `${flag}: ${shown} is one scrape, which has no start; give two of one window as start.txt..end.txt`,
    );
  }
  if (existsSync(join(source, 'run.json'))) await readRun(source, flag, draft, cli);
  else if (isScrapeFolder(source)) draft.evidence.push(readScrapeFolder(source));
  else draft.evidence.push(evidenceOf(readScrapes(source, flag)));
  // Server metrics kept beside the rows of a run.
  if (existsSync(join(source, 'run.json'))) {
    const texts = readdirSync(source).filter((f) => SCRAPE.test(f));
    if (texts.length >= 2) draft.evidence.push(evidenceOf(readScrapes(source, flag)));
  }
}

/** `a.txt..b.txt`, or `a.txt,b.txt`. */
function pairOf(source: string): readonly [string, string] | undefined {
  for (const by of ['..', ',']) {
    // A path may itself hold `..`: the split whose two halves are files is meant.
    for (let at = source.indexOf(by, 1); at > 0; at = source.indexOf(by, at + 1)) {
      const [start, end] = [source.slice(0, at), source.slice(at + by.length)];
      if (isFile(start) && isFile(end)) return [start, end];
    }
  }
  return undefined;
}

const isFile = (path: string): boolean => path !== '' && existsSync(path) && statSync(path).isFile();

function readPair([start, end]: readonly [string, string], flag: string): Snapshot[] {
  const reader = new SnapshotReader();
  // One source: what tells its replicas apart are labels, not the file's name.
  const name = `${basename(end)}`;
  const [from, to] = [timeOf(start), timeOf(end)];
  // Two copies made at one moment tell no length of the window.
  const timed = from !== undefined && to !== undefined && to - from > 1000;
  return [
    reader.read(readText(start, flag), name, timed ? from : undefined),
    reader.read(readText(end, flag), name, timed ? to : undefined),
  ];
}

const SCRAPE = /\.(txt|prom|metrics|om)$/i;

/** Each folder in it is a source, and so are the files in it; by name, or by the time in the name. */
function readScrapes(folder: string, flag: string): Snapshot[][] {
  const entries = readdirSync(folder, { withFileTypes: true });
  const sources: Snapshot[][] = [];
  const groups = new Map<string, string[]>();
  for (const entry of entries) {
    if (entry.isDirectory()) {
      const files = readdirSync(join(folder, entry.name)).filter((f) => SCRAPE.test(f));
      if (files.length > 0)
        groups.set(
          entry.name,
          files.map((f) => join(folder, entry.name, f)),
        );
    } else if (SCRAPE.test(entry.name)) {
      // `replica-0-1760000000.txt`, `replica-0.start.txt`: what stands before the time or the word is the source.
      const source =
        entry.name.replace(SCRAPE, '').replace(/[-_.@]?(\d{10,13}|\d{8}T\d{6}Z?|start|end|\d{1,5})$/i, '') || 'server';
      groups.set(source, [...(groups.get(source) ?? []), join(folder, entry.name)]);
    }
  }
  for (const [source, files] of groups) {
    if (files.length < 2) continue;
    const reader = new SnapshotReader();
    const timed = files.map((file) => ({ file, at: timeOf(file) }));
    const isTimed = timed.every((t) => t.at !== undefined) && new Set(timed.map((t) => t.at)).size === timed.length;
    timed.sort((x, y) =>
      isTimed ? x.at! - y.at! : orderOf(x.file).localeCompare(orderOf(y.file), 'en', { numeric: true }),
    );
    sources.push(timed.map(({ file, at }) => reader.read(readText(file, flag), source, isTimed ? at : undefined)));
  }
  if (sources.length === 0) {
    throw new InputError(
      `${flag}: ${oneLine(folder)} is no run folder, and holds no two scrapes (*.txt, *.prom) of one server`,
    );
  }
  return sources;
}

/** `start` before `end`, whatever the alphabet says. */
const orderOf = (file: string): string => basename(file).replace(/start/i, '0').replace(/end/i, '1');

/** The time in the name (Unix s or ms, or 20261129T140510Z), else a `# scraped_at` line would say; else the file's own. */
function timeOf(path: string): number | undefined {
  const name = basename(path);
  const unix = /(?<!\d)(\d{13}|\d{10})(?!\d)/.exec(name)?.[1];
  if (unix !== undefined) return unix.length === 13 ? Number(unix) : Number(unix) * 1000;
  const iso = /(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})Z?/.exec(name);
  if (iso) return Date.UTC(+iso[1]!, +iso[2]! - 1, +iso[3]!, +iso[4]!, +iso[5]!, +iso[6]!);
  return statSync(path).mtimeMs;
}

async function readRun(folder: string, flag: string, draft: Draft, cli: Pick<Cli, 'stderr'>): Promise<void> {
  if (draft.requests) throw new InputError(`${flag}: two run folders; compare one run with one`);
  const [{ openRun }, { inCohort }, { windowOf }] = await Promise.all([
    import('../store/index.ts'),
    import('../core/cohort.ts'),
    import('./run-report.ts'),
  ]);
  const run = await openRun(folder, { wallNow: Date.now() });
  try {
    const window = await windowOf(run);
    const { contract, target, epochWall } = run.meta;
    draft.contract = JSON.stringify(contract);
    if (typeof target.model === 'string') draft.model = oneLine(target.model, 60);
    if (Number.isFinite(window.start)) draft.from = epochWall + window.start;
    if (Number.isFinite(window.end)) draft.to = epochWall + window.end;
    const fold = new RequestFold();
    const started = Date.now();
    let told = false;
    await run.operations((record) => {
      if (!told && Date.now() - started > 2000) {
        told = true;
        cli.stderr.line(`reading ${oneLine(folder)} …`);
      }
      if (inCohort(window, record.operation, record.stamps.scheduled, record.session)) fold.add(record);
    });
    draft.requests = fold.finish();
    if (isScrapeFolder(folder)) {
      // Scraped beside the run: only what lies in its window.
      const wall = (t: number): number | undefined => (Number.isFinite(t) ? run.meta.epochWall + t : undefined);
      draft.evidence.push(readScrapeFolder(folder, wall(window.start), wall(window.end)));
    }
    if (draft.requests.rows.length === 0)
      throw new InputError(`${flag}: ${oneLine(folder)} has no operations in its window; measure again`);
    const health = run.health as { event_loop_ms?: { p99?: number }; unsent?: number; cpu?: number } | undefined;
    draft.client = {
      ...(typeof health?.event_loop_ms?.p99 === 'number' && { eventLoopP99: health.event_loop_ms.p99 }),
      ...(typeof health?.unsent === 'number' && { unsent: health.unsent }),
      ...(typeof health?.cpu === 'number' && { cpu: health.cpu }),
    };
    if (run.status !== 'complete') draft.notes.push(`the run is ${run.status}: what was open counts as not completed`);
    draft.notes.push(...run.problems);
    if (draft.requests.dropped > 0)
      draft.notes.push(
        `${draft.requests.dropped} requests beyond the first ${draft.requests.rows.length} were not looked at`,
      );
  } finally {
    run.close();
  }
}
