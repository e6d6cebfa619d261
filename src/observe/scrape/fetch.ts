/** One scrape over HTTP: bounded in time and size, no redirect followed, credentials never in what is told. */
import { InputError, messageOf, oneLine } from '../../base/errors.ts';

export interface Target {
  readonly url: string;
  /** As it is shown and kept: host, port, and the path where it is not /metrics. */
  readonly name: string;
}

/** `host:8000`, `http://host:8000` and full URLs; without a path, /metrics. @throws InputError */
export function targetOf(text: string): Target {
  let url: URL;
  try {
    url = new URL(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`);
  } catch (error) {
    throw new InputError(`scrape: '${oneLine(text, 80)}' is no URL; write http://host:8000/metrics`, { cause: error });
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new InputError(`scrape: ${oneLine(url.protocol)} is not scraped; write http://host:8000/metrics`);
  }
  if (url.username !== '' || url.password !== '') {
    throw new InputError(
      'scrape: a URL may hold no credentials; put a bearer token in the environment as GOODPUT_SCRAPE_TOKEN',
    );
  }
  if (url.pathname === '/' && url.search === '') url.pathname = '/metrics';
  url.hash = '';
  return { url: url.href, name: `${url.host}${url.pathname === '/metrics' ? '' : url.pathname}` };
}

export interface FetchOptions {
  /** Milliseconds for the whole of it. */
  readonly timeout: number;
  readonly token?: string;
  /** Decoded bytes. */
  readonly maxBytes?: number;
  readonly signal?: AbortSignal;
}

export const MOST_BODY = 64 * 1024 * 1024;

/** @throws Error saying why, in one line. */
export async function scrapeOnce(target: Target, options: FetchOptions): Promise<string> {
  const { timeout, token, maxBytes = MOST_BODY } = options;
  const late = AbortSignal.timeout(timeout);
  const signal = options.signal === undefined ? late : AbortSignal.any([late, options.signal]);
  try {
    const response = await fetch(target.url, {
      signal,
      redirect: 'manual',
      headers: {
        accept: 'text/plain;version=0.0.4;q=1,application/openmetrics-text;version=1.0.0;q=0.8,*/*;q=0.1',
        'user-agent': 'goodput-scrape',
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
    });
    if (response.status !== 200) {
      await response.body?.cancel();
      const hint =
        response.status === 401 || response.status === 403
          ? '; put its token in GOODPUT_SCRAPE_TOKEN'
          : response.status >= 300 && response.status < 400
            ? '; redirects are not followed, name the place itself'
            : response.status === 404
              ? '; check the path (trtllm-serve: /prometheus/metrics) and that metrics are enabled'
              : '';
      throw new Error(`HTTP ${response.status}${hint}`);
    }
    const chunks: Uint8Array[] = [];
    let size = 0;
    if (response.body !== null) {
      for await (const chunk of response.body) {
        size += chunk.length;
        if (size > maxBytes) throw new Error(`the body is larger than ${maxBytes / 1024 / 1024} MiB`);
        chunks.push(chunk);
      }
    }
    return Buffer.concat(chunks).toString('utf8');
  } catch (error) {
    if (late.aborted) throw new Error(`no complete answer within ${timeout / 1000} s`, { cause: error });
    throw new Error(reasonOf(error), { cause: error });
  }
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const code = (cause as NodeJS.ErrnoException).code;
  if (code === 'ECONNREFUSED') return 'connection refused';
  if (code === 'ENOTFOUND') return 'the host is not known';
  return messageOf(cause);
}
