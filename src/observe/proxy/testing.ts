/** For tests: raw sockets on both sides of a proxy, so that every byte can be seen. No test framework in here. */

import type { AddressInfo } from 'node:net';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { contractOf } from '../../core/contract.ts';
import type { RequestRecord } from '../../core/record.ts';
import type { FinalOperation } from '../cohorts/index.ts';
import type { ProxyOptions } from './options.ts';
import { type RunningProxy, startProxy } from './proxy.ts';
import { upstreamTargets } from './targets.ts';

export interface Origin {
  readonly url: string;
  readonly sockets: Socket[];
  close(): Promise<void>;
}

/** A server of plain sockets: `serve` is handed each. */
export function origin(serve: (socket: Socket) => void): Promise<Origin> {
  const sockets: Socket[] = [];
  const server: Server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
    serve(socket);
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      resolve({
        url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
        sockets,
        close: () =>
          new Promise((done) => {
            for (const socket of sockets) socket.destroy();
            server.close(() => done());
          }),
      });
    });
  });
}

/** Calls `each` with every whole request: its head, and its body by content-length or chunks. */
export function requests(socket: Socket, each: (head: string, body: string) => void): void {
  let all = '';
  socket.on('data', (bytes) => {
    all += bytes.toString('latin1');
    for (;;) {
      const end = all.indexOf('\r\n\r\n');
      if (end < 0) return;
      const head = all.slice(0, end);
      let size = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0);
      if (/^transfer-encoding: chunked/im.test(head)) {
        const last = /\r\n0\r\n(?:[^\r\n]+\r\n)*\r\n/.exec(all.slice(end + 2));
        if (last === null) return;
        size = last.index + last[0].length - 2;
      }
      if (all.length < end + 4 + size) return;
      const body = all.slice(end + 4, end + 4 + size);
      all = all.slice(end + 4 + size);
      each(head, body);
    }
  });
}

export interface Client {
  readonly socket: Socket;
  /** All bytes received so far, as latin1. */
  readonly text: string;
  send(text: string): void;
  /** Resolves once what came matches. */
  said(pattern: RegExp): Promise<string>;
  /** Resolves with all bytes once the other side has closed; `reset` when it did so rudely. */
  closed: Promise<{ text: string; reset: boolean }>;
}

export function client(url: string): Promise<Client> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  let text = '';
  let reset = false;
  let gone = false;
  const looks = new Set<() => void>();
  const heard = (): void => {
    for (const look of [...looks]) look();
  };
  socket.on('data', (bytes) => {
    text += bytes.toString('latin1');
    heard();
  });
  const closed = new Promise<{ text: string; reset: boolean }>((resolve) => {
    socket.on('error', () => {
      reset = true;
    });
    socket.once('close', () => {
      gone = true;
      heard();
      resolve({ text, reset });
    });
  });
  return new Promise((resolve) => {
    socket.once('connect', () =>
      resolve({
        socket,
        get text() {
          return text;
        },
        send: (data) => void socket.write(data, 'latin1'),
        said: (pattern) =>
          new Promise((found, fail) => {
            const look = (): void => {
              if (!pattern.test(text) && !gone) return;
              looks.delete(look);
              if (pattern.test(text)) found(text);
              else fail(new Error(`closed without ${pattern}: ${text}`));
            };
            looks.add(look);
            look();
          }),
        closed,
      }),
    );
  });
}

export interface Watched {
  readonly proxy: RunningProxy;
  readonly records: RequestRecord[];
  readonly finals: FinalOperation[];
  /** Resolves with the `n`-th final operation (from 1). */
  final(n: number): Promise<FinalOperation>;
}

export async function watchedProxy(upstream: string, options: Partial<ProxyOptions> = {}): Promise<Watched> {
  const records: RequestRecord[] = [];
  const finals: FinalOperation[] = [];
  const waiting = new Set<() => void>();
  const epoch = performance.now();
  const proxy = await startProxy(
    {
      upstreams: upstreamTargets(upstream),
      host: '127.0.0.1',
      port: 0,
      contract: contractOf({ ttft: 5000 }, { deadline: 30_000 }),
      listeners: [
        {
          final: (operation) => {
            finals.push(operation);
            for (const look of [...waiting]) look();
          },
        },
      ],
      ...options,
    },
    {
      now: () => performance.now() - epoch,
      epochWall: Date.now(),
      record: (record) => void records.push(record),
      recorded: () => ({ written: records.length, pending: 0, dropped: 0, problem: undefined }),
    },
  );
  return {
    proxy,
    records,
    finals,
    final: (n) =>
      new Promise((resolve) => {
        const look = (): void => {
          const found = finals[n - 1];
          if (found === undefined) return;
          waiting.delete(look);
          resolve(found);
        };
        waiting.add(look);
        look();
      }),
  };
}

const BODY = '{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}';

/** A streaming chat request. */
export function chat(headers = '', body = BODY): string {
  return `POST /v1/chat/completions HTTP/1.1\r\nhost: proxy.test\r\ncontent-type: application/json\r\n${headers}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

export const token = (text: string): string =>
  `data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":${JSON.stringify(text)}},"finish_reason":null}]}\n\n`;
export const FINISH =
  'data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n';
export const DONE = 'data: [DONE]\n\n';

export const chunk = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
export const LAST_CHUNK = '0\r\n\r\n';
export const STREAM_HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n';
