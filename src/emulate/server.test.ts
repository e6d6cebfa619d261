import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { Agent } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { histogramsOf, parsePrometheus } from '../wire/index.ts';
import { clusterServed, scriptedServed } from './engines.ts';
import { monotonicMillis } from './host.ts';
import { type Emulator, serve } from './server.ts';
import { ask, chat } from './testing.ts';

const folder = mkdtempSync(join(tmpdir(), 'goodput-emulate-'));
afterAll(() => rmSync(folder, { recursive: true }));
const MODEL = { name: 'm', maxModelLen: 4096, answerTokens: 8 };

describe('the API', () => {
  let emulator: Emulator;
  beforeAll(async () => {
    emulator = await serve({ model: MODEL, engine: scriptedServed({ ttft: 50, itl: 10 }, 100) });
  });
  afterAll(() => emulator.close());
  const get = (path: string) => ask(emulator.url, { path });
  const post = (path: string, body: unknown) => ask(emulator.url, { path, body });

  it('names its model, its version and its health', async () => {
    const models = JSON.parse((await get('/v1/models')).text);
    expect(models.data).toHaveLength(1);
    expect(models.data[0]).toMatchObject({ id: 'm', object: 'model', max_model_len: 4096, owned_by: 'vllm' });
    for (const path of ['/health', '/ping']) expect((await get(path)).status).toBe(200);
    expect(JSON.parse((await get('/version?x=1')).text)).toEqual({ version: expect.stringMatching(/^\d+\.\d+\.\d+$/) });
  });

  it('streams a chat: role, tokens, the finish with the last token, usage, [DONE]', async () => {
    const { record, text, headers } = await post(
      '/v1/chat/completions',
      chat({ stream_options: { include_usage: true } }),
    );
    expect(headers['content-type']).toBe('text/event-stream; charset=utf-8');
    expect(record).toMatchObject({ outcome: 'completed', finishReason: 'length', model: 'm' });
    expect(record.usage).toMatchObject({ input: 3, output: 6 });
    expect(record.timeline.length).toBe(6);
    const frames = text.split('\n\n').filter((f) => f !== '');
    expect(frames).toHaveLength(9);
    expect(JSON.parse(frames[0]!.slice(6)).choices[0].delta).toEqual({ role: 'assistant', content: '' });
    expect(JSON.parse(frames[6]!.slice(6)).choices[0]).toMatchObject({ finish_reason: 'length', stop_reason: null });
    expect(JSON.parse(frames[7]!.slice(6))).toMatchObject({
      choices: [],
      usage: { prompt_tokens: 3, completion_tokens: 6, total_tokens: 9 },
    });
    expect(frames[8]).toBe('data: [DONE]');
  });

  it('sends no usage unasked, and counts each chunk when asked to', async () => {
    const plain = await post('/v1/chat/completions', chat());
    expect(plain.record.usage).toBeUndefined();
    const options = { include_usage: true, continuous_usage_stats: true };
    for (const path of ['/v1/chat/completions', '/v1/completions']) {
      const { record } = await post(path, { ...chat(), prompt: 'one two three', stream_options: options });
      expect([...record.timeline.tokens], path).toEqual([1, 1, 1, 1, 1, 1]);
    }
    const ids = await post('/v1/completions', { prompt: 'a', max_tokens: 2, stream: true, return_token_ids: true });
    expect([...ids.text.matchAll(/"token_ids":\[(\d+)\]/g)]).toHaveLength(2);
  });

  it('keeps choices apart', async () => {
    const { record } = await post('/v1/chat/completions', chat({ n: 3, stream_options: { include_usage: true } }));
    expect(record.outcome).toBe('completed');
    expect(record.usage?.output).toBe(18);
    for (const choice of [0, 1, 2]) expect(record.timeline.choice.filter((c) => c === choice)).toHaveLength(6);
  });

  it('answers whole, with words that are as many as the tokens it counts', async () => {
    for (const path of ['/v1/chat/completions', '/v1/completions']) {
      const { text, record } = await post(path, { ...chat({ stream: false }), prompt: 'one two three' });
      const answer = JSON.parse(text);
      const said: string = answer.choices[0].message?.content ?? answer.choices[0].text;
      expect(said.split(' '), path).toHaveLength(6);
      expect(answer.usage).toEqual({ prompt_tokens: 3, completion_tokens: 6, total_tokens: 9 });
      expect(record).toMatchObject({ outcome: 'completed', streamed: false });
      const counted = JSON.parse((await post('/tokenize', { prompt: said })).text);
      expect(counted.count).toBe(6);
      expect(JSON.parse((await post('/detokenize', { tokens: counted.tokens })).text).prompt).toBe(said);
    }
  });

  it('ends an answer left open with an end token, unless it may not end', async () => {
    const open = await post(
      '/v1/chat/completions',
      chat({ max_tokens: undefined, stream_options: { include_usage: true } }),
    );
    expect(open.record).toMatchObject({ finishReason: 'stop', usage: { output: 8 } });
    expect(open.record.timeline.length).toBe(7);
    const longer = await post('/v1/chat/completions', chat({ max_tokens: undefined, min_tokens: 20 }));
    expect(longer.record.timeline.length).toBe(19);
    const limited = await post('/v1/chat/completions', chat({ max_tokens: undefined, max_completion_tokens: 2 }));
    expect(limited.record).toMatchObject({ finishReason: 'length' });
    const short = await post('/v1/completions', { prompt: 'a', stream: true });
    expect(short.record.timeline.length).toBe(16);
  });

  it('counts a prompt the same however it is given', async () => {
    const usage = async (body: object) =>
      JSON.parse((await post('/v1/completions', { max_tokens: 1, ...body })).text).usage.prompt_tokens;
    expect(await usage({ prompt: '  one\ttwo\n three ' })).toBe(3);
    expect(await usage({ prompt: [5, 6, 7, 8] })).toBe(4);
    expect(await usage({ prompt: ['one two'] })).toBe(2);
    const parts = [
      { role: 'user', content: [{ type: 'text', text: 'one two' }] },
      { role: 'user', content: 'three' },
    ];
    const counted = await post('/tokenize', { messages: parts });
    expect(JSON.parse(counted.text).count).toBe(3);
  });

  const refusals: readonly [string, unknown, number, string, string?][] = [
    ['another model', chat({ model: 'gpt' }), 404, 'The model `gpt` does not exist.'],
    ['broken JSON', '{"model":', 400, 'json_invalid'],
    ['no messages', { model: 'm' }, 400, 'Field required'],
    ['empty messages', chat({ messages: [] }), 400, 'must not be empty'],
    ['no prompt', { model: 'm' }, 400, 'Field required', '/v1/completions'],
    ['two prompts', { prompt: ['a', 'b'] }, 400, 'one prompt', '/v1/completions'],
    ['too much output', chat({ max_tokens: 5000 }), 400, "This model's maximum context length is 4096 tokens."],
    [
      'too long a prompt',
      chat({ max_tokens: undefined, messages: [{ role: 'user', content: 'a '.repeat(4096) }] }),
      400,
      'your request has 4096 input tokens',
    ],
    ['no output', chat({ max_tokens: 0 }), 400, 'max_tokens must be at least 1, got 0.'],
    ['a word for a number', chat({ max_tokens: 'ten' }), 400, 'valid integer'],
    ['no choices', chat({ n: 0 }), 400, 'n must be at least 1'],
    [
      'stream options without a stream',
      chat({ stream: false, stream_options: { include_usage: true } }),
      400,
      'stream=True',
    ],
    ['an unknown fault', chat(), 400, "did you mean 'reset'?"],
  ];
  for (const [what, body, status, words, path] of refusals) {
    it(`refuses ${what} as vLLM does`, async () => {
      const headers = what === 'an unknown fault' ? { 'x-goodput-fault': 'rset' } : {};
      const answer = await ask(emulator.url, { path: path ?? '/v1/chat/completions', body, headers });
      expect(answer.status).toBe(status);
      const { error } = JSON.parse(answer.text);
      expect(error.message).toContain(words);
      expect(error).toMatchObject({ code: status, type: expect.any(String) });
    });
  }

  it('knows no other paths and methods', async () => {
    expect((await get('/v1/nothing')).status).toBe(404);
    expect((await get('/__proto__')).status).toBe(404);
    expect((await get('/v1/completions')).status).toBe(405);
  });

  it('refuses a body beyond 16 MiB without reading it', async () => {
    const headers = { 'content-length': String((16 << 20) + 1) };
    const answer = await ask(emulator.url, { path: '/v1/completions', method: 'POST', headers });
    expect(answer.status).toBe(413);
  });

  it('names the answer by the caller’s request id', async () => {
    const { text, headers } = await ask(emulator.url, { body: chat(), headers: { 'x-request-id': 'abc-1' } });
    expect(text).toContain('"id":"chatcmpl-abc-1"');
    expect(headers['x-request-id']).toBe('abc-1');
  });

  it('serves requests one after another on one connection', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let i = 0; i < 3; i++) {
      const { record } = await ask(emulator.url, { body: chat({ stream: i !== 1 }), agent });
      expect(record.outcome).toBe('completed');
    }
    agent.destroy();
  });

  it('answers a client that speaks HTTP/1.0 without chunks, and pipelined requests in order', async () => {
    const body = JSON.stringify(chat({ max_tokens: 2 }));
    const request = (version: string, id: string): string =>
      `POST /v1/chat/completions HTTP/${version}\r\nhost: x\r\nx-request-id: ${id}\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
    const old = await raw(emulator.port, [request('1.0', 'old')], (text) => text.includes('[DONE]'));
    expect(old).not.toContain('transfer-encoding: chunked');
    expect(old.slice(old.indexOf('\r\n\r\n') + 4)).toMatch(/^data: /);
    const both = await raw(
      emulator.port,
      [request('1.1', 'first') + request('1.1', 'second')],
      (text) => text.split('data: [DONE]\n\n\r\n0\r\n\r\n').length === 3,
    );
    expect(both.indexOf('chatcmpl-first')).toBeLessThan(both.indexOf('[DONE]'));
    expect(both.indexOf('chatcmpl-second')).toBeGreaterThan(both.indexOf('[DONE]'));
  });
});

describe('a running emulator', () => {
  it('takes a request back from the engine when its client goes', async () => {
    const path = join(folder, 'aborted.ndjson');
    const emulator = await serve({
      model: MODEL,
      engine: clusterServed({ model: 'llama-3.1-8b', gpu: 'h100-sxm', speed: 10 }).engine,
      stamps: path,
    });
    const gone = ask(emulator.url, {
      body: chat({ max_tokens: 4000 }),
      onRead: (text, drop) => text.includes('content":"') && drop(),
    });
    expect((await gone).record.outcome).toBe('failed');
    const idle = await until(async () =>
      /vllm:num_requests_running\{[^}]*\} 0\.0/.test((await ask(emulator.url, { path: '/metrics' })).text),
    );
    expect(idle).toBe(true);
    expect(emulator.open()).toBe(0);
    expect(emulator.metricsText()).toMatch(/vllm:e2e_request_latency_seconds_count\{[^}]*\} 0\.0/);
    await emulator.close();
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({ outcome: 'cancelled' });
  });

  it('refuses with 503 when its queue is full', async () => {
    const { engine } = clusterServed({ model: 'llama-3.1-8b', gpu: 'h100-sxm', maxNumSeqs: 1, speed: 10 });
    const emulator = await serve({ model: MODEL, engine, maxQueue: 1 });
    const drops: (() => void)[] = [];
    const open = () =>
      ask(emulator.url, { body: chat({ max_tokens: 4000 }), onRead: (_, drop) => void drops.push(drop) });
    const first = open();
    await until(async () => drops.length > 0);
    const second = open();
    await until(async () => /vllm:num_requests_waiting\{[^}]*\} 1\.0/.test(emulator.metricsText()));
    const third = await open();
    expect(third.record).toMatchObject({ outcome: 'rejected', reason: 'http-503' });
    await emulator.close();
    expect((await first).record.outcome).toBe('failed');
    expect((await second).record.outcome).toBe('failed');
  });

  it('runs as many times as fast as it is told', async () => {
    const emulator = await serve({ model: MODEL, engine: scriptedServed({ ttft: 20_000, itl: 1000 }, 1000) });
    const { record } = await ask(emulator.url, { body: chat({ max_tokens: 30 }) });
    // 49 s of script. Only that it did not take them, nor came before its time, is asked.
    expect(record.stamps.lastOutput! - record.stamps.dispatched!).toBeGreaterThanOrEqual(49);
    expect(record.stamps.lastOutput! - record.stamps.dispatched!).toBeLessThan(20_000);
    await emulator.close();
  });

  it('writes when each token was sent, on the clock a client can read', async () => {
    const path = join(folder, 'stamps.ndjson');
    const emulator = await serve({ model: MODEL, engine: scriptedServed({ ttft: 5, itl: 2 }), stamps: path });
    const before = monotonicMillis();
    const answer = await ask(emulator.url, { body: chat({ max_tokens: 20 }), headers: { 'x-request-id': 'r1' } });
    await ask(emulator.url, { body: chat({ n: 2 }), headers: { 'x-goodput-fault': 'early-eof' } });
    await emulator.close();
    const [first, second] = readFileSync(path, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(first).toMatchObject({ id: 'chatcmpl-r1', request: 0, faults: [], outcome: 'completed', prompt_tokens: 3 });
    expect(first.tokens).toEqual(new Array(20).fill(1));
    expect(first.received_ms).toBeGreaterThan(before);
    for (let i = 0; i < 20; i++) {
      // What was received was sent before; both clocks are one.
      expect(answer.record.timeline.at[i]! + 0.001).toBeGreaterThanOrEqual(first.stamps_ms[i]);
    }
    expect(second).toMatchObject({ request: 1, faults: ['early-eof'], outcome: 'early-eof' });
    expect(second.stamps_ms.length).toBe(second.choice.length);
  });

  it('says in one line why it cannot start', async () => {
    const emulator = await serve({ model: MODEL, engine: scriptedServed({ ttft: 1, itl: 1 }) });
    const again = (more: object) => serve({ model: MODEL, engine: scriptedServed({ ttft: 1, itl: 1 }), ...more });
    await expect(again({ port: emulator.port })).rejects.toThrow('something listens on');
    await expect(again({ host: '203.0.113.9' })).rejects.toThrow('not an address of this machine');
    await expect(again({ stamps: join(folder, 'no/such/folder') })).rejects.toThrow('--stamps');
    await emulator.close();
    expect(() => clusterServed({ model: 'llama-3.1-8c', gpu: 'h100-sxm' })).toThrow("did you mean 'llama-3.1-8b'");
    expect(() => clusterServed({ model: 'llama-3.1-8b', gpu: 'h100-sxm', kvBlocks: 10, maxModelLen: 400 })).toThrow(
      '160 tokens',
    );
  });

  it('lets open streams end within its grace, and cuts them without', async () => {
    const emulator = await serve({ model: MODEL, engine: scriptedServed({ ttft: 10, itl: 2 }) });
    let reads = 0;
    const open = ask(emulator.url, { body: chat({ max_tokens: 50 }), onRead: () => void reads++ });
    await until(async () => reads > 0);
    await emulator.close(30_000);
    expect((await open).record.outcome).toBe('completed');
    await expect(ask(emulator.url, { path: '/health' })).resolves.toMatchObject({ status: 0 });
  });
});

describe('the metrics', () => {
  it('agree with each other and with what was served', async () => {
    const { engine, maxModelLen } = clusterServed({ model: 'llama-3.1-8b', gpu: 'h100-sxm', speed: 20 });
    const emulator = await serve({ model: { ...MODEL, maxModelLen }, engine });
    const prompt = 'shared '.repeat(64);
    const outputs = [1, 5, 20, 40];
    for (const max_tokens of outputs) {
      await ask(emulator.url, { path: '/v1/completions', body: { prompt, max_tokens, stream: true } });
    }
    await ask(emulator.url, { path: '/v1/completions', body: { prompt, max_tokens: 10, n: 2 } });
    const families = new Map(
      parsePrometheus((await ask(emulator.url, { path: '/metrics' })).text).map((f) => [f.name, f]),
    );
    await emulator.close();
    const value = (name: string, labels: object = {}): number =>
      families.get(name)!.samples.find((s) => Object.entries(labels).every(([k, v]) => s.labels[k] === v))!.value;
    const histogram = (name: string) => histogramsOf(families.get(name)!)[0]!;
    const generated = outputs.reduce((a, b) => a + b) + 20;
    expect(value('vllm:generation_tokens_total')).toBe(generated);
    expect(value('vllm:request_success_total', { finished_reason: 'length' })).toBe(6);
    expect(value('vllm:request_success_total', { finished_reason: 'abort' })).toBe(0);
    expect(families.get('vllm:iteration_tokens_total')!.type).toBe('histogram');
    const ttft = histogram('vllm:time_to_first_token_seconds');
    const itl = histogram('vllm:inter_token_latency_seconds');
    expect(ttft.count).toBe(6);
    expect(generated - itl.count!).toBe(ttft.count); // one token a step
    const sum = (name: string): number => histogram(`vllm:${name}`).sum!;
    expect(sum('request_inference_time_seconds')).toBeCloseTo(
      sum('request_prefill_time_seconds') + sum('request_decode_time_seconds'),
      9,
    );
    expect(sum('e2e_request_latency_seconds')).toBeCloseTo(
      sum('request_queue_time_seconds') + sum('request_inference_time_seconds'),
      9,
    );
    expect(histogram('vllm:request_generation_tokens')).toMatchObject({ count: 6, sum: generated });
    expect(value('vllm:prefix_cache_hits_total')).toBeGreaterThan(0);
    expect(value('vllm:prefix_cache_hits_total')).toBeLessThan(value('vllm:prefix_cache_queries_total'));
    expect(value('vllm:cache_config_info', { block_size: '16' })).toBe(1);
    for (const family of families.values()) expect(family.help, family.name).toBeTruthy();
    const running = families.get('vllm:num_requests_running')!;
    expect(running.samples[0]!.labels).toEqual({ engine: '0', model_name: 'm' });
  });
});

/** Polls until `done` holds; false after ten seconds. */
async function until(done: () => Promise<boolean>): Promise<boolean> {
  for (const deadline = monotonicMillis() + 10_000; monotonicMillis() < deadline; ) {
    if (await done()) return true;
    await new Promise((resolve) => setImmediate(resolve));
  }
  return false;
}

function raw(port: number, writes: readonly string[], done: (text: string) => boolean): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(port, '127.0.0.1', () => {
      for (const write of writes) socket.write(write);
    });
    socket.on('data', (bytes) => {
      text += bytes.toString();
      if (done(text)) socket.destroy();
    });
    socket.on('close', () => resolve(text));
    socket.on('error', reject);
  });
}
