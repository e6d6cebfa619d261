import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CohortReducer, contractOf, type RequestRecord, ThroughputReducer, timelineOf } from '../../core/index.ts';
import { importAll } from '../../store/import/testing.ts';
import { buildReport } from '../build.ts';
import { CSV_COLUMNS, csvHeader, csvRow, type Definition, reportMarkdown, SeenReducer, TOOL_FORMATS } from './index.ts';

const contract = contractOf({ ttft: 90, tpot: 50 });
const window = { start: 0, end: 4000 };

/** Queued 20 ms in the client, role chunk 5 ms after dispatch, then output from 100 ms on, one chunk of two tokens each 20 ms. */
function record(operation: number, more: Partial<RequestRecord> = {}): RequestRecord {
  const start = 1000 * operation;
  const at = [100, 120, 140, 160].map((t) => start + 20 + t);
  return {
    operation,
    attempt: 0,
    attempts: 1,
    lostHedge: false,
    class: 'default',
    asked: { input: 10, output: 8, choices: 1, stream: true },
    stamps: {
      scheduled: start,
      dispatched: start + 20,
      firstEvent: start + 25,
      firstOutput: at[0]!,
      firstAnswer: at[0]!,
      lastOutput: at[3]!,
      ended: start + 190,
    },
    timeline: timelineOf(at),
    streamed: true,
    usage: { input: 10, output: 8 },
    unseenEndTokens: 0,
    outcome: 'completed',
    reason: '',
    detail: '',
    phase: 'done',
    finish: 'stop',
    impliedEnd: false,
    events: 6,
    coalesced: 0,
    unclassified: 0,
    ...more,
  };
}
const records = [
  record(0),
  record(1),
  record(2, { outcome: 'truncated', reason: 'no-finish' }),
  record(3, {
    outcome: 'failed',
    reason: 'http-500',
    timeline: timelineOf([]),
    stamps: { scheduled: 3000, dispatched: 3020, ended: 3030 },
  }),
];

function input() {
  const cohort = new CohortReducer(contract, window);
  const throughput = new ThroughputReducer(window);
  const seen = new SeenReducer(window);
  for (const r of records) {
    cohort.add(r);
    throughput.add(r);
    seen.add(r);
  }
  const report = buildReport({
    contract,
    cohort: cohort.finish(),
    throughput: throughput.finish(),
    facts: { name: 'a|b' },
  });
  return { contract, report, seen: seen.finish().seen, name: 'test' };
}
const definition = (shape: object, figure: string): Definition =>
  (shape as { _definitions: Definition[] })._definitions.find((d) => d.figure === figure)!;

describe('vllm', () => {
  const shape = TOOL_FORMATS.vllm(input()) as Record<string, unknown>;
  it('takes the role chunk for the first token, from dispatch', () => {
    expect(definition(shape, 'median_ttft_ms')).toMatchObject({
      theirs: 5,
      ours: 120,
      ours_key: 'metrics.ttft_ms.p50',
      differs: expect.stringContaining('role chunk') as string,
    });
  });
  it('counts gaps of chunks, the one after the role chunk among them', () => {
    expect(shape.itls).toMatchObject([[0.095, 0.02, 0.02, 0.02], {}, {}, []]);
    expect(definition(shape, 'median_tpot_ms')).toMatchObject({ theirs: (160 - 5) / 7, ours: 60 / 7 });
  });
  it('counts a stream cut short as completed, so its goodput is higher', () => {
    expect(shape).toMatchObject({ completed: 3, failed: 1 });
    // 3 good there in the 3.01 s from first dispatch to last end; here late by TTFT, all of them.
    expect(definition(shape, 'request_goodput').theirs).toBeCloseTo(3 / 3.01, 9);
    expect(definition(shape, 'request_goodput').ours).toBe(0);
  });
  it('is read back by the importer', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'goodput-format-'));
    try {
      for (const tool of ['vllm', 'guidellm'] as const) {
        const path = join(dir, `${tool}.json`);
        writeFileSync(path, JSON.stringify(TOOL_FORMATS[tool](input())));
        const { records: again } = await importAll(path);
        expect(again).toHaveLength(4);
        expect(again.filter((r) => r.outcome === 'completed')).toHaveLength(3);
        expect(again[0]!.stamps.lastOutput! - again[0]!.stamps.dispatched!).toBeCloseTo(160, 3);
      }
    } finally {
      rmSync(dir, { recursive: true });
    }
  });
});

describe('guidellm', () => {
  const shape = TOOL_FORMATS.guidellm(input());
  it('spreads TTFT over the tokens in TPOT, and calls our TPOT ITL', () => {
    expect(definition(shape, 'time_per_output_token_ms.median')).toMatchObject({ theirs: 160 / 8, ours: 60 / 7 });
    expect(definition(shape, 'inter_token_latency_ms.median').theirs).toBeCloseTo(60 / 7, 9);
  });
  it('gives latency in seconds beside ours in seconds', () => {
    expect(definition(shape, 'request_latency.median')).toMatchObject({ theirs: 0.17, ours: 0.19 });
  });
});

describe('aiperf', () => {
  const shape = TOOL_FORMATS.aiperf(input()) as Record<string, { avg: number }>;
  it('ends a request with its last output', () => {
    expect(shape.request_latency!.avg).toBe(160);
    expect(shape.inter_chunk_latency!.avg).toBe(20);
    expect(shape.time_to_first_token!.avg).toBe(100);
  });
  it('has errors in its good fraction', () => {
    expect(shape.good_request_fraction!.avg).toBe(0); // TTFT 100 > 90
    expect(shape.error_request_count!.avg).toBe(1);
  });
});

it('every definition that is not ours says what differs', () => {
  for (const make of Object.values(TOOL_FORMATS)) {
    for (const d of (make(input()) as { _definitions: Definition[] })._definitions)
      expect(d.differs, d.figure).not.toBe('');
  }
});

describe('csv', () => {
  it('is a row an operation with as many cells as columns', () => {
    const text = csvHeader() + records.map((r) => csvRow(r, contract, window)).join('');
    const lines = text.trimEnd().split('\r\n');
    expect(lines).toHaveLength(5);
    for (const line of lines) expect(line.split(',')).toHaveLength(CSV_COLUMNS.length);
    expect(lines[1]).toMatch(/^0,true,default,,,1,0,20,25,120,180,190,120,120,8\.57\d+,20,180,190,4,8,usage/);
    expect(lines[4]).toContain('http-500,failed');
  });
  it('quotes what would break a row, and defuses what a spreadsheet would run', () => {
    const row = csvRow(record(0, { class: '=1+"a",b' }), contract, window);
    expect(row).toContain(`"'=1+""a"",b"`);
  });
});

it('Markdown names the verdict and breaks on no name', () => {
  const md = reportMarkdown(input().report);
  expect(md.split('\n')[0]).toBe('### a\\|b: 0 % good, target 90 % missed');
  expect(md).toMatch(/\| TTFT \| 3 \|/);
});
