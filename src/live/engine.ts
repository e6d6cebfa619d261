/** The Engine over HTTP. */
import type { Cancel, Clock } from '../core/clock.ts';
import type { Engine, Observer } from '../core/engine.ts';
import type { RequestSpec } from '../core/request.ts';
import { requestBody, streamDecoder } from '../wire/index.ts';
import { Attempt, type Exchange } from './attempt.ts';
import { dialer } from './dial.ts';
import { EvidenceCounters, type LiveEvidence } from './evidence.ts';
import { failureOf } from './failure.ts';
import { requestHeaders } from './headers.ts';
import { Lanes } from './lanes.ts';
import type { LiveOptions } from './options.ts';
import { type HttpProxy, proxyFor } from './proxy.ts';
import { type Redactor, redactor, secretsOfHeaders, secretsOfUrl } from './secrets.ts';
import { type Target, targetOf } from './target.ts';

export interface LiveEngine extends Engine {
  readonly dialect: string;
  /** Why this dialect, for the user. */
  readonly why: string;
  /**
   * Opens connections beforehand, so that the first requests do not pay for it. Gives how many of `count` are open, and
   * what stopped the rest.
   */
  warm(count: number): Promise<{ readonly open: number; readonly problem?: string }>;
  /** What the transport showed so far. */
  evidence(): LiveEvidence;
}

const MAX_RESPONSE_BYTES = 256 * 1024 * 1024;

/** @throws InputError when the options cannot be used: URL, dialect, headers, proxy, authorities' file, no model. */
export function liveEngine(options: LiveOptions, clock: Clock): LiveEngine {
  const place = placeOf(options);
  const { target, proxy, redact } = place;
  const model = options.model ?? '';
  const headers = requestHeaders(target, options);
  if (proxy?.authorization !== undefined && target.origin.protocol === 'http:') {
    headers['proxy-authorization'] = proxy.authorization;
  }
  const dial = dialer(target.origin, proxy, options, options.connectTimeout ?? 0);
  const lanes = new Lanes(target.origin.origin, dial, clock, {
    keepAlive: options.keepAlive ?? 4000,
    maxResponseBytes: options.maxResponseBytes ?? MAX_RESPONSE_BYTES,
  });
  const evidence = new EvidenceCounters();
  const exchange: Exchange = {
    clock,
    lanes,
    evidence,
    redact,
    host: target.origin.host,
    secure: target.origin.protocol === 'https:',
    open: new Set(),
  };
  // Through a plain proxy an http: target is asked for by its whole URL.
  const prefix = proxy !== undefined && target.origin.protocol === 'http:' ? target.origin.origin : '';
  const paths = { stream: prefix + target.path(model, true), whole: prefix + target.path(model, false) };
  const idPrefix = options.idPrefix ?? 'op-';
  const decoderFor = (contentType: string) => streamDecoder(target.dialect, contentType);
  let closing: Promise<void> | undefined;

  return {
    name: target.shown,
    dialect: target.dialect.name,
    why: target.why,
    submit(spec: RequestSpec, to: Observer): Cancel {
      const body = requestBody(target.dialect, spec, { ...options.body, model });
      const request = {
        method: 'POST' as const,
        path: spec.stream ? paths.stream : paths.whole,
        headers: { ...headers, 'x-request-id': `${idPrefix}${spec.operation}-${spec.attempt}` },
        body: Buffer.from(JSON.stringify(body)),
      };
      const attempt = new Attempt(exchange, to, request, decoderFor);
      queueMicrotask(() => (closing === undefined ? attempt.start() : attempt.fail(CLOSED)));
      return () => attempt.cancel();
    },
    async warm(count) {
      const { open, error } = await lanes.warm(count);
      if (error === undefined) return { open };
      const at = { host: exchange.host, secure: exchange.secure, phase: 'connecting', untouchedReuse: false } as const;
      return { open, problem: failureOf(error, at, redact).detail };
    },
    evidence: () => ({ ...evidence.snapshot(), connections: lanes.opened }),
    close() {
      closing ??= (async () => {
        for (const attempt of [...exchange.open]) attempt.fail(CLOSED);
        await lanes.close();
      })();
      return closing;
    },
  };
}

const CLOSED = { kind: 'failed', reason: 'engine', detail: 'the engine was closed' } as const;

/** What the engine and the probe both start from. */
export function placeOf(options: LiveOptions): { target: Target; proxy: HttpProxy | undefined; redact: Redactor } {
  const target = targetOf(options.url, options.dialect);
  const proxy = proxyFor(target.origin, options.env ?? {});
  const key = options.key === undefined ? [] : [options.key];
  const user = target.user === undefined ? [] : [target.user.password];
  const ofProxy = proxy === undefined ? [] : [...secretsOfUrl(proxy.url), proxy.authorization ?? ''];
  const ofUrl = secretsOfUrl(new URL(target.path('', true), target.origin));
  return {
    target,
    proxy,
    redact: redactor([...key, ...user, ...ofUrl, ...ofProxy, ...secretsOfHeaders(options.headers ?? {})]),
  };
}
