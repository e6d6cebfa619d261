import { readFileSync } from 'node:fs';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { brotliCompressSync, constants, createGzip, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { contractOf } from '../../core/contract.ts';
import { isLoopback } from './admin.ts';
import { upstreamTargets } from './targets.ts';
import {
  chat,
  chunk,
  client,
  DONE,
  FINISH,
  LAST_CHUNK,
  origin,
  requests,
  STREAM_HEAD,
  token,
  watchedProxy,
} from './testing.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function through(
  serve: (socket: Socket, head: string, body: string) => void,
  options: Parameters<typeof watchedProxy>[1] = {},
) {
  const server = await origin((socket) => requests(socket, (head, body) => serve(socket, head, body)));
  closers.push(server.close);
  const watched = await watchedProxy(server.url, options);
  closers.push(() => watched.proxy.close());
  const connect = async () => {
    const c = await client(watched.proxy.url);
    closers.push(async () => void c.socket.destroy());
    return c;
  };
  return { ...watched, connect };
}

const STREAM = [token('Hello'), token(' world'), FINISH, DONE];
const framed = (bytes: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);
const headOf = (coding: string): string => STREAM_HEAD.replace('\r\n\r\n', `\r\ncontent-encoding: ${coding}\r\n\r\n`);

/** Each event its own flushed piece of one gzip stream. */
async function gzipped(events: readonly string[]): Promise<Buffer[]> {
  const gzip = createGzip();
  const pieces: Buffer[] = [];
  let held: Buffer[] = [];
  gzip.on('data', (bytes: Buffer) => void held.push(bytes));
  for (const event of events) {
    gzip.write(event);
    await new Promise<void>((done) => gzip.flush(constants.Z_SYNC_FLUSH, done));
    pieces.push(Buffer.concat(held));
    held = [];
  }
  await new Promise<void>((done) => {
    gzip.once('end', done);
    gzip.end();
  });
  pieces.push(Buffer.concat(held));
  return pieces.filter((piece) => piece.length > 0);
}

describe('compressed streams', () => {
  it('pass unchanged and are read beside the path', async () => {
    const pieces = await gzipped(STREAM);
    const { connect, final } = await through((socket) => {
      socket.write(headOf('gzip'));
      for (const piece of pieces) socket.write(framed(piece));
      socket.write(LAST_CHUNK);
    });
    const c = await connect();
    c.send(chat('accept-encoding: gzip\r\n'));
    const text = await c.said(/0\r\n\r\n$/);
    expect(text.slice(text.indexOf('\r\n\r\n') + 4)).toBe(
      pieces.map((piece) => framed(piece).toString('latin1')).join('') + LAST_CHUNK,
    );
    const { record } = await final(1);
    expect([record.outcome, record.timeline.length]).toEqual(['completed', 2]);

    // Without the compressor's own end the answer is whole all the same.
    const cut = await through((socket) => {
      socket.write(headOf('gzip'));
      for (const piece of pieces.slice(0, -1)) socket.write(framed(piece));
      socket.write(LAST_CHUNK);
    });
    const e = await cut.connect();
    e.send(chat());
    await e.said(/0\r\n\r\n$/);
    expect((await cut.final(1)).record.outcome).toBe('completed');

    const br = brotliCompressSync(STREAM.join(''));
    const second = await through((socket) => {
      socket.write(headOf('br'));
      socket.write(Buffer.concat([framed(br), Buffer.from(LAST_CHUNK)]));
    });
    const d = await second.connect();
    d.send(chat());
    await d.said(/0\r\n\r\n$/);
    expect((await second.final(1)).record.outcome).toBe('completed');
  });

  it('that cannot be read pass too, and are undecided with the reason', async () => {
    const damaged = gzipSync(STREAM.join(''));
    damaged.fill(7, 12, 40);
    for (const [coding, bytes] of [
      ['zstd-of-another-kind', Buffer.from('anything')],
      ['gzip', damaged],
    ] as const) {
      const { connect, final, proxy } = await through((socket) => {
        socket.write(headOf(coding));
        socket.write(Buffer.concat([framed(bytes), Buffer.from(LAST_CHUNK)]));
      });
      const c = await connect();
      c.send(chat());
      const text = await c.said(/0\r\n\r\n$/);
      expect(text.endsWith(framed(bytes).toString('latin1') + LAST_CHUNK)).toBe(true);
      const { verdict, record } = await final(1);
      expect([verdict.class, record.reason]).toEqual(['undecided', 'unreadable']);
      expect(Object.keys(proxy.live().records.unreadable)).toHaveLength(1);
    }
  });
});

describe('upstreams over TLS', () => {
  const fixture = (name: string): string =>
    new URL(`../../../test/conformance/fixtures/localhost.${name}.pem`, import.meta.url).pathname;

  it('are spoken to where their certificate is trusted, and not otherwise', async () => {
    const server = createTlsServer(
      { cert: readFileSync(fixture('crt')), key: readFileSync(fixture('key')) },
      (_, res) => {
        res.writeHead(200, { 'content-type': 'text/event-stream' });
        res.end(STREAM.join(''));
      },
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closers.push(async () => {
      server.closeAllConnections();
      server.close();
    });
    const url = `https://localhost:${(server.address() as AddressInfo).port}`;
    for (const [trust, status] of [
      [{ cacert: fixture('crt') }, 200],
      [{ insecure: true }, 200],
      [{}, 502],
    ] as const) {
      const { proxy, final } = await watchedProxy(url, { upstreams: upstreamTargets(url, trust) });
      closers.push(() => proxy.close());
      const c = await client(proxy.url);
      c.send(chat('connection: close\r\n'));
      const { text } = await c.closed;
      expect(text).toMatch(new RegExp(`^HTTP/1\\.1 ${status}`));
      expect((await final(1)).record.outcome).toBe(status === 200 ? 'completed' : 'failed');
    }
  });
});

describe('who asks', () => {
  it('is told apart by headers up to a bound, and judged by the contract of the class', async () => {
    const strict = contractOf({ ttft: 0.001 }, { deadline: 30_000 });
    const { connect, finals, final, proxy } = await through(
      (socket) => void socket.write(STREAM_HEAD + STREAM.map(chunk).join('') + LAST_CHUNK),
      { tenantHeader: 'X-Tenant', maxClasses: 3, maxTenants: 2, classContracts: { strict } },
    );
    const c = await connect();
    for (const [i, name] of ['strict', 'a', 'b', 'c', ''].entries()) {
      c.send(chat(`x-goodput-class: ${name}\r\nx-tenant: t${i}\r\n`));
      await final(i + 1);
    }
    expect(finals.map((f) => [f.class, f.tenant, f.verdict.class])).toEqual([
      ['strict', 't0', 'late'],
      ['a', 't1', 'good'],
      ['other', 'other', 'good'],
      ['other', 'other', 'good'],
      ['default', 'other', 'good'],
    ]);
    expect(Object.keys(proxy.live().contracts).sort()).toEqual(['a', 'default', 'other', 'strict']);
  });
});

it('answers at its admin port only those who ask by a loopback name', async () => {
  const { proxy } = await through(() => {}, { admin: { host: '127.0.0.1', port: 0 } });
  const ask = async (host: string): Promise<string> => {
    const c = await client(proxy.adminUrl as string);
    c.send(`GET /live HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
    return (await c.closed).text;
  };
  expect(await ask('127.0.0.1:9464')).toMatch(/^HTTP\/1\.1 200[\s\S]*goodput\.live\/1/);
  expect(await ask('localhost')).toMatch(/^HTTP\/1\.1 200/);
  expect(await ask('evil.example')).toMatch(/^HTTP\/1\.1 403/);
  expect(['127.0.0.1', '::1', '::ffff:127.0.0.1', '10.0.0.1', undefined].map(isLoopback)).toEqual([
    true,
    true,
    true,
    false,
    false,
  ]);
});

describe('slow and endless peers', () => {
  it('closes on a client that never ends its head', async () => {
    const { connect } = await through(() => {}, { headersTimeout: 200 });
    const c = await connect();
    c.send('POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-slow: ');
    expect((await c.closed).text).toMatch(/^HTTP\/1\.1 408/);
  });

  it('holds the upstream back while the client does not read, and loses nothing', async () => {
    const piece = chunk('x'.repeat(65_536));
    const pieces = 1024;
    let sent = 0;
    let stuck = (): void => {};
    const { connect, final } = await through((socket) => {
      socket.write(STREAM_HEAD);
      const more = (): void => {
        while (sent < pieces) {
          sent++;
          if (socket.write(piece)) continue;
          const wait = setTimeout(() => stuck(), 500);
          socket.once('drain', () => {
            clearTimeout(wait);
            more();
          });
          return;
        }
        socket.write(chunk(`\n\n${FINISH}`) + LAST_CHUNK);
      };
      more();
    });
    const c = await connect();
    const isStuck = new Promise<void>((resolve) => {
      stuck = resolve;
    });
    c.socket.removeAllListeners('data');
    c.socket.pause();
    c.send(chat('connection: close\r\n'));
    await isStuck;
    expect(sent).toBeLessThan(pieces);
    let bytes = 0;
    c.socket.on('data', (b) => {
      bytes += b.length;
    });
    c.socket.resume();
    await c.closed;
    expect(bytes).toBeGreaterThan(pieces * piece.length);
    expect((await final(1)).record.passage?.stalled).toBeGreaterThan(0);
  });

  it('passes a long request body on whole', async () => {
    let got = 0;
    const { connect } = await through((socket, _head, body) => {
      got = body.length;
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
    });
    const c = await connect();
    const body = `{"stream":true,"messages":"${'y'.repeat(6 * 1024 * 1024)}"}`;
    c.send(chat('', body));
    await c.said(/ok$/);
    expect(got).toBe(body.length);
  });
});

it('passes any bytes on, whatever they are', async () => {
  let next = '';
  const { connect, finals, proxy } = await through((socket) => void socket.write(next, 'latin1'));
  const line = fc.oneof(
    fc.string({ unit: 'binary-ascii', maxLength: 60 }),
    fc.constantFrom(
      'data: ',
      'data: {"choices":[{"delta":{"content":',
      'event: error',
      '\n',
      '\r',
      ': ping',
      '[DONE]',
      '{',
      token('a'),
    ),
  );
  const c = await connect();
  let seen = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(line, { minLength: 1, maxLength: 6 }), { maxLength: 6 }), async (chunks) => {
      const body = chunks.map((parts) => chunk(parts.join('') || ' ')).join('') + LAST_CHUNK;
      next = STREAM_HEAD + body;
      c.send(chat());
      const from = seen;
      await until(() => c.text.length > from && c.text.slice(from).endsWith(body));
      seen = c.text.length;
    }),
    { numRuns: 60 },
  );
  await until(() => finals.length > 0 && proxy.live().total.pending === 0);
  expect(proxy.live().total.offered).toBe(finals.length);

  async function until(is: () => boolean): Promise<void> {
    while (!is()) await new Promise((resolve) => setImmediate(resolve));
  }
});
