/** Small real servers on loopback for the tests of the live engine: plain, TLS, raw TCP, and a proxy. */
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';

export interface TestServer {
  readonly url: string;
  readonly port: number;
  /** Connections accepted so far. */
  readonly accepted: () => number;
  /** Connections open now. */
  readonly open: () => ReadonlySet<Socket>;
  close(): Promise<void>;
}

const fixture = (name: string): string => fileURLToPath(new URL(`./fixtures/${name}`, import.meta.url));
/** A certificate for localhost, 127.0.0.1 and api.goodput.test, signed by itself, of no use to anyone but these tests. */
export const CERTIFICATE_FILE = fixture('localhost.crt.pem');
const KEY_FILE = fixture('localhost.key.pem');

export async function serve(handler: RequestListener, tls = false): Promise<TestServer> {
  const server = tls
    ? createTlsServer({ key: readFileSync(KEY_FILE), cert: readFileSync(CERTIFICATE_FILE) }, handler)
    : createServer(handler);
  return listening(server, tls ? 'https' : 'http');
}

/** A server that speaks whatever `onConnection` says. */
export async function serveRaw(onConnection: (socket: Socket) => void): Promise<TestServer> {
  const server = createTcpServer((socket) => {
    socket.on('error', () => {});
    onConnection(socket);
  });
  return listening(server, 'http');
}

/**
 * An HTTP proxy that tunnels by CONNECT and forwards whole URLs, whatever their host, to loopback: so tests can name hosts
 * that are not. What it was asked is pushed to `seen`.
 */
export async function serveProxy(seen: string[], refuse?: number): Promise<TestServer> {
  const server = createServer((req, res) => {
    seen.push(`${req.method} ${req.url} ${req.headers['proxy-authorization'] ?? ''}`.trim());
    if (refuse !== undefined) return void res.writeHead(refuse).end();
    const target = new URL(req.url ?? '');
    const upstream = connect(Number(target.port), '127.0.0.1', () => {
      upstream.write(`${req.method} ${target.pathname} HTTP/1.1\r\nhost: ${target.host}\r\nconnection: close\r\n`);
      upstream.write(`content-type: application/json\r\ncontent-length: ${req.headers['content-length'] ?? 0}\r\n\r\n`);
      req.pipe(upstream, { end: false });
    });
    upstream.pipe(req.socket);
    upstream.on('error', () => res.destroy());
  });
  server.on('connect', (req, socket, head) => {
    seen.push(`CONNECT ${req.url} ${req.headers['proxy-authorization'] ?? ''}`.trim());
    if (refuse !== undefined) return void socket.end(`HTTP/1.1 ${refuse} No\r\ncontent-length: 0\r\n\r\n`);
    const upstream = connect(Number(req.url?.split(':')[1]), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      if (head.length > 0) upstream.write(head);
      socket.pipe(upstream).pipe(socket);
    });
    upstream.on('error', () => socket.destroy());
    socket.on('error', () => upstream.destroy());
  });
  return listening(server, 'http');
}

async function listening(server: Server, scheme: string): Promise<TestServer> {
  const sockets = new Set<Socket>();
  let accepted = 0;
  server.on('connection', (socket: Socket) => {
    accepted++;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `${scheme}://127.0.0.1:${port}`,
    port,
    accepted: () => accepted,
    open: () => sockets,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

/** One server-sent chunk of an OpenAI-style chat. */
export function chatChunk(delta: object, finish: string | null = null): string {
  const choices = [{ index: 0, delta, finish_reason: finish }];
  return `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices })}\n\n`;
}

export const SSE_HEADERS = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' };

/** The whole body of a request. */
export async function bodyOf(req: IncomingMessage): Promise<string> {
  let body = '';
  for await (const part of req) body += part;
  return body;
}

/** Answers with a role chunk, as many tokens as the request's `max_tokens`, a finish and `[DONE]`, a write a turn. */
export async function answerChat(req: IncomingMessage, res: ServerResponse): Promise<void> {
  const asked = JSON.parse(await bodyOf(req)) as { max_tokens?: number; max_completion_tokens?: number };
  const tokens = asked.max_completion_tokens ?? asked.max_tokens ?? 1;
  res.writeHead(200, SSE_HEADERS);
  const parts = [
    chatChunk({ role: 'assistant', content: '' }),
    ...Array.from({ length: tokens }, (_, i) => chatChunk({ content: ` t${i}` })),
    chatChunk({}, 'stop'),
    'data: [DONE]\n\n',
  ];
  for (const part of parts) {
    if (res.destroyed) return;
    res.write(part);
    await new Promise((resolve) => setImmediate(resolve));
  }
  res.end();
}
