/** From a run folder to its report: the one path from records to figures. `bench` ends with it, `report` is it. */
import {
  type ClientHealth,
  CohortReducer,
  type Contract,
  contractFor,
  estimatedWindow,
  inCohort,
  judgeRecord,
  type RequestRecord,
  type Spread,
  ThroughputReducer,
  type Window,
} from '../core/index.ts';
import {
  ArrivalLog,
  arrivalsReport,
  buildReport,
  classReports,
  type PlannedLoad,
  type Report,
  spreadOf,
} from '../report/index.ts';
import type { JsonObject, RunReader } from '../store/index.ts';
import { storedContracts } from './load-facts.ts';

/** What a command adds to a report of a folder. */
export interface ReportOptions {
  /** Judge under another contract than the run's own. */
  readonly contract?: Contract;
  readonly remarks?: readonly string[];
}

/** `health.json` as `bench` writes it. Times in ms. */
export interface Health {
  readonly event_loop_ms?: Spread;
  readonly cpu?: number;
  readonly unsent: number;
  readonly dropped: number;
  readonly stopped?: string;
  readonly evidence?: JsonObject;
}

/** A fold of its own that begins as a copy of the cohort's. */
function partOf(cohort: CohortReducer, contract: Contract, window: Window): CohortReducer {
  const part = new CohortReducer(contract, window);
  part.merge(cohort);
  return part;
}

export async function reportOfRun(run: RunReader, options: ReportOptions = {}): Promise<Report> {
  const contract = options.contract ?? run.meta.contract;
  const window = await windowOf(run);
  // Under another contract than the run's own, that one holds for all classes.
  const contracts = options.contract ? {} : storedContracts(run.meta.workload);
  const of = contractFor(contract, contracts);
  const cohort = new CohortReducer(contract, window, of);
  const throughput = new ThroughputReducer(window);
  const classes = new Map<string, CohortReducer>();
  const arrivals = new ArrivalLog(window);
  let only: string | undefined;
  await run.operations((record: RequestRecord) => {
    throughput.add(record);
    arrivals.add(record);
    if (!inCohort(window, record.operation, record.stamps.scheduled, record.session)) return;
    const { metrics, verdict } = judgeRecord(record, of(record.class));
    only ??= record.class;
    // With one class its fold is the cohort's; it parts from it when a second comes.
    if (record.class !== only && classes.size === 0) classes.set(only, partOf(cohort, of(only), window));
    cohort.addJudged(record, metrics, verdict);
    if (classes.size === 0) return;
    let own = classes.get(record.class);
    if (!own && classes.size < MAX_CLASSES) {
      own = new CohortReducer(of(record.class), window);
      classes.set(record.class, own);
    }
    own?.addJudged(record, metrics, verdict);
  });
  const several = classes.size > 1 || Object.keys(contracts).length > 0;
  if (several && only !== undefined && classes.size === 0) classes.set(only, partOf(cohort, of(only), window));
  const fold = cohort.finish();
  const health = run.health as unknown as Health | undefined;
  const sendLag = spreadOf(fold.columns.sendLag);
  const client: ClientHealth = {
    ...(sendLag && { sendLag }),
    ...(health?.event_loop_ms && { eventLoop: health.event_loop_ms }),
    ...(health?.evidence?.stampLate !== undefined && { stampLate: health.evidence.stampLate as Spread }),
    ...(health?.cpu !== undefined && { cpu: health.cpu }),
    ...(fold.events > 0 && { coalesced: fold.coalesced / fold.events }),
    unsent: fold.reasons.get('client-limit')?.count ?? 0,
    dropped: health?.dropped ?? run.cursor?.dropped ?? 0,
  };
  const { target, workload } = run.meta;
  const cut = cutText(run, health);
  const planned = plannedLoad(workload, window);
  const arrived = planned && arrivalsReport(arrivals, fold, planned);
  return buildReport({
    ...(arrived && { arrivals: arrived }),
    ...(several && {
      classes: classReports(
        [...classes]
          .sort(([a], [b]) => a.localeCompare(b))
          .map(([name, own]) => ({ name, contract: of(name), fold: own.finish() })),
      ),
    }),
    contract,
    cohort: fold,
    throughput: throughput.finish(),
    // Of clients that were not ours nothing is known.
    ...(target.kind !== 'imported' && target.kind !== 'proxy' && { client }),
    facts: {
      name: run.meta.name,
      ...facts(target, { endpoint: 'target', model: 'model', dialect: 'dialect' }),
      ...facts(workload, {
        text: 'workload',
        // Of sessions the rate asked for is not one of requests.
        ...(window.sessions ? {} : { rate: 'asked_rps' }),
        closed_loop: 'closed_loop',
        gpus: 'gpus',
        default_contract: 'default_contract',
      }),
      ...(cut && { cut }),
      remarks: [...(options.remarks ?? []), ...importRemarks(workload), ...bufferingRemarks(health), ...run.problems],
    },
  });
}

/** Classes beyond these are in the whole alone. */
const MAX_CLASSES = 100;

/** The planned arrivals as `bench` stored them; undefined in a closed loop, and where nothing is stored. */
function plannedLoad(workload: JsonObject, window: Window): PlannedLoad | undefined {
  const counted = (workload.window as { requests?: unknown } | undefined)?.requests !== undefined;
  const base = { sessions: window.sessions !== undefined, counted };
  if (workload.replay) return base;
  const { process, rate, burstiness } = (workload.arrivals ?? {}) as Record<string, unknown>;
  if (typeof rate !== 'number' || !(rate > 0)) return undefined;
  if (process === 'poisson' || process === 'constant') return { ...base, rate, arrivals: { process } };
  if (process !== 'gamma') return undefined;
  return { ...base, rate, arrivals: { process, shape: typeof burstiness === 'number' ? burstiness : 1 } };
}

/** Picks keys of a stored object under other names. */
function facts(from: JsonObject, names: Readonly<Record<string, string>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(names)
      .filter(([key]) => from[key] !== undefined && from[key] !== null)
      .map(([key, name]) => [name, from[key]]),
  );
}

function cutText(run: RunReader, health: Health | undefined): string | undefined {
  if (run.status === 'cut')
    return 'it was cut off; operations open then are undecided, and at most its last second is missing';
  if (run.status === 'running') return 'it is still running; operations open now are undecided';
  if (health?.stopped === 'stopped') return 'its user ended the arrivals early; the window ends there';
  if (health?.stopped === 'aborted') return 'its user ended it at once; operations open then are undecided';
  return undefined;
}

/** The cohort's window, as planned or, of a run cut before it was known, inferred. */
export async function windowOf(run: RunReader): Promise<Window> {
  return run.cursor?.window ?? (await inferWindow(run));
}

/** A run cut before its window was known: the cohort is all it offered. */
async function inferWindow(run: RunReader): Promise<Window> {
  const arrivals: number[] = [];
  await run.operations((record) => arrivals.push(record.stamps.scheduled));
  return (
    estimatedWindow(arrivals) ?? { start: Number.NEGATIVE_INFINITY, end: Number.POSITIVE_INFINITY, estimated: true }
  );
}

/** What another tool's file could not tell. */
function importRemarks(workload: JsonObject): string[] {
  const told = workload.imported as { tool?: unknown; cannot_tell?: unknown } | undefined;
  return Array.isArray(told?.cannot_tell) ? told.cannot_tell.map((text) => `imported from ${told.tool}: ${text}`) : [];
}

/** What the transport showed of proxies that hold tokens back, in sentences. */
function bufferingRemarks(health: Health | undefined): string[] {
  const e = health?.evidence as
    | { bursts?: number; largestBurst?: number; inOneRead?: number; responses?: number; reads?: number }
    | undefined;
  if (!e?.responses) return [];
  const remarks: string[] = [];
  if ((e.inOneRead ?? 0) > 0.01 * e.responses) {
    remarks.push(
      `${e.inOneRead} of ${e.responses} answers came in a single read though they had several chunks: something before us gathers the stream (a proxy that buffers or compresses, or a server that does not stream)`,
    );
  }
  if ((e.bursts ?? 0) > Math.max(5, 0.01 * (e.reads ?? 0))) {
    remarks.push(
      `${e.bursts} bursts of chunks arrived after a silence (the largest ${e.largestBurst} chunks in one read): look for buffering between the engine and here`,
    );
  }
  return remarks;
}
