import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { serve, serveProxy, serveRaw, type TestServer } from '../../test/conformance/chat-server.ts';
import { post, probe } from './probe.ts';

const toClose: TestServer[] = [];
afterEach(async () => {
  for (const server of toClose.splice(0)) await server.close();
});

type Reply = { readonly status?: number; readonly type?: string; readonly body: unknown };
/** A server that answers `METHOD /path` by this table, else 404 as FastAPI does. What it was asked is kept. */
async function site(table: Record<string, Reply>, seen: string[] = []): Promise<TestServer> {
  const server = await serve((req: IncomingMessage, res: ServerResponse) => {
    req.resume().on('end', () => {
      const asked = `${req.method} ${req.url}`;
      seen.push(asked);
      const {
        status = 200,
        type = 'application/json',
        body,
      } = table[asked] ?? { status: 404, body: { detail: 'Not Found' } };
      res.writeHead(status, { 'content-type': type }).end(typeof body === 'string' ? body : JSON.stringify(body));
    });
  });
  toClose.push(server);
  return server;
}

const models = (...ids: string[]): Reply => ({
  body: { object: 'list', data: ids.map((id) => ({ id, object: 'model', owned_by: 'vllm', parent: null })) },
});
const empty: Reply = { status: 400, body: { error: { message: 'messages: field required' } } };
const message = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'no error',
    (error: Error) => `${error.name}: ${error.message}`,
  );

describe('probe', () => {
  it('names the one model, the software and the dialect, and why', async () => {
    const seen: string[] = [];
    const server = await site({ 'GET /v1/models': models('llama'), 'POST /v1/chat/completions': empty }, seen);
    expect(await probe({ url: server.url })).toMatchObject({
      dialect: 'openai.chat',
      endpoint: `${server.url}/v1/chat/completions`,
      model: 'llama',
      modelFrom: '/v1/models',
      server: { name: 'vLLM' },
      notes: [],
      options: { url: server.url, dialect: 'openai.chat', model: 'llama' },
    });
    expect(seen).toEqual(['GET /v1/models', 'POST /v1/chat/completions']);
  });

  it('takes the base model among its adapters', async () => {
    const list = {
      data: [
        { id: 'base', owned_by: 'vllm', parent: null },
        { id: 'lora', owned_by: 'vllm', parent: 'base' },
      ],
    };
    const server = await site({ 'GET /v1/models': { body: list }, 'POST /v1/chat/completions': empty });
    expect((await probe({ url: server.url })).model).toBe('base');
  });

  it('asks to choose among several models, and warns of one that is not listed', async () => {
    const server = await site({ 'GET /v1/models': models('a-1', 'b-2'), 'POST /v1/chat/completions': empty });
    expect(await message(probe({ url: server.url }))).toMatch(
      /^InputError: .*2 models; choose one with --model: a-1, b-2$/,
    );
    expect((await probe({ url: server.url, model: 'a-2' })).notes[0]).toMatch(
      /does not list the model 'a-2'.*a-1, b-2/,
    );
    expect((await probe({ url: server.url, model: 'b-2' })).notes).toEqual([]);
  });

  it('wants --model where the server names none', async () => {
    const server = await site({ 'POST /v1/chat/completions': empty });
    expect(await message(probe({ url: server.url }))).toContain('name it with --model');
    expect(await probe({ url: server.url, model: 'm' })).toMatchObject({ model: 'm', modelFrom: '--model' });
  });

  it.each([
    ['Ollama', 'ollama.chat', 'GET /api/tags', { models: [{ name: 'qwen3:4b' }] }, 'POST /api/chat', 'qwen3:4b'],
    ['TGI', 'tgi.generate_stream', 'GET /info', { model_id: 'org/m' }, 'POST /generate_stream', 'org/m'],
    ['SGLang', 'sglang.generate', 'GET /get_model_info', { model_path: '/w/m' }, 'POST /generate', '/w/m'],
    [
      'llama.cpp',
      'llamacpp.completion',
      'GET /props',
      { default_generation_settings: {}, model_path: 'q.gguf' },
      'POST /completion',
      'q.gguf',
    ],
  ])('finds %s where OpenAI’s API is not served', async (name, dialect, sign, body, endpoint, model) => {
    const server = await site({ [sign]: { body }, [endpoint]: empty });
    const found = await probe({ url: server.url });
    expect(found).toMatchObject({ dialect, model, server: { name } });
    expect(found.why).toContain(name);
  });

  it('keeps to a whole URL and looks for models beside it', async () => {
    const server = await site({ 'GET /openai/v1/models': models('m'), 'POST /openai/v1/completions': empty });
    expect(await probe({ url: `${server.url}/openai/v1/completions` })).toMatchObject({
      dialect: 'openai.completions',
      model: 'm',
    });
  });

  it('goes through a proxy', async () => {
    const seen: string[] = [];
    const server = await site({ 'GET /v1/models': models('m'), 'POST /v1/chat/completions': empty });
    const proxy = await serveProxy(seen);
    toClose.push(proxy);
    const found = await probe({ url: `http://api.goodput.test:${server.port}`, env: { http_proxy: proxy.url } });
    expect(found.model).toBe('m');
    expect(seen[0]).toBe(`GET http://api.goodput.test:${server.port}/v1/models`);
  });
});

describe('probe says in one line what to do about', () => {
  it('a host that is not there', async () => {
    const gone = await serve(() => {});
    await gone.close();
    expect(await message(probe({ url: gone.url }))).toMatch(
      /^InputError: http:.*refuses connections; is the server running/,
    );
    expect(await message(probe({ url: 'http://nowhere.invalid' }))).toMatch(/cannot be resolved.*check the spelling/);
  });

  it('a host that does not answer', async () => {
    const silent = await serveRaw(() => {});
    toClose.push(silent);
    expect(await message(probe({ url: silent.url }, 100))).toMatch(
      /no answer within 0.1 s; check that the server is up/,
    );
  });

  it('a wrong path', async () => {
    const server = await site({ 'GET /v1/models': models('m') });
    const said = await message(probe({ url: `${server.url}/v1/chat/completions` }));
    expect(said).toMatch(
      /nothing is served at \/v1\/chat\/completions \(404: Not Found\).*answers \/v1\/models.*--dialect/,
    );
    expect(await message(probe({ url: `${server.url}/v2/talk` }))).toMatch(
      /^InputError: .*--dialect \(one of openai\.chat/,
    );
  });

  it('a key that is missing or wrong, without showing it', async () => {
    const refusal = { status: 401, body: { error: { message: 'no access for key-abcdef-123' } } };
    const server = await site({ 'GET /v1/models': refusal, 'POST /v1/chat/completions': refusal });
    expect(await message(probe({ url: server.url }))).toMatch(/refuses us \(401.*environment variable.*--api-key-env/);
    const said = await message(probe({ url: server.url, key: 'key-abcdef-123' }));
    expect(said).toMatch(/refuses us \(401: no access for \*\*\*\); check that the key is right/);
    expect(said).not.toContain('abcdef');
  });

  it('a page of HTML', async () => {
    const page = { type: 'text/html', body: '<html><title>Welcome to nginx</title>' };
    const server = await site({ 'GET /v1/models': page, 'POST /v1/chat/completions': { ...page, status: 405 } });
    const said = await message(probe({ url: server.url }));
    expect(said).toMatch(/answers 405 with an HTML page titled 'Welcome to nginx', not an API; check the host/);
    expect(said.split('\n')).toHaveLength(1);
  });

  it('a server that is busy: a note', async () => {
    const server = await site({
      'GET /v1/models': models('m'),
      'POST /v1/chat/completions': { status: 503, body: { error: 'Loading model' } },
    });
    expect((await probe({ url: server.url })).notes).toEqual([
      '/v1/chat/completions answers 503 at the moment: Loading model',
    ]);
  });

  it('what is no URL', async () => {
    expect(await message(probe({ url: 'ftp://x' }))).toMatch(/^InputError: .*use http:\/\/ or https:\/\//);
    expect(await message(probe({ url: 'http://' }))).toMatch(/is not a URL; write it like/);
    expect(await message(probe({ url: 'http://h', dialect: 'openai.chatt' }))).toMatch(/did you mean 'openai.chat'/);
  });
});

describe('post', () => {
  it('asks another path with the key and headers of any request', async () => {
    const seen: { url: string | undefined; key: string | undefined; team: unknown; body: string }[] = [];
    const server = await serve((req: IncomingMessage, res: ServerResponse) => {
      let body = '';
      req.on('data', (d) => {
        body += d;
      });
      req.on('end', () => {
        seen.push({ url: req.url, key: req.headers.authorization, team: req.headers['x-team'], body });
        res.end('{"count":7}');
      });
    });
    toClose.push(server);
    const answer = await post({ url: server.url, key: 'k', headers: { 'X-Team': 'a' } }, '/tokenize', { prompt: 'hi' });
    expect(answer).toMatchObject({ status: 200, body: '{"count":7}' });
    expect(seen).toEqual([{ url: '/tokenize', key: 'Bearer k', team: 'a', body: '{"prompt":"hi"}' }]);
  });
});
