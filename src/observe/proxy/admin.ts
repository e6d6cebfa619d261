/** The admin port: `/healthz`, `/metrics`, `/live`. To this machine alone, unless opened to others. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { PROMETHEUS_CONTENT_TYPE } from '../../wire/index.ts';
import type { LiveSnapshot, SnapshotOptions } from '../cohorts/index.ts';
import { listen } from './listen.ts';
import type { AdminOptions } from './options.ts';

export interface AdminSource {
  live(options: SnapshotOptions): LiveSnapshot;
  metricsText(): string;
}

export interface AdminServer {
  readonly url: string;
  close(): Promise<void>;
}

/** @throws InputError when it cannot listen. */
export async function adminServer(options: AdminOptions, source: AdminSource): Promise<AdminServer> {
  const server = createServer({ headersTimeout: 5000, requestTimeout: 5000 }, (req, res) => {
    try {
      serve(options, source, req, res);
    } catch {
      send(res, 500, 'text/plain; charset=utf-8', 'internal error\n');
    }
  });
  const url = await listen(server, options.host, options.port, '--admin');
  return {
    url,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function serve(options: AdminOptions, source: AdminSource, req: IncomingMessage, res: ServerResponse): void {
  const plain = 'text/plain; charset=utf-8';
  if (!options.open && !isLoopback(req.socket.remoteAddress)) {
    send(res, 403, plain, 'the admin port answers this machine alone\n');
    return;
  }
  // A page of another site, opened in a browser on this machine, must not read it by a name that points here.
  if (!options.open && !isLocalName(req.headers.host)) {
    send(res, 403, plain, 'ask by a loopback address\n');
    return;
  }
  if (req.method !== 'GET' && req.method !== 'HEAD') {
    res.setHeader('allow', 'GET, HEAD');
    send(res, 405, plain, 'GET only\n');
    return;
  }
  const url = new URL(req.url ?? '/', 'http://admin');
  switch (url.pathname) {
    case '/healthz':
      send(res, 200, plain, 'ok\n');
      return;
    case '/metrics':
      send(res, 200, PROMETHEUS_CONTENT_TYPE, source.metricsText());
      return;
    case '/live': {
      const windows = url.searchParams.get('windows');
      const n = windows === null ? 12 : windows === 'all' ? undefined : Number(windows);
      if (n !== undefined && !(Number.isInteger(n) && n >= 0)) {
        send(res, 400, plain, 'windows: a whole number, or all\n');
        return;
      }
      const sketches = url.searchParams.get('sketches') === '1';
      const live = source.live({ ...(n !== undefined && { windows: n }), sketches });
      send(res, 200, 'application/json', `${JSON.stringify(live)}\n`);
      return;
    }
    default:
      send(res, 404, plain, 'there is /healthz, /metrics and /live\n');
  }
}

function send(res: ServerResponse, status: number, type: string, body: string): void {
  res.writeHead(status, {
    'content-type': type,
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  });
  res.end(body);
}

export function isLoopback(address: string | undefined): boolean {
  if (address === undefined) return false;
  return address === '::1' || address.startsWith('127.') || address.startsWith('::ffff:127.');
}

function isLocalName(host: string | undefined): boolean {
  const name = (host ?? '').replace(/:\d+$/, '').toLowerCase();
  return name === '' || name === 'localhost' || name === '[::1]' || /^127(\.\d{1,3}){3}$/.test(name);
}
