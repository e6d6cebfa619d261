import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import {
  idsOf,
  joinSpans,
  partMeans,
  readSpans,
  requestOf,
  type SpanEvidence,
  SpanFile,
  spanReceiver,
  spansOfJson,
  spansOfProtobuf,
} from './index.ts';

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

/** vLLM's llm_request as its exporter sends it. */
const ATTRIBUTES: Record<string, string | number | bigint> = {
  'gen_ai.request.id': 'chatcmpl-run-7-0',
  'gen_ai.latency.time_in_queue': 0.25,
  'gen_ai.latency.time_to_first_token': 0.5,
  'gen_ai.latency.e2e': 2.5,
  'gen_ai.latency.time_in_model_prefill': 0.125,
  'gen_ai.latency.time_in_model_decode': 2,
  'gen_ai.usage.prompt_tokens': 1000n,
  'gen_ai.usage.completion_tokens': 64n,
};

const json = (attributes = ATTRIBUTES) => ({
  resourceSpans: [
    {
      resource: { attributes: [{ key: 'service.name', value: { stringValue: 'vllm-a' } }] },
      scopeSpans: [
        {
          spans: [
            {
              traceId: '0af7651916cd43dd8448eb211c80319c',
              spanId: 'b7ad6b7169203331',
              name: 'llm_request',
              startTimeUnixNano: '1790000000000000000',
              endTimeUnixNano: '1790000002500000000',
              attributes: Object.entries(attributes).map(([key, v]) => ({
                key,
                value:
                  typeof v === 'string'
                    ? { stringValue: v }
                    : typeof v === 'bigint'
                      ? { intValue: String(v) }
                      : { doubleValue: v },
              })),
            },
          ],
        },
      ],
    },
  ],
});

// A second hand's encoding of the same, by the .proto of OTLP.
const varint = (n: bigint | number): number[] => {
  const out: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(n));
  do {
    out.push(Number(rest & 0x7fn) | (rest > 0x7fn ? 0x80 : 0));
    rest >>= 7n;
  } while (rest > 0n);
  return out;
};
const bytes = (field: number, content: Iterable<number>): number[] => {
  const list = [...content];
  return [...varint((field << 3) | 2), ...varint(list.length), ...list];
};
const fixed = (field: number, write: (view: DataView) => void): number[] => {
  const view = new DataView(new ArrayBuffer(8));
  write(view);
  return [...varint((field << 3) | 1), ...new Uint8Array(view.buffer)];
};
const utf8 = (s: string) => new TextEncoder().encode(s);
const attribute = (field: number, key: string, v: string | number | bigint): number[] =>
  bytes(field, [
    ...bytes(1, utf8(key)),
    ...bytes(
      2,
      typeof v === 'string'
        ? bytes(1, utf8(v))
        : typeof v === 'bigint'
          ? [...varint(3 << 3), ...varint(v)]
          : fixed(4, (view) => view.setFloat64(0, v, true)),
    ),
  ]);
const hex = (s: string) => Buffer.from(s, 'hex');
const protobuf = (attributes = ATTRIBUTES): Uint8Array => {
  const span = [
    ...bytes(1, hex('0af7651916cd43dd8448eb211c80319c')),
    ...bytes(2, hex('b7ad6b7169203331')),
    ...bytes(5, utf8('llm_request')),
    ...varint(6 << 3),
    ...varint(2),
    ...fixed(7, (view) => view.setBigUint64(0, 1_790_000_000_000_000_000n, true)),
    ...fixed(8, (view) => view.setBigUint64(0, 1_790_000_002_500_000_000n, true)),
    ...Object.entries(attributes).flatMap(([key, v]) => attribute(9, key, v)),
  ];
  const resource = bytes(1, attribute(1, 'service.name', 'vllm-a'));
  return Uint8Array.from(
    bytes(1, [...resource, ...bytes(2, [...bytes(1, bytes(1, utf8('vllm'))), ...bytes(2, span)])]),
  );
};

const EXPECTED: SpanEvidence = {
  request: 'chatcmpl-run-7-0',
  durations: { queue: 0.25, prefill: 0.125, decode: 2, ttft: 0.5, e2e: 2.5 },
  promptTokens: 1000,
  outputTokens: 64,
  trace: '0af7651916cd43dd8448eb211c80319c',
  service: 'vllm-a',
  ended: 1_790_000_002_500,
};

describe('spans', () => {
  it('are the same out of protobuf and JSON', () => {
    const [a, b] = [spansOfProtobuf(protobuf()), spansOfJson(JSON.stringify(json()))];
    expect(a).toEqual(b);
    expect(a).toHaveLength(1);
    expect(requestOf(a[0]!)).toEqual(EXPECTED);
  });

  it('that say nothing of a request are none', () => {
    const [span] = spansOfJson(JSON.stringify(json({ 'http.method': 'POST' })));
    expect(requestOf(span!)).toBeUndefined();
    const odd = spansOfJson(
      JSON.stringify(json({ ...ATTRIBUTES, 'gen_ai.latency.e2e': -1, 'gen_ai.latency.time_in_queue': 'x' })),
    );
    expect(requestOf(odd[0]!)?.durations).toEqual({ prefill: 0.125, decode: 2, ttft: 0.5 });
  });

  it('never crash a reader: bytes and mutations of a body', () => {
    const whole = protobuf();
    const tries = (read: () => unknown): void => {
      try {
        read();
      } catch (error) {
        expect((error as Error).name).toBe('InputError');
      }
    };
    fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), (b) => tries(() => spansOfProtobuf(b))));
    fc.assert(
      fc.property(fc.nat(whole.length - 1), fc.nat(255), fc.nat(whole.length), (at, byte, end) => {
        const changed = Uint8Array.from(whole);
        changed[at] = byte;
        tries(() => spansOfProtobuf(changed.subarray(0, end)));
        tries(() => spansOfProtobuf(changed).map(requestOf));
      }),
    );
    fc.assert(fc.property(fc.json(), (text) => tries(() => spansOfJson(text))));
    tries(() =>
      spansOfJson(
        JSON.stringify({
          resourceSpans: [
            null,
            { scopeSpans: [{ spans: [null, 3, { attributes: [{ key: '__proto__', value: { intValue: 1 } }] }] }] },
          ],
        }),
      ),
    );
  });
});

describe('a receiver', () => {
  const start = async () => {
    const kept: SpanEvidence[] = [];
    const { server, counts } = spanReceiver((spans) => kept.push(...spans));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    open.push(() => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    });
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const post = (body: string | Uint8Array, headers: Record<string, string>, path = '/v1/traces') =>
      fetch(url + path, { method: 'POST', body: body as string, headers });
    return { kept, counts, post, url };
  };

  it('takes protobuf and JSON, packed or not', async () => {
    const { kept, counts, post } = await start();
    const protobufType = { 'content-type': 'application/x-protobuf' };
    expect((await post(protobuf(), protobufType)).status).toBe(200);
    expect((await post(gzipSync(protobuf()), { ...protobufType, 'content-encoding': 'gzip' })).status).toBe(200);
    const answer = await post(JSON.stringify(json()), { 'content-type': 'application/json; charset=utf-8' });
    expect([answer.status, await answer.text()]).toEqual([200, '{}']);
    expect(kept).toEqual([EXPECTED, EXPECTED, EXPECTED]);
    expect(counts).toEqual({ kept: 3, other: 0, refused: 0 });
  });

  it('refuses what is no spans, and what is too large, packed too', async () => {
    const { kept, counts, post, url } = await start();
    const type = { 'content-type': 'application/json' };
    const packed = { ...type, 'content-encoding': 'gzip' };
    const statuses = [
      await post('{', type),
      await post('{}', type),
      await post('x', { 'content-type': 'text/plain' }),
      await post('x', packed),
      await post(gzipSync(Buffer.alloc(17 * 1024 * 1024)), packed),
      await post('{}', { ...type, 'content-encoding': 'br' }),
      await post('{}', type, '/v1/metrics'),
      await fetch(`${url}/v1/traces`),
    ].map((r) => r.status);
    expect(statuses).toEqual([400, 400, 415, 400, 413, 400, 404, 405]);
    expect(kept).toEqual([]);
    expect(counts.refused).toBe(8);
  });

  it('keeps spans in a bounded file that reads back', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'goodput-spans-'));
    open.push(() => rmSync(dir, { recursive: true, force: true }));
    const path = join(dir, 'spans.jsonl');
    const file = new SpanFile(path, 2000);
    for (let i = 0; i < 30; i++) file.add([{ ...EXPECTED, request: `r${i}` }]);
    file.close();
    expect(readFileSync(path).length + readFileSync(`${path}.1`).length).toBeLessThanOrEqual(4000);
    writeFileSync(path, `${JSON.stringify(EXPECTED)}\nnot json\n{"request":1}\n`);
    expect(await readSpans(path)).toEqual({ spans: [EXPECTED], unread: 2 });
    await expect(readSpans(join(dir, 'none'))).rejects.toThrow(/cannot be read/);
  });
});

describe('joined', () => {
  const client = (operation: number, ttft: number, more = {}) => ({
    operation,
    attempt: 0,
    ids: [`run-${operation}-0`],
    ttft,
    e2e: ttft + 2,
    ...more,
  });
  const span = (request: string, durations = EXPECTED.durations): SpanEvidence => ({ request, durations });

  it("show the rest of the client's time as network and delivery, in each clock's own durations", () => {
    const joined = joinSpans(
      [client(7, 0.75), client(8, 1)],
      [span('chatcmpl-run-7-0'), span('cmpl-run-8-0-0'), span('other')],
    );
    expect(joined).toMatchObject({ withoutSpan: 0, withoutRequest: 1, ambiguous: 0, impossible: 0 });
    expect(joined.requests[0]).toMatchObject({ operation: 7, frontend: 0.125, rest: 0.25, client: { ttft: 0.75 } });
    const means = partMeans(joined.requests)!;
    expect(means).toMatchObject({
      requests: 2,
      ttft: 0.875,
      queue: 0.25,
      prefill: 0.125,
      frontend: 0.125,
      network_delivery: 0.375,
    });
    expect(means.queue + means.prefill + means.frontend + means.network_delivery).toBeCloseTo(means.ttft, 12);
    expect(partMeans(joined.requests, 0.05)).toMatchObject({ requests: 1, ttft: 1 });
    expect(partMeans([])).toBeUndefined();
  });

  it('leave out what is ambiguous, and say what cannot be', () => {
    const twice = joinSpans([client(1, 1)], [span('chatcmpl-run-1-0'), span('run-1-0')]);
    expect(twice).toMatchObject({ requests: [], ambiguous: 2, withoutSpan: 0 });
    const clients = [client(1, 1, { ids: ['same'] }), client(2, 1, { ids: ['same'] })];
    expect(joinSpans(clients, [span('same')])).toMatchObject({ requests: [], ambiguous: 1, withoutSpan: 2 });
    expect(joinSpans([client(1, 0.1)], [span('run-1-0')]).impossible).toBe(1);
  });

  it('by trace, where the ids are not the same', () => {
    const joined = joinSpans([client(1, 1, { ids: [], trace: 'abc' })], [{ ...span('x'), trace: 'abc' }]);
    expect(joined.requests).toHaveLength(1);
  });

  it('know the ways an engine names a request', () => {
    expect(idsOf('chatcmpl-goodput-ab12cd34-17-0-0f9e8d7c')).toContain('goodput-ab12cd34-17-0');
    expect(idsOf('cmpl-goodput-ab12cd34-17-0-0')).toContain('goodput-ab12cd34-17-0');
    expect(idsOf('goodput-ab12cd34-17-0')).toContain('goodput-ab12cd34-17-0');
    expect(idsOf('')).toEqual([]);
  });
});
