/**
 * `fetch` that measures: the clock starts where the caller asks, so queues in the client, DNS, TLS and retries of an SDK
 * all count. Works wherever there is a `fetch` (Node, Deno, browsers, workers); it changes neither request nor response.
 */
import { messageOf } from '../../base/errors.ts';
import type { Millis } from '../../base/units.ts';
import { type Contract, contractFor } from '../../core/contract.ts';
import type { Ending } from '../../core/engine.ts';
import type { RequestRecord } from '../../core/record.ts';
import type { StreamEvent } from '../../core/stream.ts';
import { errorIn } from '../../wire/errors.ts';
import { type DialectName, dialectOfPath, type StreamDecoder, streamDecoder } from '../../wire/index.ts';
import { isObject } from '../../wire/json.ts';
import {
  type Attempt,
  BoundedLabels,
  cleanDetail,
  LiveCohorts,
  type LiveSnapshot,
  type OperationListener,
  type OperationName,
  Operations,
  traceContext,
  withoutQuotes,
} from '../cohorts/index.ts';

/** Takes each attempt's record. A `Sink` of the library is one. */
export interface RecordSink {
  add(record: RequestRecord): void;
}

export interface MeasuredFetchOptions {
  /** What is wrapped, default the global `fetch`. */
  readonly fetch?: typeof fetch;
  /** The traffic class of a request, default `default`. At most 16 are told apart. */
  readonly classOf?: (request: { readonly url: string; readonly headers: Headers }) => string;
  /** Contracts of classes that have their own. */
  readonly classContracts?: Readonly<Record<string, Contract>>;
  /** Told of arrivals and of final, judged operations. */
  readonly listeners?: readonly OperationListener[];
  /** How long a failed operation waits for a retry, default 10 s. */
  readonly retryWindow?: Millis;
  /** A monotonic clock in ms, default `performance.now`. */
  readonly now?: () => Millis;
}

export interface MeasuredFetch {
  (input: string | URL | Request, init?: RequestInit): Promise<Response>;
  /** Live cohorts, as a proxy's `/live`. */
  live(): LiveSnapshot;
  /** Ends the watch: what is open is undecided. */
  close(): void;
}

const SWEEP: Millis = 250;

/** @param sink takes each attempt's record; a throwing sink never touches the traffic. */
export function measuredFetch(contract: Contract, sink: RecordSink, options: MeasuredFetchOptions = {}): MeasuredFetch {
  const call = options.fetch ?? globalThis.fetch;
  const host = options.now ?? (() => performance.now());
  const epoch = host();
  const now = (): Millis => host() - epoch;
  const of = contractFor(contract, options.classContracts);
  const classes = new BoundedLabels(16, 'default', ['default', ...Object.keys(options.classContracts ?? {})]);
  const cohorts = new LiveCohorts({
    boundary: 'client',
    instance: 'client',
    epochWall: Date.now(),
    contractFor: of,
  });
  let lost = 0;
  const operations = new Operations({
    contractFor: of,
    listeners: [cohorts, ...(options.listeners ?? [])],
    record: (record) => {
      try {
        sink.add(record);
      } catch {
        lost++;
      }
    },
    ...(options.retryWindow !== undefined && { retryWindow: options.retryWindow }),
  });
  /** Looks at deadlines while something is open, and lets the process end otherwise. */
  let timer: ReturnType<typeof setTimeout> | undefined;
  const watch = (): void => {
    if (timer !== undefined || operations.inFlight.size === 0) return;
    timer = setTimeout(() => {
      timer = undefined;
      operations.sweep(now());
      watch();
    }, SWEEP);
    (timer as { unref?: () => void }).unref?.();
  };

  const measured = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const at = now();
    const begun = begin(at, input, init);
    if (begun === undefined) return call(input, init);
    const { attempt, dialect } = begun;
    watch();
    let response: Response;
    try {
      attempt.recorder.dispatched(now());
      response = await call(input, init);
    } catch (error) {
      const t = now();
      if (isAbort(error)) operations.left(attempt, t);
      else operations.ended(attempt, t, { kind: 'failed', reason: 'connect', detail: cleanDetail(causeOf(error)) });
      throw error;
    }
    return watched(response, new Watch(operations, attempt, dialect, now));
  };

  /** Undefined for what is no request of a known dialect: it passes unmeasured. */
  const begin = (at: Millis, input: string | URL | Request, init?: RequestInit) => {
    try {
      const request = input instanceof Request ? input : undefined;
      const url = request?.url ?? String(input);
      const method = init?.method ?? request?.method ?? 'GET';
      const dialect = method.toUpperCase() === 'POST' ? dialectOfPath(url) : undefined;
      if (dialect === undefined) return undefined;
      const headers = new Headers(init?.headers ?? request?.headers);
      const body = typeof init?.body === 'string' ? init.body : undefined;
      const retry = headers.get('x-stainless-retry-count');
      const name = nameOf(headers, retry, body);
      const trace = traceContext(headers.get('traceparent') ?? undefined);
      const attempt = operations.begin({
        at,
        class: classes.of(options.classOf?.({ url, headers })),
        tenant: '',
        ...(name && { name }),
        ...(retry === '0' && { first: true }),
        ...(trace && { trace }),
      });
      Object.assign(attempt.spec, factsOf(dialect, url, body));
      const id = headers.get('x-request-id');
      if (id !== null && /^[\x21-\x7e]{1,128}$/.test(id)) attempt.passage.requestId = id;
      if (trace) attempt.passage.traceId = trace.traceId;
      return { attempt, dialect };
    } catch {
      lost++;
      return undefined;
    }
  };

  return Object.assign(measured, {
    live: () =>
      cohorts.snapshot({
        now: now(),
        inFlight: operations.inFlight,
        queued: 0,
        upstreams: [],
        records: {
          written: 0,
          pending: 0,
          dropped: lost,
          problem: null,
          passed_through: 0,
          unreadable: {},
          listener_failures: operations.listenerFailures,
        },
      }),
    close: () => {
      clearTimeout(timer);
      operations.close(now());
    },
  });
}

/** One response beside its way to the caller. */
class Watch {
  readonly #operations: Operations;
  readonly #attempt: Attempt;
  readonly #dialect: DialectName;
  readonly #now: () => Millis;
  #decoder: StreamDecoder | undefined;
  #status = 0;
  #error = '';
  #at: Millis = 0;
  #events = 0;
  readonly #text = new TextDecoder();

  constructor(operations: Operations, attempt: Attempt, dialect: DialectName, now: () => Millis) {
    this.#operations = operations;
    this.#attempt = attempt;
    this.#dialect = dialect;
    this.#now = now;
  }

  head(response: Response): void {
    const t = this.#now();
    const { recorder, spec } = this.#attempt;
    this.#status = response.status;
    this.#guarded(() => {
      // `fetch` does not say when a request was written.
      recorder.headers(t, response.status);
      const type = response.headers.get('content-type') ?? '';
      if (/event-stream|ndjson/i.test(type)) spec.stream = true;
      if (response.ok) this.#decoder = streamDecoder(this.#dialect, type);
    });
  }

  read(bytes: Uint8Array): void {
    this.#at = this.#now();
    this.#events = 0;
    this.#guarded(() => {
      if (!this.#attempt.isOpen) return;
      if (this.#decoder) this.#decoder.push(bytes, this.#emit);
      else if (this.#error.length < 65_536) this.#error += this.#text.decode(bytes, { stream: true });
    });
  }

  ended(): void {
    const t = this.#now();
    this.#guarded(() => {
      if (!this.#attempt.isOpen) return;
      if (this.#decoder === undefined) {
        const detail = cleanDetail(messageIn(this.#error));
        this.#operations.ended(this.#attempt, t, { kind: 'http-error', status: this.#status, detail });
        return;
      }
      this.#at = t;
      this.#decoder.end(this.#emit);
      this.#operations.ended(this.#attempt, t, { kind: 'closed' });
    });
  }

  failed(error: unknown): void {
    const t = this.#now();
    const ending: Ending = { kind: 'failed', reason: 'reset', detail: cleanDetail(causeOf(error)) };
    this.#guarded(() => {
      if (isAbort(error)) this.#operations.left(this.#attempt, t);
      else this.#operations.ended(this.#attempt, t, ending);
    });
  }

  left(): void {
    this.#guarded(() => this.#operations.left(this.#attempt, this.#now()));
  }

  readonly #emit = (event: StreamEvent): void => {
    if (this.#attempt.isOpen) this.#attempt.recorder.event(this.#at, clean(event), this.#events++ > 0);
  };

  #guarded(run: () => void): void {
    try {
      run();
    } catch {
      if (this.#attempt.isOpen)
        this.#operations.lost(this.#attempt, this.#now(), 'unreadable', 'a defect in reading it');
    }
  }
}

/** The same response, its body watched as the caller reads it. */
function watched(response: Response, watch: Watch): Response {
  watch.head(response);
  if (response.body === null) {
    watch.ended();
    return response;
  }
  const reader = response.body.getReader();
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (done) {
            watch.ended();
            controller.close();
          } else {
            watch.read(value);
            controller.enqueue(value);
          }
        } catch (error) {
          watch.failed(error);
          controller.error(error);
        }
      },
      cancel(reason) {
        watch.left();
        return reader.cancel(reason);
      },
    },
    // One read ahead at most: back-pressure reaches the server as before.
    { highWaterMark: 1 },
  );
  const { status, statusText, headers, url, redirected, type } = response;
  const same = new Response(body, { status, statusText, headers });
  for (const [key, value] of Object.entries({ url, redirected, type })) Object.defineProperty(same, key, { value });
  return same;
}

/** `Idempotency-Key`; else, of an SDK that counts its retries, what is sent: the same text again is the same again. */
function nameOf(headers: Headers, retry: string | null, body: string | undefined): OperationName | undefined {
  const key = headers.get('idempotency-key');
  if (key !== null && key.length <= 256) return { by: 'idempotency-key', value: key };
  if (retry === null || body === undefined) return undefined;
  return { by: 'header', value: `${body.length} ${hash(body)}` };
}

/** FNV-1a over the code units, 2 × 32 bits: no prompt is kept to tell prompts apart. */
function hash(text: string): string {
  let a = 0x811c9dc5;
  let b = 0x01000193;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    a = Math.imul(a ^ c, 0x01000193);
    b = Math.imul(b ^ (c + i), 0x85ebca6b);
  }
  return `${(a >>> 0).toString(16)}${(b >>> 0).toString(16)}`;
}

function factsOf(dialect: DialectName, url: string, body: string | undefined) {
  const facts = {
    stream: dialect.startsWith('ollama.') || /streamGenerateContent|generate_stream/.test(url),
    choices: 1,
    outputTokens: 0,
  };
  if (body === undefined) return facts;
  let json: unknown;
  try {
    json = JSON.parse(body);
  } catch {
    return facts;
  }
  if (!isObject(json)) return facts;
  if (typeof json.stream === 'boolean') facts.stream = json.stream;
  if (typeof json.n === 'number' && Number.isInteger(json.n) && json.n > 0) facts.choices = Math.min(json.n, 65_535);
  const most = json.max_completion_tokens ?? json.max_tokens ?? json.max_output_tokens;
  if (typeof most === 'number' && most > 0) facts.outputTokens = Math.floor(most);
  return facts;
}

function messageIn(text: string): string {
  try {
    const json: unknown = JSON.parse(text);
    if (!isObject(json)) return '';
    return typeof json.detail === 'object' ? 'validation error' : (errorIn(json)?.message ?? '');
  } catch {
    return '';
  }
}

function clean(event: StreamEvent): StreamEvent {
  if (event.error === undefined && event.malformed === undefined) return event;
  return {
    ...event,
    ...(event.error && { error: { ...event.error, message: cleanDetail(event.error.message) } }),
    ...(event.malformed !== undefined && { malformed: withoutQuotes(event.malformed) }),
  };
}

const isAbort = (error: unknown): boolean => (error as { name?: unknown } | undefined)?.name === 'AbortError';

function causeOf(error: unknown): string {
  const cause = (error as { cause?: unknown } | undefined)?.cause;
  return messageOf(cause ?? error);
}
