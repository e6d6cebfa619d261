import { performance } from 'node:perf_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import {
  answerChat,
  bodyOf,
  CERTIFICATE_FILE,
  chatChunk,
  SSE_HEADERS,
  serve,
  serveProxy,
  serveRaw,
  type TestServer,
} from '../../test/conformance/chat-server.ts';
import { CallLog } from '../../test/conformance/engine.ts';
import { wallClock } from '../core/clock.ts';
import { Recorder } from '../core/recorder.ts';
import type { RequestSpec } from '../core/request.ts';
import { type LiveEngine, liveEngine } from './engine.ts';
import type { LiveOptions } from './options.ts';

const clock = wallClock({ now: () => performance.now(), setTimeout, clearTimeout, setImmediate, clearImmediate });
const spec: RequestSpec = {
  operation: 0,
  attempt: 0,
  class: 'default',
  inputTokens: 4,
  outputTokens: 3,
  choices: 1,
  stream: true,
  ignoreEos: false,
  prompt: 'hello',
};

const toClose: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const thing of toClose.splice(0).reverse()) await thing.close();
});
const kept = <T extends { close(): Promise<void> }>(thing: T): T => {
  toClose.push(thing);
  return thing;
};
const serving = async (...args: Parameters<typeof serve>): Promise<TestServer> => kept(await serve(...args));
const servingRaw = async (...args: Parameters<typeof serveRaw>): Promise<TestServer> => kept(await serveRaw(...args));
const engineFor = (url: string, options: Partial<LiveOptions> = {}): LiveEngine =>
  kept(liveEngine({ url, model: 'm', ...options }, clock));
const until = async (done: () => boolean): Promise<void> => {
  while (!done()) await nextTurn();
};
const run = async (engine: LiveEngine, asked: Partial<RequestSpec> = {}): Promise<CallLog> => {
  const log = new CallLog(clock);
  engine.submit({ ...spec, ...asked }, log);
  await until(() => log.ending !== undefined);
  expect(log.breaches).toEqual([]);
  return log;
};
const textOf = (log: CallLog): string => log.events.flatMap((e) => e.outputs.map((part) => part.text ?? '')).join('');
const stampOf = (log: CallLog, what: string): number | undefined => log.calls.find((c) => c.what === what)?.t;
const connection = (log: CallLog) => log.calls.find((c) => c.what === 'connected')?.how;

/** An HTTP/1.1 head of a chunked stream, and an HTTP chunk, by hand. */
const HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n';
const chunked = (text: string | Buffer): Buffer => {
  const bytes = Buffer.from(text);
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);
};
const LAST = '0\r\n\r\n';

describe('a stream', () => {
  it('is asked for as the dialect says, with key and headers, uncompressed', async () => {
    let seen: Record<string, unknown> = {};
    const server = await serving((req, res) => {
      void bodyOf(req).then((body) => {
        seen = { ...req.headers, url: req.url, body: JSON.parse(body) };
        res.writeHead(200, SSE_HEADERS).end(chatChunk({ content: 'x' }, 'stop'));
      });
    });
    const engine = engineFor(`${server.url}/v1/chat/completions?tag=a`, { key: 'K', headers: { 'X-Team': 'red' } });
    await run(engine);
    expect(seen).toMatchObject({
      url: '/v1/chat/completions?tag=a',
      authorization: 'Bearer K',
      'x-team': 'red',
      'accept-encoding': 'identity',
      body: { model: 'm', stream: true, max_tokens: 3 },
    });
  });

  it('reuses connections and says so', async () => {
    const server = await serving((req, res) => void answerChat(req, res));
    const engine = engineFor(server.url);
    const first = await run(engine);
    const second = await run(engine);
    expect(connection(first)).toEqual({ reused: false, http: '1.1' });
    expect(connection(second)).toEqual({ reused: true, http: '1.1' });
    expect(server.accepted()).toBe(1);
    expect(engine.evidence()).toMatchObject({
      connections: 1,
      onFreshConnection: 1,
      onReusedConnection: 1,
      responses: 2,
    });
  });

  it('opens as many connections as are warmed, and then no more', async () => {
    const server = await serving((req, res) => void answerChat(req, res));
    const engine = engineFor(server.url);
    expect(await engine.warm(5)).toEqual({ open: 5 });
    await until(() => server.accepted() === 5);
    const logs = await Promise.all([1, 2, 3, 4, 5].map(() => run(engine)));
    expect(server.accepted()).toBe(5);
    for (const log of logs) {
      expect(connection(log)?.reused).toBe(false);
      expect(stampOf(log, 'connected')).toBe(stampOf(log, 'dispatched'));
    }
  });

  it('opens anew when a warm or idle connection has been closed meanwhile', async () => {
    const server = await serving((req, res) => void answerChat(req, res));
    const engine = engineFor(server.url);
    await engine.warm(1);
    for (const again of [1, 2]) {
      await until(() => server.open().size === 1);
      for (const socket of server.open()) socket.end();
      await until(() => server.open().size === 0);
      const log = await run(engine);
      expect(log.ending).toEqual({ kind: 'closed' });
      expect(connection(log)?.reused).toBe(false);
      expect(server.accepted()).toBe(1 + again);
    }
  });

  it('keeps characters whole that were split over reads', async () => {
    const server = await servingRaw((socket) => {
      socket.once('data', () => {
        const bytes = Buffer.from(chatChunk({ content: 'día 日本 🎉' }) + chatChunk({}, 'stop'));
        socket.write(HEAD);
        let i = 0;
        const next = (): void => {
          if (i === bytes.length) return void socket.write(LAST);
          socket.write(chunked(bytes.subarray(i, ++i)), () => setImmediate(next));
        };
        next();
      });
    });
    const log = await run(engineFor(server.url));
    expect(textOf(log)).toBe('día 日本 🎉');
    expect(log.ending).toEqual({ kind: 'closed' });
  });

  it('gives HTTP chunks of one read one stamp, the rest marked coalesced', async () => {
    const server = await servingRaw((socket) => {
      socket.once('data', () => {
        const tokens = ['a', 'b', 'c', 'd', 'e'].map((t) => chunked(chatChunk({ content: t })));
        socket.write(Buffer.concat([Buffer.from(HEAD), ...tokens, chunked(chatChunk({}, 'stop')), Buffer.from(LAST)]));
      });
    });
    const engine = engineFor(server.url);
    const log = await run(engine);
    const events = log.calls.filter((c) => c.what === 'event');
    expect(events.map((e) => e.coalesced)).toEqual([false, true, true, true, true, true]);
    expect(new Set(events.map((e) => e.t)).size).toBe(1);
    expect(engine.evidence()).toMatchObject({ reads: 1, outputEvents: 5, coalesced: 4, inOneRead: 1 });
  });

  it('delivers a last event that no blank line follows, at the stamp of its read', async () => {
    const server = await serving((_, res) => {
      res.writeHead(200, SSE_HEADERS);
      res.end(chatChunk({ content: 'x' }) + chatChunk({}, 'stop').trimEnd());
    });
    const recorder = new Recorder(spec, clock.now());
    engineFor(server.url).submit(spec, recorder);
    await until(() => recorder.isEnded);
    expect(recorder.record()).toMatchObject({ outcome: 'completed', finish: 'stop' });
  });

  it('waits for slow headers, and lets go of the connection when cancelled', async () => {
    let asked = false;
    const server = await serving(() => {
      asked = true;
    });
    const log = new CallLog(clock);
    const cancel = engineFor(server.url).submit(spec, log);
    await until(() => asked);
    expect(log.names).toEqual(['dispatched', 'connected', 'sent']);
    cancel();
    await until(() => server.open().size === 0);
    expect(log.names).toEqual(['dispatched', 'connected', 'sent']);
  });

  it('lets go of the connection when cancelled in mid-stream', async () => {
    const server = await serving((_, res) => void res.writeHead(200, SSE_HEADERS).write(chatChunk({ content: 'x' })));
    const log = new CallLog(clock);
    const cancel = engineFor(server.url).submit(spec, log);
    await until(() => log.names.includes('event'));
    cancel();
    await until(() => server.open().size === 0);
    expect(log.names).not.toContain('ended');
  });

  it('ends what is open when closed', async () => {
    const server = await serving((_, res) => void res.writeHead(200, SSE_HEADERS).write(chatChunk({ content: 'x' })));
    const engine = engineFor(server.url);
    const log = new CallLog(clock);
    engine.submit(spec, log);
    await until(() => log.names.includes('event'));
    await engine.close();
    expect(log.ending).toMatchObject({ kind: 'failed', reason: 'engine' });
    expect((await run(engine)).names).toEqual(['dispatched', 'ended']);
  });

  it('names headers that tell of proxies on the way, and counts bursts after silence', async () => {
    const burst = Array.from({ length: 6 }, (_, i) => chatChunk({ content: `${i}` })).join('');
    const server = await serving((_, res) => {
      res.writeHead(200, { ...SSE_HEADERS, via: '1.1 proxy', server: 'nginx' });
      res.write(chatChunk({ role: 'assistant', content: '' }));
      setTimeout(() => res.end(burst + chatChunk({}, 'stop')), 150);
    });
    const engine = engineFor(server.url);
    await run(engine);
    expect(engine.evidence()).toMatchObject({
      bursts: 1,
      largestBurst: 6,
      headers: { via: ['1.1 proxy'], server: ['nginx'] },
    });
  });
});

describe('an answer that is no stream', () => {
  const ending = async (
    status: number,
    headers: Record<string, string>,
    body: string | Buffer,
    options: Partial<LiveOptions> = {},
  ) => {
    const server = await serving((_, res) => void res.writeHead(status, headers).end(body));
    return (await run(engineFor(server.url, options))).ending;
  };

  it.each([
    [503, { 'content-type': 'application/json' }, '{"error":{"message":"the queue is full"}}', 'the queue is full'],
    [404, { 'content-type': 'text/html' }, '<html><title>Not here</title>', "HTML page titled 'Not here'"],
    [500, { 'content-type': 'text/plain' }, 'Internal Server Error\nmore', 'Internal Server Error'],
    [
      307,
      { location: 'https://other.example/v1?key=abcdef' },
      '',
      'moved to https://other.example/v1?key=***; use that URL',
    ],
    [429, {}, '', ''],
  ])('status %i', async (status, headers, body, detail) => {
    expect(await ending(status, headers as Record<string, string>, body)).toEqual({
      kind: 'http-error',
      status,
      detail,
    });
  });

  it('keeps only the beginning of a long error', async () => {
    const end = await ending(500, { 'content-type': 'text/plain' }, 'x'.repeat(1_000_000));
    expect(end).toMatchObject({ kind: 'http-error', status: 500 });
    expect(end).toHaveProperty('detail.length', 300);
  });

  it('does without the rest of an error body that does not come', async () => {
    const server = await serving((_, res) => void res.writeHead(503, { 'content-length': '100' }).write('busy'));
    expect((await run(engineFor(server.url))).ending).toEqual({ kind: 'http-error', status: 503, detail: 'busy' });
  });

  it('never repeats the key, though the server does', async () => {
    const server = await serving((req, res) => {
      res.writeHead(401, { 'content-type': 'application/json' });
      res.end(JSON.stringify({ error: { message: `Incorrect API key: ${req.headers.authorization}` } }));
    });
    const { ending } = await run(engineFor(server.url, { key: 'my-own-key-77' }));
    expect(ending).toEqual({ kind: 'http-error', status: 401, detail: 'Incorrect API key: Bearer ***' });
  });

  it('never repeats the key in an error inside the stream either', async () => {
    const server = await serving((_, res) => {
      res
        .writeHead(200, SSE_HEADERS)
        .end('data: {"error":{"message":"key my-own-key-77 has no quota","code":429}}\n\n');
    });
    const log = await run(engineFor(server.url, { key: 'my-own-key-77' }));
    expect(log.events[0]?.error?.message).toBe('key *** has no quota');
  });

  it('200 with a page of HTML', async () => {
    const end = await ending(200, { 'content-type': 'text/html' }, '<html><head><title>Log in</title>');
    expect(end).toMatchObject({ kind: 'failed', reason: 'not-a-stream' });
    expect(end).toHaveProperty('detail', expect.stringContaining("'Log in'"));
  });

  it('200 with an error in JSON', async () => {
    const server = await serving((_, res) => {
      res.writeHead(200, { 'content-type': 'application/json' }).end('{"error":{"message":"bad gateway","code":502}}');
    });
    const recorder = new Recorder(spec, clock.now());
    engineFor(server.url).submit(spec, recorder);
    await until(() => recorder.isEnded);
    expect(recorder.record()).toMatchObject({ outcome: 'failed', detail: 'bad gateway', status: 200 });
  });

  it('a whole answer, to a request that was not streamed', async () => {
    const server = await serving((_, res) => {
      const choices = [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }];
      res.writeHead(200, { 'content-type': 'application/json' });
      res.end(JSON.stringify({ object: 'chat.completion', model: 'm', choices, usage: { completion_tokens: 2 } }));
    });
    const recorder = new Recorder({ ...spec, stream: false }, clock.now());
    engineFor(server.url).submit({ ...spec, stream: false }, recorder);
    await until(() => recorder.isEnded);
    expect(recorder.record()).toMatchObject({ outcome: 'completed', streamed: false, usage: { output: 2 } });
  });

  it('a compressed stream is refused, saying why', async () => {
    const headers = { ...SSE_HEADERS, 'content-encoding': 'gzip' };
    const end = await ending(200, headers, gzipSync(chatChunk({ content: 'x' }, 'stop')));
    expect(end).toMatchObject({ kind: 'failed', reason: 'not-a-stream', detail: expect.stringContaining('gzip') });
  });

  it('a response beyond the bound', async () => {
    const body = chatChunk({ content: 'x'.repeat(5000) });
    const end = await ending(200, SSE_HEADERS, body, { maxResponseBytes: 1000 });
    expect(end).toMatchObject({ kind: 'failed', reason: 'too-large' });
  });
});

describe('a connection that fails', () => {
  const ending = async (url: string, options: Partial<LiveOptions> = {}) => (await run(engineFor(url, options))).ending;
  const closedPort = async (): Promise<string> => {
    const server = await serve(() => {});
    await server.close();
    return server.url;
  };

  it('refused', async () => {
    expect(await ending(await closedPort())).toMatchObject({ kind: 'failed', reason: 'connect' });
  });

  it('a name that does not resolve', async () => {
    expect(await ending('http://nowhere.invalid:80/v1')).toMatchObject({ kind: 'failed', reason: 'dns' });
  });

  it('a connection that is not accepted in time', async () => {
    // TEST-NET-1 (RFC 5737) answers nobody; some networks refuse it at once, which is as much a failure to connect.
    const end = await ending('http://192.0.2.1:9/v1', { connectTimeout: 50 });
    expect(end).toMatchObject({ kind: 'failed', reason: 'connect' });
  });

  it('gives up a connection being opened when cancelled', async () => {
    const engine = engineFor('http://192.0.2.1:9/v1');
    const log = new CallLog(clock);
    const cancel = engine.submit(spec, log);
    await nextTurn();
    cancel();
    await engine.close();
    expect(log.names.slice(0, 1)).toEqual(['dispatched']);
  });

  it('a certificate that is not trusted, unless told to', async () => {
    const server = await serving((req, res) => void answerChat(req, res), true);
    const end = await ending(server.url);
    expect(end).toMatchObject({ kind: 'failed', reason: 'tls', detail: expect.stringMatching(/--cacert.*--insecure/) });
    expect(await ending(server.url, { insecure: true })).toEqual({ kind: 'closed' });
    expect(await ending(server.url, { cacert: CERTIFICATE_FILE })).toEqual({ kind: 'closed' });
  });

  it('TLS where none is spoken, and none where it is', async () => {
    const plain = await serving((req, res) => void answerChat(req, res));
    const end = await ending(plain.url.replace('http:', 'https:'));
    expect(end).toMatchObject({ kind: 'failed', reason: 'tls', detail: expect.stringContaining('http://') });
    const secure = await serving((req, res) => void answerChat(req, res), true);
    expect(await ending(secure.url.replace('https:', 'http:'))).toMatchObject({ kind: 'failed' });
  });

  it('refuses an authorities file that is none', () => {
    expect(() => engineFor('https://127.0.0.1:1', { cacert: '/nowhere.pem' })).toThrow(/--cacert/);
    expect(() => engineFor('https://127.0.0.1:1', { cacert: import.meta.filename })).toThrow(/no PEM certificate/);
  });

  it('a server that does not speak HTTP', async () => {
    const server = await servingRaw((socket) => void socket.once('data', () => socket.write('SSH-2.0-OpenSSH_9\r\n')));
    const end = await ending(server.url);
    expect(end).toMatchObject({ kind: 'failed', reason: 'protocol', detail: expect.stringContaining('https://') });
  });

  it.each([
    ['in the middle of a chunked stream', HEAD + chunked(chatChunk({ content: 'x' })).toString(), 'event'],
    ['short of its content-length', 'HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\ndata', 'headers'],
    ['inside the headers', 'HTTP/1.1 200 OK\r\ncontent-', 'sent'],
    ['before it answers', '', 'sent'],
  ])('closed by the server %s', async (_, said, reached) => {
    for (const how of ['end', 'reset'] as const) {
      const server = await servingRaw((socket) => {
        socket.once('data', () => {
          const close = (): void => void (how === 'end' ? socket.end() : socket.resetAndDestroy());
          if (said) socket.write(said, close);
          else close();
        });
      });
      const log = await run(engineFor(server.url));
      expect(log.ending).toMatchObject({ kind: 'failed', reason: 'reset' });
      expect(log.ending).not.toHaveProperty('stale');
      if (how === 'end') expect(log.names.at(-2)).toBe(reached);
    }
  });

  it('told to be stale when a reused connection closes before any byte of the response', async () => {
    for (const how of ['end', 'reset'] as const) {
      const server = await servingRaw((socket) => {
        let requests = 0;
        socket.on('data', () => {
          if (requests++ === 0)
            socket.write(
              Buffer.concat([Buffer.from(HEAD), chunked(chatChunk({ content: 'x' }, 'stop')), Buffer.from(LAST)]),
            );
          else if (how === 'end') socket.end();
          else socket.resetAndDestroy();
        });
      });
      const engine = engineFor(server.url);
      expect((await run(engine)).ending).toEqual({ kind: 'closed' });
      const second = await run(engine);
      expect(second.ending).toMatchObject({ kind: 'failed', reason: 'reset', stale: true });
      expect((await run(engine)).ending).toEqual({ kind: 'closed' });
    }
  });

  it('told to be stale also when it had only been opened beforehand', async () => {
    const server = await servingRaw((socket) => void socket.once('data', () => socket.end()));
    const engine = engineFor(server.url);
    await engine.warm(1);
    expect((await run(engine)).ending).toMatchObject({ reason: 'reset', stale: true });
    expect((await run(engine)).ending).not.toHaveProperty('stale');
  });

  it('not stale when the reused connection had begun to answer', async () => {
    const server = await servingRaw((socket) => {
      let requests = 0;
      socket.on('data', () => {
        if (requests++ === 0)
          socket.write(
            Buffer.concat([Buffer.from(HEAD), chunked(chatChunk({ content: 'x' }, 'stop')), Buffer.from(LAST)]),
          );
        else socket.write('HTTP/1.1 200', () => socket.end());
      });
    });
    const engine = engineFor(server.url);
    await run(engine);
    const second = await run(engine);
    expect(second.ending).toMatchObject({ kind: 'failed', reason: 'reset' });
    expect(second.ending).not.toHaveProperty('stale');
  });

  it('says how many could be warmed, and why no more', async () => {
    const { open, problem } = await engineFor(await closedPort()).warm(10);
    expect(open).toBe(0);
    expect(problem).toMatch(/refuses connections/);
  });
});

describe('through a proxy', () => {
  const through = (proxy: TestServer, user = '') => ({
    env: { http_proxy: proxy.url.replace('//', `//${user}`), https_proxy: proxy.url.replace('//', `//${user}`) },
  });

  it('asks for the whole URL of a plain target', async () => {
    const seen: string[] = [];
    const server = await serving((req, res) => void answerChat(req, res));
    const proxy = kept(await serveProxy(seen));
    const log = await run(engineFor(`http://api.goodput.test:${server.port}`, through(proxy, 'me:secret@')));
    expect(log.ending).toEqual({ kind: 'closed' });
    const basic = Buffer.from('me:secret').toString('base64');
    expect(seen).toEqual([`POST http://api.goodput.test:${server.port}/v1/chat/completions Basic ${basic}`]);
  });

  it('tunnels to a TLS target', async () => {
    const seen: string[] = [];
    const server = await serving((req, res) => void answerChat(req, res), true);
    const proxy = kept(await serveProxy(seen));
    const options = { ...through(proxy), cacert: CERTIFICATE_FILE };
    const engine = engineFor(`https://api.goodput.test:${server.port}`, options);
    expect((await run(engine)).ending).toEqual({ kind: 'closed' });
    expect(connection(await run(engine))?.reused).toBe(true);
    expect(seen).toEqual([`CONNECT api.goodput.test:${server.port}`]);
  });

  it('says when the certificate is for another name', async () => {
    const server = await serving((req, res) => void answerChat(req, res), true);
    const proxy = kept(await serveProxy([]));
    const options = { ...through(proxy), cacert: CERTIFICATE_FILE };
    const { ending } = await run(engineFor(`https://other.goodput.test:${server.port}`, options));
    expect(ending).toMatchObject({ kind: 'failed', reason: 'tls', detail: expect.stringContaining('another name') });
  });

  it('goes straight to loopback', async () => {
    const seen: string[] = [];
    const server = await serving((req, res) => void answerChat(req, res));
    const proxy = kept(await serveProxy(seen));
    expect((await run(engineFor(server.url, through(proxy)))).ending).toEqual({ kind: 'closed' });
    expect(seen).toEqual([]);
  });

  it('says when the proxy refuses, hangs up or is not there', async () => {
    const refusing = kept(await serveProxy([], 407));
    const hanging = await servingRaw((socket) => void socket.once('data', () => socket.end()));
    const gone = await serve(() => {});
    await gone.close();
    for (const [proxy, words] of [
      [refusing, /user and password.*407/],
      [hanging, /proxy/],
      [gone, /refused|ECONNREFUSED/i],
    ] as const) {
      const { ending } = await run(engineFor('https://api.goodput.test:1', through(proxy)));
      expect(ending).toMatchObject({ kind: 'failed', reason: 'connect', detail: expect.stringMatching(words) });
      expect(ending).toHaveProperty('detail', expect.stringContaining('https_proxy'));
    }
  });
});
