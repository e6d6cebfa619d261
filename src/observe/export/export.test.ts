import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { type Contract, contractOf, judgeRecord, LEDGER, Recorder } from '../../core/index.ts';
import { histogramsOf } from '../../wire/prometheus/family.ts';
import { prometheusText } from '../../wire/prometheus/write.ts';
import { type FinalOperation, LiveCohorts, type TraceContext } from '../cohorts/index.ts';
import { METRICS, OperationMetrics, operationSpan, otlpExport } from './index.ts';
import { otelName } from './otlp-metrics.ts';

const contract = contractOf({ ttft: 400, tpot: 50 }, { name: 'chat' });
const EPOCH = 1_700_000_000_000;

interface Told {
  readonly ttft?: number;
  readonly gaps?: readonly number[];
  readonly contract?: Contract;
  readonly trace?: TraceContext;
  readonly outcome?: 'cancelled';
}

/** Arrives at `at`; no TTFT: refused with 503. */
function operation(number: number, at: number, told: Told): FinalOperation {
  const spec = { operation: number, attempt: 0, class: 'default', inputTokens: 0, outputTokens: 0, choices: 1 };
  const recorder = new Recorder({ ...spec, stream: true, ignoreEos: false }, at);
  recorder.dispatched(at + 1);
  let t = at + (told.ttft ?? 5);
  if (told.outcome === 'cancelled') recorder.giveUp(t, 'cancelled', 'caller');
  else if (told.ttft === undefined) recorder.ended(t, { kind: 'http-error', status: 503, detail: 'full' });
  else {
    recorder.event(t, { outputs: [{ choice: 0, kind: 'text', tokens: 1 }] }, false);
    for (const gap of told.gaps ?? [20])
      recorder.event((t += gap), { outputs: [{ choice: 0, kind: 'text', tokens: 1 }] }, false);
    recorder.event(t, { outputs: [], finishes: [{ choice: 0, reason: 'stop' }] }, false);
    recorder.ended(t, { kind: 'closed' });
  }
  const record = recorder.record();
  const under = told.contract ?? contract;
  return {
    operation: number,
    at,
    class: 'default',
    tenant: 'acme',
    record,
    attempts: [record],
    ...judgeRecord(record, under),
    contract: under,
    groupedBy: told.trace ? 'trace' : 'none',
    ...(told.trace && { trace: told.trace }),
  };
}

function told(operations: readonly FinalOperation[]) {
  const metrics = new OperationMetrics([contract]);
  const cohorts = new LiveCohorts({
    boundary: 'proxy',
    instance: '127.0.0.1:1',
    epochWall: EPOCH,
    contractFor: () => contract,
  });
  for (const op of operations)
    for (const listener of [metrics, cohorts]) {
      listener.arrived(op);
      listener.final(op);
    }
  const records = {
    written: 0,
    pending: 0,
    dropped: 3,
    problem: null,
    passed_through: 0,
    unreadable: {},
    listener_failures: 0,
  };
  const snapshot = cohorts.snapshot({ now: 5000, inFlight: [], queued: 0, upstreams: [], records });
  return { metrics, families: metrics.families(snapshot), snapshot };
}

const MIXED = [
  operation(0, 0, { ttft: 100 }),
  operation(1, 10, { ttft: 400 }),
  operation(2, 20, { ttft: 401 }),
  operation(3, 30, { ttft: 100, gaps: [60, 60] }),
  operation(4, 40, {}),
];

describe('metrics of real traffic', () => {
  const { families } = told(MIXED);
  const family = (key: keyof typeof METRICS) => families.find((f) => f.name === METRICS[key].name);
  const total = (key: keyof typeof METRICS): number =>
    (family(key)?.samples ?? []).reduce((sum, s) => sum + s.value, 0);

  it('count outcomes that add up to the final operations, and judge jointly', () => {
    expect(total('arrived')).toBe(5);
    expect(total('final')).toBe(5);
    expect(total('judged')).toBe(5);
    expect(total('good')).toBe(2);
    const byOutcome = Object.fromEntries(family('final')!.samples.map((s) => [s.labels.outcome, s.value]));
    expect(byOutcome).toEqual({ good: 2, late: 2, rejected: 1 });
    for (const outcome of Object.keys(byOutcome)) expect(LEDGER).toContain(outcome);
    expect(Object.fromEntries(family('missed')!.samples.map((s) => [s.labels.limit, s.value]))).toEqual({
      ttft: 1,
      tpot: 1,
    });
  });

  it("count exactly what is within the contract's own limit: it is a bound", () => {
    const [ttft] = histogramsOf(family('ttft')!);
    expect(ttft?.counts[ttft.bounds.indexOf(0.4)]).toBe(3);
    expect(ttft?.count).toBe(4);
    const [e2e] = histogramsOf(family('e2e')!);
    expect(e2e?.count).toBe(4);
  });

  it('leave what the contract excludes out of the denominator, not out of the outcomes', () => {
    const lenient = contractOf({ ttft: 400 }, { cases: { ...contract.cases, cancelled: 'observed' } });
    const { families: found } = told([operation(0, 0, { outcome: 'cancelled', contract: lenient })]);
    const of = (key: keyof typeof METRICS) => found.find((f) => f.name === METRICS[key].name)?.samples[0]?.value;
    expect([of('final'), of('judged'), of('good')]).toEqual([1, 0, 0]);
  });

  it('are there at 0 from the first arrival on, so that a share is defined', () => {
    const metrics = new OperationMetrics([contract]);
    metrics.arrived({ operation: 0, at: 0, class: 'default', tenant: '' });
    const text = prometheusText(metrics.families(told([]).snapshot));
    expect(text).toContain('goodput_operations_good_total{class="default",tenant=""} 0');
    expect(text).toContain('goodput_records_dropped_total 3');
  });
});

describe('spans', () => {
  it('carry the stamps as events and the verdict as attributes', () => {
    const span = operationSpan(operation(0, 250, { ttft: 401 }), EPOCH);
    expect(span.start).toBe(EPOCH + 250);
    expect(span.events.map((e) => e.name)).toContain('goodput.first_output');
    expect(span.events.find((e) => e.name === 'goodput.first_output')?.at).toBe(EPOCH + 651);
    expect(span.attributes).toMatchObject({
      'goodput.outcome': 'late',
      'goodput.missed': ['ttft'],
      'goodput.ttft_ms': 401,
    });
    expect(span.error).toBeUndefined();
    expect(operationSpan(operation(0, 0, {}), EPOCH).error).toBe('http-503');
  });

  it('translate names as Prometheus does', () => {
    expect(otelName('goodput_ttft_seconds')).toBe('goodput.ttft');
    expect(otelName('goodput_operations_good_total')).toBe('goodput.operations.good');
  });
});

/** What of an OTLP/JSON body is looked at. */
interface Received {
  readonly resourceSpans: { scopeSpans: { spans: Record<string, unknown>[] }[] }[];
  readonly resourceMetrics: { scopeMetrics: { metrics: ReceivedMetric[] }[] }[];
}
interface ReceivedMetric {
  readonly name: string;
  readonly unit: string;
  readonly sum?: { isMonotonic: boolean; dataPoints: { asDouble: number }[] };
  readonly histogram?: { dataPoints: { count: string | number }[] };
}

describe('OTLP', () => {
  it('reaches a collector: the counts of a scrape, and a span under the caller’s', async () => {
    const bodies: { path: string; body: Received }[] = [];
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (c: Buffer) => chunks.push(c));
      request.on('end', () => {
        bodies.push({ path: request.url ?? '', body: JSON.parse(Buffer.concat(chunks).toString()) });
        response.setHeader('content-type', 'application/json').end('{}');
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { families } = told(MIXED);
    const exported = await otlpExport({
      endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      service: 'goodput-proxy',
      version: '0',
      epochWall: EPOCH,
      wall: () => EPOCH + 5000,
      families: () => families,
    });
    const trace = { traceId: 'a'.repeat(32), parentId: 'b'.repeat(16), sampled: true };
    exported.listener.final(operation(7, 100, { ttft: 90, trace }));
    await exported.flush();
    await exported.close();
    server.closeAllConnections();
    server.close();

    const spans = bodies
      .filter((b) => b.path === '/v1/traces')
      .flatMap((b) => b.body.resourceSpans[0]?.scopeSpans[0]?.spans ?? []);
    expect(spans).toHaveLength(1);
    expect(spans[0]).toMatchObject({ traceId: trace.traceId, parentSpanId: trace.parentId });
    const metrics = bodies
      .find((b) => b.path === '/v1/metrics')
      ?.body.resourceMetrics[0]?.scopeMetrics.flatMap((s) => s.metrics);
    const good = metrics?.find((m) => m.name === 'goodput.operations.good')?.sum;
    expect(good?.isMonotonic).toBe(true);
    expect(good?.dataPoints[0]?.asDouble).toBe(2);
    const ttft = metrics?.find((m) => m.name === 'goodput.ttft');
    expect(ttft?.unit).toBe('s');
    expect(Number(ttft?.histogram?.dataPoints[0]?.count)).toBe(4);
  });

  it('refuses what is no URL', async () => {
    const options = {
      endpoint: 'collector',
      service: 's',
      version: '0',
      epochWall: 0,
      wall: () => 0,
      families: () => [],
    };
    await expect(otlpExport(options)).rejects.toThrow(/give a URL/);
  });
});
