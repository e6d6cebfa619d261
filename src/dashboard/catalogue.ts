/**
 * What lies in a folder of runs. A run is known by its path below that folder, and only paths found by looking are: an id
 * from outside is looked up here, never joined to a path.
 */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf, oneLine } from '../base/errors.ts';
import type { Millis } from '../base/units.ts';
import { limitsText } from '../report/contract-text.ts';
import type { CapacityReport } from '../report/curve-report.ts';
import type { Report } from '../report/report.ts';
import { readJson } from '../store/json.ts';
import { openRun } from '../store/reader.ts';

/** A line of the list. Absent figures are null. Times in ms. */
export interface Listed {
  readonly id: string;
  /** `run`: one measurement. `search`: a search for capacity, a sweep or a campaign, whose runs stand under it. */
  readonly kind: 'run' | 'search';
  readonly status: 'complete' | 'running' | 'cut' | 'corrupt';
  /** Why it cannot be read. */
  readonly problem: string | null;
  readonly name: string;
  /** Id of the search it belongs to. */
  readonly parent: string | null;
  /** Wall time of its start, ms since 1970 UTC. */
  readonly epoch: Millis | null;
  readonly target: string | null;
  readonly model: string | null;
  readonly load: string | null;
  readonly contract: string | null;
  readonly rate: number | null;
  readonly offered: number | null;
  readonly attainment: Pick<Report['attainment'], 'value' | 'low' | 'high' | 'target' | 'met' | 'shown'> | null;
  readonly goodput_rps: number | null;
  readonly throughput_tps: number | null;
  readonly ttft_p99_ms: Millis | null;
  readonly tpot_p99_ms: Millis | null;
  readonly client: string | null;
  readonly capacity: Pick<CapacityReport, 'end' | 'capacity' | 'target'> | null;
  readonly has_diagnosis: boolean;
}

/** Entries looked at, so that a folder that is no folder of runs does not take for ever. */
const MOST = 5000;

export interface Catalogue {
  list(): Promise<readonly Listed[]>;
  /** The folder of a listed id; undefined when there is none of that name. */
  folderOf(id: string): string | undefined;
}

export function catalogue(root: string, wallNow: () => Millis): Catalogue {
  let known = new Map<string, string>();
  const kept = new Map<string, { key: string; row: Listed }>();
  const look = (): Map<string, string> => {
    const found = new Map<string, string>();
    let looked = 0;
    const enter = (folder: string, id: string, depth: number): void => {
      if (found.size >= MOST || ++looked > 4 * MOST) return;
      if (existsSync(join(folder, 'run.json')) || isSearch(folder)) found.set(id, folder);
      if (depth === 0) return;
      for (const name of foldersIn(folder)) enter(join(folder, name), id === '' ? name : `${id}/${name}`, depth - 1);
    };
    // A run folder given itself is a list of one. Searches keep their runs in `probes/`.
    if (existsSync(join(root, 'run.json'))) found.set('.', root);
    else for (const name of foldersIn(root)) enter(join(root, name), name, 2);
    return found;
  };
  return {
    folderOf: (id) => {
      if (!known.has(id)) known = look();
      const folder = known.get(id);
      return folder === undefined || linkIn(folder) !== undefined ? undefined : folder;
    },
    list: async () => {
      known = look();
      const rows: Listed[] = [];
      for (const [id, folder] of known) {
        const link = linkIn(folder);
        if (link !== undefined) {
          const problem = `${oneLine(link, 80)} is a symbolic link, which is not followed: a run holds its own files`;
          rows.push({ ...EMPTY, id, kind: 'run', status: 'corrupt', name: id.split('/').at(-1) as string, problem });
          kept.delete(id);
          continue;
        }
        const key = keyOf(folder);
        const had = kept.get(id);
        if (had && had.key === key && had.row.status !== 'running') rows.push(had.row);
        else {
          const row = await listed(id, folder, wallNow(), known);
          kept.set(id, { key, row });
          rows.push(row);
        }
      }
      for (const id of kept.keys()) if (!known.has(id)) kept.delete(id);
      return inOrder(rows);
    },
  };
}

/** The newest first, and under each search its runs in the order in which it made them. */
function inOrder(rows: readonly Listed[]): readonly Listed[] {
  const under = new Map<string, Listed[]>();
  const alone: Listed[] = [];
  for (const row of rows) {
    if (row.parent === null) alone.push(row);
    else under.set(row.parent, [...(under.get(row.parent) ?? []), row]);
  }
  const byId = (a: Listed, b: Listed): number => a.id.localeCompare(b.id, 'en', { numeric: true });
  alone.sort((a, b) => (b.epoch ?? 0) - (a.epoch ?? 0) || byId(a, b));
  const whole = (row: Listed): Listed[] => [
    row,
    ...(under.get(row.id) ?? []).sort((a, b) => (a.epoch ?? 0) - (b.epoch ?? 0) || byId(a, b)).flatMap(whole),
  ];
  return alone.flatMap(whole);
}

function foldersIn(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((e) => e.isDirectory() && !e.name.startsWith('.'))
      .map((e) => e.name)
      .sort()
      .slice(0, MOST);
  } catch {
    return [];
  }
}

/** A file of a run that is a link: it could lead anywhere, and what it leads to would be shown. */
function linkIn(folder: string): string | undefined {
  try {
    return readdirSync(folder, { withFileTypes: true }).find(
      (e) => e.isSymbolicLink() && /\.(json|parquet)$/.test(e.name),
    )?.name;
  } catch {
    return undefined;
  }
}

const isSearch = (folder: string): boolean =>
  existsSync(join(folder, 'capacity.json')) || existsSync(join(folder, 'search.json'));

/** Changes when what is listed of a folder does. */
export function keyOf(folder: string): string {
  return ['run.json', 'cursor.json', 'report.json', 'capacity.json', 'search.json', 'diagnosis.json']
    .map((file) => {
      try {
        const s = statSync(join(folder, file));
        return `${s.mtimeMs}:${s.size}`;
      } catch {
        return '-';
      }
    })
    .join(' ');
}

const EMPTY: Omit<Listed, 'id' | 'kind' | 'status' | 'name'> = {
  problem: null,
  parent: null,
  epoch: null,
  target: null,
  model: null,
  load: null,
  contract: null,
  rate: null,
  offered: null,
  attainment: null,
  goodput_rps: null,
  throughput_tps: null,
  ttft_p99_ms: null,
  tpot_p99_ms: null,
  client: null,
  capacity: null,
  has_diagnosis: false,
};

async function listed(
  id: string,
  folder: string,
  wallNow: Millis,
  known: ReadonlyMap<string, string>,
): Promise<Listed> {
  const name = id.split('/').at(-1) as string;
  const up = id.split('/').slice(0, -2).join('/');
  const base = {
    ...EMPTY,
    id,
    name,
    parent: id.includes('/') && known.has(up) ? up : null,
    has_diagnosis: existsSync(join(folder, 'diagnosis.json')),
  };
  try {
    if (!existsSync(join(folder, 'run.json'))) return searchRow(folder, base);
    const run = await openRun(folder, { wallNow });
    try {
      const { meta, status } = run;
      const report = run.status === 'complete' ? asReport(run.report) : undefined;
      const problem = run.problems[0];
      return {
        ...base,
        kind: isSearch(folder) ? 'search' : 'run',
        status,
        problem: problem ?? null,
        name: meta.name || name,
        epoch: meta.epochWall,
        target: textOf(meta.target.endpoint),
        model: textOf(meta.target.model),
        load: textOf(meta.workload.text),
        contract: limitsText(meta.contract),
        rate: typeof meta.workload.rate === 'number' ? meta.workload.rate : null,
        offered: report?.cohort.offered ?? run.cursor?.offered ?? null,
        attainment: report?.attainment ?? null,
        goodput_rps: report?.goodput_rps ?? null,
        throughput_tps: report?.throughput_tps ?? null,
        ttft_p99_ms: report?.metrics.ttft_ms?.p99 ?? null,
        tpot_p99_ms: report?.metrics.tpot_ms?.p99 ?? null,
        client: report?.client.verdict ?? null,
      };
    } finally {
      run.close();
    }
  } catch (error) {
    return { ...base, kind: 'run', status: 'corrupt', problem: messageOf(error) };
  }
}

function searchRow(folder: string, base: Omit<Listed, 'kind' | 'status'>): Listed {
  const capacity = readCapacity(folder);
  const search = readJson(folder, 'search.json');
  const about = (capacity?.about ?? {}) as Readonly<Record<string, unknown>>;
  const target = search?.target as { url?: unknown; name?: unknown } | undefined;
  return {
    ...base,
    kind: 'search',
    status: capacity ? 'complete' : 'cut',
    epoch: epochOfName(base.name),
    target: textOf(about.Target ?? about.target ?? target?.url ?? target?.name),
    load: textOf(about.Load ?? about.load),
    contract: textOf(about.Contract ?? about.contract),
    offered: capacity?.offered ?? null,
    capacity: capacity ? { end: capacity.end, capacity: capacity.capacity, target: capacity.target } : null,
    goodput_rps: capacity?.goodput_at_capacity_rps ?? null,
  };
}

/** `20261129T140510Z-name`. */
function epochOfName(name: string): Millis | null {
  const m = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z/.exec(name);
  return m ? Date.parse(`${m[1]}-${m[2]}-${m[3]}T${m[4]}:${m[5]}:${m[6]}Z`) : null;
}

/** @throws InputError when the file is there and damaged. */
export function readCapacity(folder: string): CapacityReport | undefined {
  const found = readJson(folder, 'capacity.json');
  if (!found) return undefined;
  if (found.schema !== 'goodput.capacity/1' || !Array.isArray(found.curve) || !Array.isArray(found.probes)) {
    throw new Error(`capacity.json is not one this version reads (schema '${oneLine(String(found.schema), 40)}')`);
  }
  return found as unknown as CapacityReport;
}

/** A stored report, where it has the shape of ours. */
export function asReport(found: Readonly<Record<string, unknown>> | undefined): Report | undefined {
  if (found?.schema !== 'goodput.report/1') return undefined;
  for (const key of ['cohort', 'attainment', 'metrics', 'client', 'contract', 'window', 'run', 'notes'] as const) {
    if (typeof found[key] !== 'object' || found[key] === null) return undefined;
  }
  return found as unknown as Report;
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? oneLine(value, 500) : null;
}
