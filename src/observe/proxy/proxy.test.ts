import { afterEach, describe, expect, it } from 'vitest';
import {
  chat,
  chunk,
  client,
  DONE,
  FINISH,
  LAST_CHUNK,
  type Origin,
  origin,
  requests,
  STREAM_HEAD,
  token,
  type Watched,
  watchedProxy,
} from './testing.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function served(
  answer: (write: (text: string) => void, head: string, body: string, socket: import('node:net').Socket) => void,
  options: Parameters<typeof watchedProxy>[1] = {},
): Promise<Watched & { server: Origin }> {
  const server = await origin((socket) =>
    requests(socket, (head, body) => answer((text) => void socket.write(text, 'latin1'), head, body, socket)),
  );
  closers.push(server.close);
  const watched = await watchedProxy(server.url, options);
  closers.push(() => watched.proxy.close());
  return { ...watched, server };
}

async function ask(url: string, text: string) {
  const c = await client(url);
  closers.push(async () => void c.socket.destroy());
  c.send(text);
  return c;
}

const STREAM = [token('Hello'), token(' world'), FINISH, DONE];
const WHOLE = STREAM.map(chunk).join('') + LAST_CHUNK;

describe('what passes through', () => {
  it('passes a stream on byte for byte, as it comes, and records it', async () => {
    let go = (_: string): void => {};
    const { proxy, final } = await served((write) => {
      go = write;
      write(STREAM_HEAD + chunk(token('Hello')));
    });
    const c = await ask(proxy.url, chat('x-request-id: r-1\r\n'));
    await c.said(/Hello/); // before the rest was sent
    go(chunk(token(' world')));
    await c.said(/ world/);
    go(chunk(FINISH) + chunk(DONE) + LAST_CHUNK);
    const text = await c.said(/0\r\n\r\n$/);
    expect(text.slice(text.indexOf('\r\n\r\n') + 4)).toBe(WHOLE);
    expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\ncontent-type: text\/event-stream\r\ntransfer-encoding: chunked\r\n/);
    const { record, verdict } = await final(1);
    expect(record.outcome).toBe('completed');
    expect(record.timeline.length).toBe(2);
    expect(verdict.class).toBe('good');
    expect(record.passage?.requestId).toBe('r-1');
    expect(record.passage?.firstWritten).toBeGreaterThanOrEqual(record.stamps.firstOutput as number);
    expect(record.passage?.lastWritten).toBeGreaterThanOrEqual(record.stamps.lastOutput as number);
    expect(JSON.stringify(record)).not.toMatch(/Hello|world/);
  });

  it('keeps both connections alive from request to request', async () => {
    const { proxy, server, final, records } = await served((write) => write(STREAM_HEAD + WHOLE));
    const c = await ask(proxy.url, chat());
    await c.said(/0\r\n\r\n$/);
    await final(1);
    c.send(chat());
    await c.said(/0\r\n\r\n[\s\S]*0\r\n\r\n$/);
    await final(2);
    expect(server.sockets).toHaveLength(1);
    expect(records.map((r) => r.connection?.reused)).toEqual([false, true]);
  });

  it('passes chunks cut anywhere on unchanged', async () => {
    const bytes = STREAM_HEAD + WHOLE;
    let sizes: number[] = [];
    const { proxy, final } = await served(async (_write, _head, _body, socket) => {
      let at = 0;
      for (const size of sizes) {
        await new Promise((resolve) => socket.write(bytes.slice(at, at + size), 'latin1', resolve));
        await new Promise((resolve) => setImmediate(resolve));
        at += size;
      }
      socket.write(bytes.slice(at), 'latin1');
    });
    for (const step of [1, 3, 7, 64]) {
      sizes = Array.from({ length: Math.floor(bytes.length / step) }, () => step);
      const c = await ask(proxy.url, chat());
      const text = await c.said(/0\r\n\r\n$/);
      expect(text.slice(text.indexOf('\r\n\r\n') + 4)).toBe(WHOLE);
    }
    const { record } = await final(4);
    expect(record.outcome).toBe('completed');
    expect(record.timeline.length).toBe(2);
  });

  it('passes a whole answer by its length, HEAD, and paths of no dialect unrecorded', async () => {
    const whole = JSON.stringify({
      object: 'chat.completion',
      choices: [{ index: 0, message: { role: 'assistant', content: 'yes' }, finish_reason: 'stop' }],
    });
    const { proxy, final, finals } = await served((write, head) => {
      if (head.startsWith('HEAD')) write('HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n');
      else if (head.startsWith('GET')) write('HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\nnope');
      else
        write(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${whole.length}\r\n\r\n${whole}`);
    });
    const c = await ask(proxy.url, 'GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n');
    expect(await c.said(/nope$/)).toMatch(/^HTTP\/1\.1 404 Not Found/);
    c.send('HEAD /health HTTP/1.1\r\nhost: x\r\n\r\n');
    await c.said(/content-length: 12[\s\S]*\r\n\r\n$/);
    c.send(chat());
    expect((await c.said(/"yes"/)).endsWith(whole)).toBe(true);
    const { record } = await final(1);
    expect(record.outcome).toBe('completed');
    expect(record.streamed).toBe(false);
    expect(finals).toHaveLength(1);
    expect(proxy.counts.passedThrough).toBe(2);
  });

  it('passes HTTP errors on with their bodies, and says of a rejection that it was one', async () => {
    const body = '{"error":{"message":"queue full, key sk-abcdefghijkl","type":"overloaded"}}';
    const { proxy, final } = await served((write) =>
      write(`HTTP/1.1 503 Busy\r\nretry-after: 7\r\ncontent-length: ${body.length}\r\n\r\n${body}`),
    );
    const c = await ask(proxy.url, chat());
    const text = await c.said(/overloaded"\}\}$/);
    expect(text).toMatch(/^HTTP\/1\.1 503 Busy\r\nretry-after: 7\r\n/);
    const { record, verdict } = await final(1);
    expect(verdict.class).toBe('rejected');
    expect(record.detail).toBe('queue full, key ***');
  });

  it('keeps trailers and sends the end of hop-by-hop headers', async () => {
    let seen = '';
    const { proxy } = await served((write, head) => {
      seen = head;
      write(
        `HTTP/1.1 200 OK\r\nconnection: x-secret-hop\r\nx-secret-hop: 1\r\ntrailer: x-sum\r\nx-kept: 2\r\ntransfer-encoding: chunked\r\n\r\n${chunk('data: 1\n\n')}0\r\nx-sum: 99\r\n\r\n`,
      );
    });
    const c = await ask(
      proxy.url,
      chat(
        'connection: keep-alive, x-mine\r\nx-mine: 1\r\nte: trailers\r\ntraceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\nauthorization: Bearer abc\r\n',
      ),
    );
    const text = await c.said(/x-sum: 99\r\n\r\n$/);
    expect(text).not.toMatch(/x-secret-hop/);
    expect(text).toMatch(/x-kept: 2/);
    expect(seen).not.toMatch(/x-mine|^te:/im);
    expect(seen).toMatch(/traceparent: 00-0af7651916cd43dd8448eb211c80319c/);
    expect(seen).toMatch(/authorization: Bearer abc/);
    expect(seen).toMatch(/via: 1\.1 goodput/);
    expect(seen).toMatch(/^host: 127\.0\.0\.1:\d+$/m);
  });

  it('passes a chunked request body and its trailers on', async () => {
    let got = '';
    const { proxy } = await served((write, _head, body) => {
      got = body;
      write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
    });
    const c = await ask(
      proxy.url,
      'POST /upload HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n3\r\n!!!\r\n0\r\n\r\n',
    );
    await c.said(/ok$/);
    expect(got.replace(/[0-9a-f]+\r\n/g, '').replace(/\r\n/g, '')).toBe('hello!!!');
  });

  it('waits for 100 Continue where the caller does', async () => {
    const server = await origin((socket) => {
      let all = '';
      socket.on('data', (bytes) => {
        all += bytes;
        if (/expect: 100-continue[\s\S]*\r\n\r\n$/.test(all)) socket.write('HTTP/1.1 100 Continue\r\n\r\n');
        if (all.endsWith('body')) socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
      });
    });
    closers.push(server.close);
    const { proxy } = await watchedProxy(server.url);
    closers.push(() => proxy.close());
    const c = await ask(proxy.url, 'POST /x HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n');
    await c.said(/^HTTP\/1\.1 100 Continue\r\n\r\n/);
    c.send('body');
    await c.said(/200 OK[\s\S]*ok$/);
  });

  it('serves pipelined requests in their order', async () => {
    const { proxy } = await served((write, head) => {
      const n = /x-n: (\d)/.exec(head)?.[1];
      write(`HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${chunk(`answer ${n}`)}${LAST_CHUNK}`);
    });
    const get = (n: number): string => `GET /x HTTP/1.1\r\nhost: x\r\nx-n: ${n}\r\n\r\n`;
    const c = await ask(proxy.url, get(1) + get(2) + get(3));
    const text = await c.said(/answer 3\r\n0\r\n\r\n$/);
    expect([...text.matchAll(/answer (\d)/g)].map((m) => m[1])).toEqual(['1', '2', '3']);
  });
});

describe('HTTP/1.0', () => {
  it('reads an upstream that ends its body by closing, for both kinds of client', async () => {
    const { proxy, final } = await served((write, _head, _body, socket) => {
      write(`HTTP/1.0 200 OK\r\ncontent-type: text/event-stream\r\n\r\n${STREAM.join('')}`);
      socket.end();
    });
    const c = await ask(proxy.url, chat());
    const text = await c.said(/0\r\n\r\n$/);
    expect(text).toMatch(/transfer-encoding: chunked/i);
    expect((await final(1)).record.outcome).toBe('completed');
    const old = await ask(proxy.url, chat().replace('HTTP/1.1', 'HTTP/1.0'));
    const { text: all } = await old.closed;
    expect(all.endsWith(STREAM.join(''))).toBe(true);
    expect(all).not.toMatch(/transfer-encoding/i);
  });

  it('takes the chunks off for a client of HTTP/1.0', async () => {
    const { proxy } = await served((write) => write(STREAM_HEAD + WHOLE));
    const c = await ask(proxy.url, chat().replace('HTTP/1.1', 'HTTP/1.0'));
    const { text } = await c.closed;
    expect(text.endsWith(`\r\n\r\n${STREAM.join('')}`)).toBe(true);
  });
});

describe('broken ends', () => {
  it('tells the upstream at once that the client left, and judges what was seen', async () => {
    let gone: () => void = () => {};
    const left = new Promise<void>((resolve) => {
      gone = resolve;
    });
    const { proxy, final } = await served((write, _h, _b, socket) => {
      socket.once('close', gone);
      write(STREAM_HEAD + chunk(token('Hello')));
    });
    const c = await ask(proxy.url, chat());
    await c.said(/Hello/);
    c.socket.destroy();
    await left;
    const { record, verdict } = await final(1);
    expect(record.outcome).toBe('cancelled');
    expect(record.reason).toBe('client-abort');
    expect(verdict.class).toBe('cancelled');
    expect(proxy.live().now.in_flight).toBe(0);
  });

  it('counts an answer as whole whose client left at its last event', async () => {
    const { proxy, final } = await served((write) => write(STREAM_HEAD + [token('a'), FINISH].map(chunk).join('')));
    const c = await ask(proxy.url, chat());
    await c.said(/"stop"/);
    c.socket.destroy();
    expect((await final(1)).record.outcome).toBe('completed');
  });

  it('breaks the client off where the upstream broke off', async () => {
    const { proxy, final } = await served((write, _h, _b, socket) => {
      write(STREAM_HEAD + chunk(token('Hello')));
      setImmediate(() => socket.resetAndDestroy());
    });
    const c = await ask(proxy.url, chat());
    const { text } = await c.closed;
    expect(text).not.toMatch(/0\r\n\r\n$/);
    const { record } = await final(1);
    expect([record.outcome, record.reason]).toEqual(['failed', 'reset']);
  });

  it('answers 502 when the upstream cannot be reached, and when it speaks no HTTP', async () => {
    const dead = await origin(() => {});
    await dead.close();
    const { proxy, final } = await watchedProxy(dead.url);
    closers.push(() => proxy.close());
    const c = await ask(proxy.url, chat());
    await c.said(/^HTTP\/1\.1 502[\s\S]*"bad_gateway"/);
    expect((await final(1)).record.reason).toBe('connect');

    const strange = await served((write) => write('SSH-2.0-OpenSSH\r\n\r\n'));
    const d = await ask(strange.proxy.url, chat());
    await d.said(/^HTTP\/1\.1 502/);
    expect((await strange.final(1)).record.reason).toBe('protocol');
  });

  it('asks another upstream when one refuses the connection', async () => {
    const dead = await origin(() => {});
    await dead.close();
    const server = await origin((socket) => requests(socket, () => void socket.write(STREAM_HEAD + WHOLE)));
    closers.push(server.close);
    const { proxy, final, records } = await watchedProxy(`${dead.url},${server.url}`);
    closers.push(() => proxy.close());
    for (let i = 1; i <= 4; i++) {
      const c = await ask(proxy.url, chat());
      await c.said(/0\r\n\r\n$/);
      await final(i);
    }
    expect(proxy.counts.failovers).toBeGreaterThan(0);
    expect(new Set(records.map((r) => r.passage?.upstream))).toEqual(new Set([server.url]));
  });

  it('sends again on a fresh connection what a stale one swallowed', async () => {
    let n = 0;
    const server = await origin((socket) =>
      requests(socket, () => {
        n++;
        if (n === 2) socket.destroy();
        else socket.write(STREAM_HEAD + WHOLE);
      }),
    );
    closers.push(server.close);
    const { proxy, final } = await watchedProxy(server.url);
    closers.push(() => proxy.close());
    const c = await ask(proxy.url, chat());
    await c.said(/0\r\n\r\n$/);
    await final(1);
    c.send(chat());
    await final(2);
    expect(proxy.counts.staleReattempts).toBe(1);
    expect(n).toBe(3);
  });
});

describe('hostile peers', () => {
  it('refuses huge heads, injected headers, two lengths and odd targets', async () => {
    let reached = 0;
    const { proxy } = await served((write) => {
      reached++;
      write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
    });
    const refused = async (text: string, status: number): Promise<void> => {
      const c = await ask(proxy.url, text);
      await c.said(new RegExp(`^HTTP/1\\.1 ${status}`));
    };
    await refused(`GET / HTTP/1.1\r\nhost: x\r\nx-big: ${'a'.repeat(70_000)}\r\n\r\n`, 431);
    await refused('GET / HTTP/1.1\r\nhost: x\r\nx: a\rb: c\r\n\r\n', 400);
    await refused('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\nabc', 400);
    await refused('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabcd', 400);
    await refused('GET ftp://other/ HTTP/1.1\r\nhost: x\r\n\r\n', 400);
    await refused(`GET / HTTP/1.1\r\nhost: x\r\nvia: ${'1.1 goodput, '.repeat(4)}x\r\n\r\n`, 508);
    expect(reached).toBe(0);
    // An absolute target goes where every request goes, not where it says.
    await refused('GET http://169.254.169.254/latest HTTP/1.1\r\nhost: 169.254.169.254\r\n\r\n', 200);
    expect(reached).toBe(1);
  });

  it('refuses an upstream whose head could split, whose chunks lie, or whose head has no end', async () => {
    const bad = [
      'HTTP/1.1 200 OK\r\nx: a\rset-cookie: b\r\ncontent-length: 0\r\n\r\n',
      'HTTP/1.1 200 OK\r\n folded: 1\r\n\r\n',
      'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n',
      'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n',
      'HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n',
      `HTTP/1.1 200 OK\r\nx: ${'a'.repeat(100_000)}\r\n\r\n`,
      'HTTP/1.1 101 Switching Protocols\r\n\r\n',
      'HTTP/1.1 103 a\rset-cookie: b\r\n\r\n',
    ];
    let next = '';
    const { proxy, finals, final } = await served((write) => write(next));
    for (const [i, text] of bad.entries()) {
      next = text;
      const c = await ask(proxy.url, chat());
      await c.said(/^HTTP\/1\.1 502[\s\S]*bad_gateway/);
      expect(c.text).not.toMatch(/set-cookie/);
      await final(i + 1);
    }
    expect(finals.map((f) => f.record.outcome)).toEqual(bad.map(() => 'failed'));
    next = `${STREAM_HEAD}5\r\ntoo long for it\r\n`;
    const c = await ask(proxy.url, chat());
    const { text } = await c.closed;
    expect(text).not.toMatch(/0\r\n\r\n$/);
  });

  it('passes an endless line on and gives up reading it, not passing it', async () => {
    const line = 'x'.repeat(1 << 16);
    let sent = 0;
    const { proxy, final } = await served((write, _h, _b, socket) => {
      write(`${STREAM_HEAD}${chunk('data: ')}`);
      const more = (): void => {
        if (sent === 140) {
          write(chunk('\n\n') + chunk(FINISH) + LAST_CHUNK);
          return;
        }
        sent++;
        socket.write(chunk(line), 'latin1', () => setImmediate(more));
      };
      more();
    });
    const c = await ask(proxy.url, chat('connection: close\r\n'));
    const { text } = await c.closed;
    expect(text.endsWith('0\r\n\r\n')).toBe(true);
    expect(text.length).toBeGreaterThan(140 * line.length);
    const { record } = await final(1);
    expect([record.outcome, record.reason]).toEqual(['failed', 'malformed']);
    expect(record.detail).not.toMatch(/xxx/);
  });
});
