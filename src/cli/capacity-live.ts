/** Probes on a live engine: each a run folder of its own, judged as it is measured, with the server idle before the next. */
import type { Millis } from '../base/units.ts';
import { foldAttempts } from '../core/attempts.ts';
import { inCohort } from '../core/cohort.ts';
import { type Contract, contractFor } from '../core/contract.ts';
import { clientVerdict } from '../core/health.ts';
import { judgeRecord, type Verdict } from '../core/judge.ts';
import type { Metrics } from '../core/measure.ts';
import type { RequestRecord } from '../core/record.ts';
import type { Workload } from '../core/request.ts';
import type { Sink } from '../core/sink.ts';
import { ThroughputReducer } from '../core/throughput.ts';
import { ProbeFold } from '../drive/capacity/fold.ts';
import type { ProbeMeasure, ProbeRequest } from '../drive/capacity/types.ts';
import { type Drive, drive, type Progress, selfWatch } from '../drive/index.ts';
import { spreadOf } from '../report/spread.ts';
import type { RunWriter } from '../store/index.ts';
import { createRun } from '../store/index.ts';
import type { HostClock } from './host.ts';
import type { OpenTarget } from './target.ts';
import { VERSION } from './version.ts';

export interface LiveProbes {
  readonly target: OpenTarget;
  readonly contract: Contract;
  readonly host: HostClock;
  readonly workload: (rate: number, seed: number) => Workload;
  /** The folder that takes the runs' folders. */
  readonly folder: string;
  readonly maxInFlight?: number;
  /** The load is of sessions: rate and cohort count them, with all their turns. */
  readonly sessions?: boolean;
  /** Contracts of classes that have their own. */
  readonly contracts?: Readonly<Record<string, Contract>>;
  /** What run.json says of the load, beside rate and seed. */
  readonly about: (rate: number) => Readonly<Record<string, unknown>>;
  /** Told of each run as it begins, to show it and to be able to end it. */
  readonly began?: (running: Drive) => () => void;
}

interface Seen {
  readonly record: RequestRecord;
  readonly verdict: Verdict;
  readonly metrics: Metrics;
}

/** One run. Undefined when it was ended early: it shows nothing then. @returns also the run's folder. */
export async function liveProbe(
  probes: LiveProbes,
  request: ProbeRequest,
): Promise<{ readonly measure: ProbeMeasure | undefined; readonly run: string }> {
  const { target, contract, host, folder } = probes;
  const { rate, seed } = request;
  const window = {
    warmup: (1000 * request.warmup) / rate,
    requests: request.requests,
    rate,
    ...(probes.sessions && { sessions: true }),
  };
  const run = await createRun(
    folder,
    `${Number(rate.toPrecision(4))}rps`,
    {
      epochWall: host.epochWall,
      seed,
      contract,
      workload: {
        text: `${Number(rate.toPrecision(4))}/s, seed ${seed}: ${request.why}`,
        ...probes.about(rate),
        rate,
        window,
        probe: { role: request.role, why: request.why, ...request.replication },
      },
      target: target.facts,
      versions: { goodput: VERSION, node: process.version },
      machine: { epoch_monotonic_ms: host.epochMonotonic },
    },
    { clock: host.clock },
  );
  const watch = selfWatch();
  const sink = new Judging(run, (name) => probes.contracts?.[name] ?? contract);
  const started = host.clock.now();
  let over = (): void => {};
  try {
    const running = drive(
      probes.workload(rate, seed),
      target.engine,
      host.clock,
      {
        contract,
        seed,
        window,
        ...(probes.contracts && { contractFor: contractFor(contract, probes.contracts) }),
        ...(probes.maxInFlight !== undefined && { maxInFlight: probes.maxInFlight }),
      },
      sink,
    );
    run.track(() => ({
      offered: running.progress().offered,
      open: running.open().map((o) => ({ ...o, attempt: 0 })),
      ...(running.window && { window: running.window }),
    }));
    over = probes.began?.(running) ?? over;
    const result = await running.done;
    const { eventLoop, cpu } = watch.readings();
    run.writeHealth({
      event_loop_ms: eventLoop,
      cpu,
      unsent: result.unsent,
      dropped: result.dropped + sink.dropped,
      stopped: result.stopped,
      offered: result.offered,
      attempts: result.attempts,
      stale_connections: result.stale,
      max_in_flight: result.maxInFlight,
    });
    if (result.stopped !== 'finished') return { measure: undefined, run: run.folder };
    const fold = new ProbeFold();
    const throughput = new ThroughputReducer(result.window);
    const lags: number[] = [];
    for (const { record, verdict, metrics } of sink.finish()) {
      throughput.add(record);
      if (!inCohort(result.window, record.operation, record.stamps.scheduled, record.session)) {
        if (record.stamps.scheduled < result.window.start) fold.warm(record.operation, metrics);
        continue;
      }
      fold.add({ operation: record.operation, class: record.class, verdict, metrics });
      if (metrics.sendLag !== undefined) lags.push(metrics.sendLag);
    }
    const sendLag = spreadOf(Float64Array.from(lags).sort());
    const client = { ...(sendLag && { sendLag }), eventLoop, cpu, unsent: result.unsent, dropped: sink.dropped };
    const { tokens, tokensPerSecond, unknown } = throughput.finish();
    const measure = fold.finish({
      seconds: (result.window.end - result.window.start) / 1000,
      throughput: tokens > 0 || unknown === 0 ? tokensPerSecond : null,
      clientBound: clientVerdict(client, contract).why,
      elapsed: host.clock.now() - started,
    });
    return { measure, run: run.folder };
  } finally {
    over();
    watch.stop();
    await run.close();
  }
}

/** Passes records on to the run folder, and keeps their verdicts; a full writer loses rows, never verdicts. */
class Judging implements Sink {
  readonly full = false;
  dropped = 0;
  readonly #run: RunWriter;
  readonly #contract: (className: string) => Contract;
  #attempts: RequestRecord[] = [];
  #seen: Seen[] = [];

  constructor(run: RunWriter, contract: (className: string) => Contract) {
    this.#run = run;
    this.#contract = contract;
  }

  add(record: RequestRecord): void {
    if (this.#run.full) this.dropped++;
    else this.#run.add(record);
    // The attempts of an operation come together, when it is final.
    if (this.#attempts.length > 0 && this.#attempts[0]?.operation !== record.operation) this.#judge();
    this.#attempts.push(record);
  }

  finish(): readonly Seen[] {
    if (this.#attempts.length > 0) this.#judge();
    return this.#seen;
  }

  #judge(): void {
    const record = foldAttempts(this.#attempts);
    this.#attempts = [];
    this.#seen.push({ record, ...judgeRecord(record, this.#contract(record.class)) });
  }

  drained(): Promise<void> {
    return this.#run.drained();
  }
  close(): Promise<void> {
    return this.#run.close();
  }
}

/** A lone request, kept nowhere. @returns its times, undefined where it got none. */
export async function loneRequest(
  probes: Pick<LiveProbes, 'target' | 'contract' | 'host' | 'workload'>,
  seed: number,
): Promise<{ readonly ttft?: Millis; readonly e2e: Millis; readonly outcome: string; readonly detail: string }> {
  const all = probes.workload(1, seed);
  let given = false;
  const one: Workload = {
    next: () => {
      if (given) return undefined;
      given = true;
      return { ...(all.next() as NonNullable<ReturnType<Workload['next']>>), at: 0 };
    },
    ended: () => [],
  };
  const records: RequestRecord[] = [];
  const sink: Sink = {
    full: false,
    add: (record) => void records.push(record),
    drained: async () => {},
    close: async () => {},
  };
  const { contract, host, target } = probes;
  await drive(one, target.engine, host.clock, { contract, seed, window: { warmup: 0, requests: 1, rate: 1 } }, sink)
    .done;
  const record = foldAttempts(records);
  const { metrics } = judgeRecord(record, contract);
  return {
    ...(metrics.ttft !== undefined && { ttft: metrics.ttft }),
    e2e: metrics.e2e ?? contract.deadline,
    outcome: record.outcome,
    detail: record.detail || record.reason,
  };
}

/** Longest wait for a server to become idle. */
const DRAIN: Millis = 60_000;

/**
 * Waits until a lone request is served as quickly as when nothing else was there: what the last run left in the server's
 * queue would count against the next. @returns whether it came to that in time.
 */
export async function drained(probes: LiveProbes, calm: Millis, seed: number): Promise<boolean> {
  const { clock } = probes.host;
  const until = clock.now() + DRAIN;
  for (let i = 0; clock.now() < until; i++) {
    const { ttft } = await loneRequest(probes, seed + i);
    if (ttft !== undefined && ttft <= 2 * calm + 20) return true;
  }
  return false;
}

/** What a run shows while it goes on. */
export function probeLine(request: ProbeRequest, p: Progress): string {
  return `${Number(request.rate.toPrecision(4))}/s  ${p.phase}  offered ${p.cohort.offered} of ${request.requests}  ·  in flight ${p.inFlight}  ·  good ${p.cohort.good} of ${p.cohort.ended}`;
}
