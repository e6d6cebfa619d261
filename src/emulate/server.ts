/** The HTTP server: from an engine and options to a listening emulator. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { InputError, type Millis, messageOf } from '../base/index.ts';
import { wallClock } from '../core/index.ts';
import { PROMETHEUS_CONTENT_TYPE } from '../wire/index.ts';
import type { ServedModel } from './body.ts';
import { serveCompletion } from './completions.ts';
import type { MakeEngine } from './engines.ts';
import { checkFaults, type FaultRate } from './faults.ts';
import { frugalTimers } from './frugal-timers.ts';
import { type EmulatorHost, nodeHost } from './host.ts';
import { type Lateness, LatenessMeter } from './lateness.ts';
import { VllmMetrics } from './metrics.ts';
import { metricsText } from './metrics-text.ts';
import { Problem } from './problem.ts';
import {
  detokenizeJson,
  modelsJson,
  type Route,
  readBody,
  routeOf,
  send,
  sendJson,
  sendProblem,
  tokenizeJson,
} from './routes.ts';
import type { Service } from './service.ts';
import { StampsFile } from './stamps.ts';
import { Vocabulary } from './words.ts';

export interface ServerOptions {
  /** Name the model is served under, its longest sequence, and the length of answers left open. */
  readonly model: ServedModel;
  /** Default 127.0.0.1. Anything else opens the emulator to others: it asks nobody for a key. */
  readonly host?: string;
  /** 0, the default, takes any free port. */
  readonly port?: number;
  readonly engine: MakeEngine;
  readonly faults?: readonly FaultRate[];
  /** Faults and request ids are drawn from it. Default 0. */
  readonly seed?: number;
  /** Waiting requests above which a new one is refused with 503. Default: no bound. */
  readonly maxQueue?: number;
  /** NDJSON file of when each token was sent. */
  readonly stamps?: string;
}

/** A running emulator. */
export interface Emulator {
  /** `http://host:port`, without a path. */
  readonly url: string;
  readonly host: string;
  readonly port: number;
  /** One line on the engine behind. */
  readonly about: string;
  /** How late tokens left against the engine's plan; absent before the first, or when the engine plans none. */
  lateness(): Lateness | undefined;
  /** Requests with the engine now. */
  open(): number;
  /** Completion requests so far, and how many got each fault. */
  requests(): number;
  faults(): ReadonlyMap<string, number>;
  metricsText(): string;
  /** Why stamps were lost, when some were. */
  stampsFailure(): string | undefined;
  /** Takes no more connections, lets open streams end for at most `grace` ms (default 0), then closes all. */
  close(grace?: Millis): Promise<void>;
}

/** The version of vLLM whose surface this is. */
export const SURFACE_VERSION = '0.11.0';
const KEEP_ALIVE_MS = 75_000; // longer than clients keep an idle socket, so it is not closed under a request
const HEADERS_TIMEOUT_MS = 30_000;
const REQUEST_TIMEOUT_MS = 120_000;

/** @throws InputError when the address cannot be listened on or the stamps file not written. */
export async function serve(options: ServerOptions, host: EmulatorHost = nodeHost): Promise<Emulator> {
  const clock = wallClock(frugalTimers(host.timers));
  const metrics = new VllmMetrics(options.model.maxModelLen);
  const served = options.engine(clock, (tokens, steps) => metrics.iterationTokens.observe(tokens, steps));
  const service: Service = {
    served,
    model: options.model,
    clock,
    unixSeconds: host.unixSeconds,
    metrics,
    lateness: new LatenessMeter(),
    stamps: options.stamps === undefined ? undefined : new StampsFile(options.stamps),
    faults: checkFaults(options.faults ?? []),
    seed: options.seed ?? 0,
    maxQueue: options.maxQueue ?? Number.POSITIVE_INFINITY,
    open: 0,
  };
  const started = Math.floor(host.unixSeconds());
  const vocabulary = new Vocabulary();
  let requests = 0;
  const nextNumber = (): number => requests++;
  const text = (): string => metricsText(service, started);

  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    const received = clock.now();
    response.on('error', () => {}); // a client that resets is no news; `close` follows
    const guarded = (run: () => void): void => {
      try {
        run();
      } catch (error) {
        const problem = error instanceof Problem ? error : new Problem(500, 'InternalServerError', messageOf(error));
        sendProblem(response, problem);
      }
    };
    guarded(() => {
      const route = routeOf(request.method, request.url);
      if (GET_ROUTES.has(route)) {
        answerGet(route, response);
        return;
      }
      const body = (json: string): void => {
        if (route === '/tokenize') sendJson(response, 200, tokenizeJson(json, options.model, vocabulary));
        else if (route === '/detokenize') sendJson(response, 200, detokenizeJson(json, options.model, vocabulary));
        else {
          const api = route === '/v1/chat/completions' ? 'chat' : 'completions';
          serveCompletion(service, api, json, received, request, response, nextNumber);
        }
      };
      readBody(
        request,
        (json) => guarded(() => body(json)),
        (problem) => sendProblem(response, problem),
      );
    });
  };

  const answerGet = (route: Route, response: ServerResponse): void => {
    switch (route) {
      case '/v1/models':
        sendJson(response, 200, modelsJson(options.model, started));
        return;
      case '/version':
        sendJson(response, 200, JSON.stringify({ version: SURFACE_VERSION }));
        return;
      case '/load':
        sendJson(response, 200, JSON.stringify({ server_load: service.open }));
        return;
      case '/metrics':
        send(response, 200, PROMETHEUS_CONTENT_TYPE, text());
        return;
      default:
        send(response, 200, 'text/plain; charset=utf-8', ''); // health, ping
    }
  };

  const server = createServer(
    {
      noDelay: true,
      keepAliveTimeout: KEEP_ALIVE_MS,
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
    },
    handle,
  );
  try {
    await listen(server, options.host ?? '127.0.0.1', options.port ?? 0);
  } catch (error) {
    service.stamps?.close();
    throw error;
  }
  const address = server.address() as AddressInfo;
  const shownHost = address.family === 'IPv6' ? `[${address.address}]` : address.address;
  let closing: Promise<void> | undefined;
  return {
    url: `http://${shownHost}:${address.port}`,
    host: address.address,
    port: address.port,
    about: served.about,
    lateness: () => service.lateness.read(),
    open: () => service.open,
    requests: () => requests,
    faults: () => service.metrics.faults,
    metricsText: text,
    stampsFailure: () => service.stamps?.failure,
    close: (grace = 0) => {
      closing ??= shut(server, grace).then(async () => {
        await served.engine.close();
        service.stamps?.close();
      });
      if (grace === 0) server.closeAllConnections(); // a second, impatient call
      return closing;
    },
  };
}

const GET_ROUTES: ReadonlySet<Route> = new Set(['/v1/models', '/health', '/ping', '/version', '/load', '/metrics']);

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(listenError(error, host, port)));
    server.listen({ host, port, backlog: 4096 }, () => {
      server.removeAllListeners('error');
      resolve();
    });
  });
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number): InputError {
  const where = `${host}:${port}`;
  switch (error.code) {
    case 'EADDRINUSE':
      return new InputError(`--port ${port}: something listens on ${where} already; choose another, or 0 for any`);
    case 'EACCES':
      return new InputError(`--port ${port}: not allowed to listen on ${where}; choose one above 1023, or 0 for any`);
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new InputError(`--host ${host}: not an address of this machine; 127.0.0.1 always is`);
    default:
      return new InputError(`cannot listen on ${where}: ${messageOf(error)}`);
  }
}

function shut(server: Server, grace: Millis): Promise<void> {
  return new Promise((resolve) => {
    const force = setTimeout(() => server.closeAllConnections(), grace);
    server.close(() => {
      clearTimeout(force);
      resolve();
    });
    server.closeIdleConnections();
  });
}
