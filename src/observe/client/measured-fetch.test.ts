import OpenAI from 'openai';
import { afterEach, describe, expect, it } from 'vitest';
import { contractOf, type RequestRecord } from '../../core/index.ts';
import { type Emulator, parseFault, scriptedServed, serve } from '../../emulate/index.ts';
import type { FinalOperation } from '../cohorts/index.ts';
import { type MeasuredFetchOptions, measuredFetch } from './index.ts';

const contract = contractOf({ ttft: 20_000 }, { deadline: 60_000 });
const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function emulator(faults: readonly string[] = []): Promise<Emulator> {
  const server = await serve({
    model: { name: 'm', maxModelLen: 4096, answerTokens: 5 },
    engine: scriptedServed({ ttft: 5, itl: 2, stagger: 0 }, 1),
    faults: faults.map(parseFault),
  });
  closers.push(() => server.close());
  return server;
}

function watch(options: MeasuredFetchOptions = {}) {
  const records: RequestRecord[] = [];
  const finals: FinalOperation[] = [];
  const fetch = measuredFetch(
    contract,
    { add: (r) => void records.push(r) },
    {
      listeners: [{ final: (f) => void finals.push(f) }],
      ...options,
    },
  );
  closers.push(() => fetch.close());
  return { fetch, records, finals };
}

describe('measuredFetch', () => {
  it('measures what the openai package streams, from the caller on', async () => {
    const { url } = await emulator();
    const { fetch, finals } = watch();
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'sk-secret-secret', fetch });
    const stream = await client.chat.completions.create({
      model: 'm',
      messages: [{ role: 'user', content: 'a prompt nobody keeps' }],
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = '';
    for await (const part of stream) text += part.choices[0]?.delta?.content ?? '';
    expect(finals).toHaveLength(1);
    const { record, verdict, metrics } = finals[0] as FinalOperation;
    expect([record.outcome, verdict.class]).toEqual(['completed', 'good']);
    // The emulator's usage counts the end token, which nobody sees.
    expect(metrics.n).toBe(text.trim().split(/\s+/).length);
    expect(record.streamed).toBe(true);
    expect(JSON.stringify(finals[0])).not.toMatch(/prompt nobody keeps|sk-secret/);
    expect(fetch.live().total.outcomes.good).toBe(1);
    expect(fetch.live().boundary).toBe('client');
  });

  it('measures an answer that was not streamed, and the rest passes untouched', async () => {
    const { url } = await emulator();
    const { fetch, finals } = watch();
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'k', fetch });
    const answer = await client.chat.completions.create({ model: 'm', messages: [{ role: 'user', content: 'x' }] });
    expect(answer.choices[0]?.message.content?.length).toBeGreaterThan(0);
    expect((await client.models.list()).data.map((m) => m.id)).toEqual(['m']);
    expect(finals.map((f) => [f.record.outcome, f.record.streamed])).toEqual([['completed', false]]);
  });

  it("joins the SDK's own retries to one operation", async () => {
    let calls = 0;
    const { url } = await emulator();
    const { fetch, finals } = watch({
      fetch: async (input, init) =>
        ++calls === 1
          ? new Response('{"error":{"message":"queue full"}}', {
              status: 503,
              headers: { 'content-type': 'application/json', 'retry-after-ms': '1' },
            })
          : globalThis.fetch(input, init),
    });
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'k', fetch, maxRetries: 2 });
    const ask = { model: 'm', messages: [{ role: 'user' as const, content: 'x' }], stream: true as const };
    for await (const _ of await client.chat.completions.create(ask));
    for await (const _ of await client.chat.completions.create(ask));
    expect(finals.map((f) => [f.record.outcome, f.record.attempts])).toEqual([
      ['completed', 2],
      ['completed', 1],
    ]);
  });

  it('says of a caller that left that it did, and of a server that cannot be reached that it cannot', async () => {
    const { url } = await emulator();
    const { fetch, finals } = watch();
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'k', fetch, maxRetries: 0 });
    const ask = {
      model: 'm',
      messages: [{ role: 'user' as const, content: 'x' }],
      stream: true as const,
      max_tokens: 4000,
    };
    const stream = await client.chat.completions.create(ask);
    for await (const part of stream) if (part.choices[0]?.delta?.content) break;
    const dead = new OpenAI({ baseURL: 'http://127.0.0.1:1/v1', apiKey: 'k', fetch, maxRetries: 0 });
    await expect(dead.chat.completions.create(ask)).rejects.toThrow();
    fetch.close(); // without a retry the second would wait for one
    expect(finals.map((f) => [f.record.outcome, f.record.reason])).toEqual([
      ['cancelled', 'client-abort'],
      ['failed', 'connect'],
    ]);
  });

  it('lets no sink or listener touch the traffic', async () => {
    const { url } = await emulator();
    const broken = (): never => {
      throw new Error('a full disk');
    };
    const fetch = measuredFetch(contract, { add: broken }, { listeners: [{ final: broken }] });
    closers.push(() => fetch.close());
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'k', fetch });
    const answer = await client.chat.completions.create({ model: 'm', messages: [{ role: 'user', content: 'x' }] });
    expect(answer.choices).toHaveLength(1);
    expect(fetch.live().records.dropped).toBe(1);
    expect(fetch.live().records.listener_failures).toBe(1);
  });
});
