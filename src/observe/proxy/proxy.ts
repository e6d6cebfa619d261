/** The proxy: a listening server, its upstreams, and what it records. */
import { createServer, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Millis } from '../../base/units.ts';
import { contractFor } from '../../core/contract.ts';
import type { RequestRecord } from '../../core/record.ts';
import type { CursorState } from '../../store/index.ts';
import { dialectOfPath, type MetricFamily, prometheusText } from '../../wire/index.ts';
import {
  LiveCohorts,
  type LiveRecords,
  type LiveSnapshot,
  Operations,
  type SnapshotOptions,
} from '../cohorts/index.ts';
import { OperationMetrics } from '../export/metrics.ts';
import { Account, type AccountContext } from './account.ts';
import { adminServer } from './admin.ts';
import { Admission } from './admission.ts';
import { Callers } from './callers.ts';
import { DirectRequest } from './direct-request.ts';
import { Exchange, type ExchangeContext, type TransportCounts } from './exchange.ts';
import { isLooping, requestHeaders } from './hop-headers.ts';
import { Later } from './later.ts';
import { listen } from './listen.ts';
import type { ProxyOptions } from './options.ts';
import { answer, refuseBadRequest } from './own-answers.ts';
import { Pipelined } from './pipelined.ts';
import { transportFamilies } from './proxy-metrics.ts';
import { Upstream } from './upstream.ts';

/** What a proxy is given by its host: the clock of its epoch, and where records go. */
export interface ProxyHost {
  readonly now: () => Millis;
  /** Wall time of the epoch, ms since 1970. */
  readonly epochWall: Millis;
  /** Takes each attempt's record. Never waits and never throws: it drops and counts. */
  readonly record: (record: RequestRecord) => void;
  /** What became of the records so far. */
  readonly recorded: () => { written: number; pending: number; dropped: number; problem: string | undefined };
}

export interface RunningProxy {
  /** `http://host:port`. */
  readonly url: string;
  readonly adminUrl: string | undefined;
  readonly counts: Readonly<TransportCounts>;
  live(options?: SnapshotOptions): LiveSnapshot;
  /** Everything `/metrics` tells, for an exporter. */
  metricFamilies(): readonly MetricFamily[];
  metricsText(): string;
  /** How far it has come, for a run's cursor. */
  cursor(): CursorState;
  /** Takes no more connections, lets open requests end for at most `grace` ms, then breaks them off. */
  close(grace?: Millis): Promise<void>;
}

/** Deadlines, waits and idle connections are looked at this often. */
const SWEEP: Millis = 250;
const MOST_REASONS = 50;
/** Peers that have vanished without a word are asked for after so much silence. */
const KEEP_ALIVE: Millis = 30_000;

/** @throws InputError when it cannot listen. */
export async function startProxy(options: ProxyOptions, host: ProxyHost): Promise<RunningProxy> {
  const { now } = host;
  const of = contractFor(options.contract, options.classContracts);
  const upstreams = options.upstreams.map((target) => new Upstream(target, options.maxConcurrency));
  const unreadable = new Map<string, number>();
  const counts: TransportCounts = {
    requests: 0,
    passedThrough: 0,
    staleReattempts: 0,
    failovers: 0,
    clientAborts: 0,
    refused: 0,
    badGateway: 0,
  };
  const settings = {
    IncomingMessage: DirectRequest,
    noDelay: true,
    keepAliveTimeout: 75_000, // longer than clients keep an idle socket, so it is not closed under a request
    headersTimeout: options.headersTimeout ?? 10_000,
    requestTimeout: options.requestTimeout ?? 300_000,
    connectionsCheckingInterval: 1000,
    maxHeaderSize: options.maxHeaderBytes ?? 64 * 1024,
    insecureHTTPParser: false,
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE,
  };
  const { tls } = options;
  const server =
    tls === undefined
      ? createServer<typeof DirectRequest>(settings)
      : createTlsServer<typeof DirectRequest>({
          ...settings,
          ...tls,
          ALPNProtocols: ['http/1.1'],
          handshakeTimeout: settings.headersTimeout,
        });
  // A count would drop the headers beyond it, the framing ones with them; their size is bounded above.
  server.maxHeadersCount = 0;
  const url = await listen(server, options.host, options.port, '--listen', tls === undefined ? 'http' : 'https');

  const cohorts = new LiveCohorts({
    boundary: 'proxy',
    instance: url.replace(/^https?:\/\//, ''),
    epochWall: host.epochWall,
    contractFor: of,
    ...(options.window !== undefined && { window: options.window }),
  });
  const metrics = new OperationMetrics(
    [options.contract, ...Object.values(options.classContracts ?? {})],
    ['default', ...Object.keys(options.classContracts ?? {})],
  );
  const operations = new Operations({
    contractFor: of,
    listeners: [cohorts, metrics, ...(options.listeners ?? [])],
    record: host.record,
    ...(options.retryWindow !== undefined && { retryWindow: options.retryWindow }),
  });
  const admission = new Admission(
    upstreams,
    { maxQueueAge: options.maxQueueAge ?? Number.POSITIVE_INFINITY, maxQueue: options.maxQueue ?? 10_000 },
    now,
  );
  const context: ExchangeContext = {
    now,
    upstreams,
    admission,
    open: new Set(),
    counts,
    preserveHost: options.preserveHost ?? false,
    connectTimeout: options.connectTimeout ?? 5000,
    stallTimeout: options.stallTimeout ?? 300_000,
  };
  const unread = (reason: string): void => {
    const name = unreadable.has(reason) || unreadable.size < MOST_REASONS ? reason : 'other';
    unreadable.set(name, (unreadable.get(name) ?? 0) + 1);
  };
  const later = new Later(now, () => unread('a defect in recording it'));
  const accounts: AccountContext = {
    operations,
    now,
    unreadable: unread,
    later,
    callers: new Callers(options),
    contractFor: of,
    served: (ttft) => admission.served(ttft),
  };

  const pipelined = new Pipelined();
  const handle = (req: DirectRequest, res: ServerResponse, expects: boolean): void => {
    const at = now();
    counts.requests++;
    const path = pathOf(req.url ?? '');
    if (path === undefined) {
      answer(res, 400, 'invalid_request_error', 'the request target is neither a path nor an http URL');
      return;
    }
    const headers = requestHeaders(req.rawHeaders);
    if (headers.refusal !== undefined) {
      const { status, why } = headers.refusal;
      answer(res, status, 'invalid_request_error', `the request has ${why}`, ['connection', 'close']);
      return;
    }
    if (isLooping(headers.via)) {
      const why = 'the request has come through here before; an upstream points back at the proxy';
      answer(res, 508, 'loop_detected', why);
      return;
    }
    const dialect = req.method === 'POST' ? dialectOfPath(path) : undefined;
    if (dialect === undefined) counts.passedThrough++;
    const account = dialect && new Account(accounts, at, path, dialect, req);
    const start = (): void => new Exchange(context, { at, req, res, path, headers, account, expects }).start();
    if (res.socket !== null) start();
    else if (!pipelined.wait(req, res, start, () => account?.left(now()))) {
      const why = 'too many requests wait on this connection for the answers before theirs';
      account?.ended(now(), { kind: 'refused', detail: `refused by the proxy: ${why}` });
      answer(res, 429, 'rate_limit_exceeded', why);
    }
  };
  server.on('request', (req, res) => handle(req, res, false));
  server.on('checkContinue', (req, res) => handle(req, res, true));
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => refuseBadRequest(error, socket));

  const sweeper = setInterval(() => {
    later.drain();
    const t = now();
    operations.sweep(t);
    admission.sweep();
    for (const exchange of context.open) exchange.sweep(t);
    for (const upstream of upstreams) upstream.sweep(t);
  }, SWEEP);

  const records = (): LiveRecords => {
    const { written, pending, dropped, problem } = host.recorded();
    return {
      written,
      pending,
      dropped,
      problem: problem ?? null,
      passed_through: counts.passedThrough,
      unreadable: Object.fromEntries(unreadable),
      listener_failures: operations.listenerFailures,
    };
  };
  const live = (chosen: SnapshotOptions = {}): LiveSnapshot => {
    later.drain();
    const t = now();
    operations.sweep(t);
    return cohorts.snapshot(
      {
        now: t,
        inFlight: operations.inFlight,
        queued: admission.queued,
        records: records(),
        upstreams: upstreams.map((u) => ({
          url: u.target.url + u.target.prefix,
          in_flight: u.inFlight,
          max_concurrency: Number.isFinite(u.maxConcurrency) ? u.maxConcurrency : null,
          healthy: u.isHealthy(t),
          requests: u.requests,
          failures: u.failures,
        })),
      },
      chosen,
    );
  };
  const metricFamilies = (): readonly MetricFamily[] => {
    const present = live({ windows: 0 });
    return [...metrics.families(present), ...transportFamilies(present, counts)];
  };
  const metricsText = (): string => prometheusText(metricFamilies());
  const admin = options.admin && (await adminServer(options.admin, { live, metricsText }));

  let closing: Promise<void> | undefined;
  const close = async (grace: Millis): Promise<void> => {
    const ended = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeIdleConnections();
    const force = setTimeout(() => breakOff(), grace);
    await ended;
    clearTimeout(force);
    clearInterval(sweeper);
    later.drain();
    operations.close(now());
    for (const upstream of upstreams) upstream.close();
    await admin?.close();
  };
  const breakOff = (): void => {
    for (const exchange of [...context.open]) exchange.stop();
    server.closeAllConnections();
  };
  return {
    url,
    adminUrl: admin?.url,
    counts,
    live,
    metricFamilies,
    metricsText,
    cursor: () => {
      later.drain();
      return { offered: operations.offered, open: operations.openStates() };
    },
    close: (grace = 0) => {
      closing ??= close(grace);
      if (grace === 0) breakOff();
      return closing;
    },
  };
}

/** The path of a target: as it stands, or of an absolute URL, whose host is none of our business. */
function pathOf(target: string): string | undefined {
  if (target.startsWith('/') || target === '*') return target;
  const m = /^https?:\/\/[^/?#]*([/?].*)?$/i.exec(target);
  if (!m) return undefined;
  const path = m[1] ?? '/';
  return path.startsWith('/') ? path : `/${path}`;
}
