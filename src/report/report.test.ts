import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import {
  type ClientHealth,
  CohortReducer,
  type Contract,
  contractOf,
  type Outcome,
  type RequestRecord,
  ThroughputReducer,
  timelineOf,
  type Window,
} from '../core/index.ts';
import { PRESET_NAMES, PRESETS } from '../core/presets.ts';
import { quantile } from '../stats/index.ts';
import { buildReport, explainContract, type Report, type RunFacts, renderReport, reportJson } from './index.ts';

const CONTRACT = contractOf({ ttft: 500, tpot: 50 });

/** One operation with `chunks` receipts of one token, `gap` apart. */
function operation(index: number, scheduled: number, more: Made = {}): RequestRecord {
  const { ttft = 100, gap = 10, chunks = 3, outcome = 'completed', elapsed = 30_000, tokens = 1, ...rest } = more;
  const receipts =
    outcome === 'completed' || outcome === 'truncated'
      ? Array.from({ length: chunks }, (_, i) => scheduled + ttft + gap * i)
      : [];
  const last = receipts.at(-1);
  const open = outcome === 'unsent' || outcome === 'undecided';
  return {
    operation: index,
    attempt: 0,
    attempts: outcome === 'unsent' ? 0 : 1,
    lostHedge: false,
    class: 'default',
    asked: { input: 5, output: chunks, choices: 1, stream: true },
    stamps: {
      scheduled,
      ...(outcome !== 'unsent' && { dispatched: scheduled + 1 }),
      ...(last !== undefined && {
        firstOutput: receipts[0] as number,
        firstAnswer: receipts[0] as number,
        lastOutput: last,
      }),
      ...(!open && { ended: last ?? scheduled + elapsed }),
    },
    timeline: timelineOf(
      receipts,
      receipts.map(() => tokens),
    ),
    streamed: true,
    unseenEndTokens: 0,
    outcome,
    reason: outcome === 'completed' ? '' : outcome === 'timed-out' ? 'deadline' : outcome,
    detail: '',
    phase: 'done',
    impliedEnd: false,
    events: receipts.length,
    coalesced: 0,
    unclassified: 0,
    ...rest,
  };
}
type Made = Partial<RequestRecord> & {
  ttft?: number;
  gap?: number;
  chunks?: number;
  outcome?: Outcome;
  elapsed?: number;
  tokens?: number;
};

interface Options {
  readonly contract?: Contract;
  readonly window?: Window;
  readonly client?: ClientHealth;
  readonly facts?: RunFacts;
}

function reportOf(records: readonly RequestRecord[], options: Options = {}): Report {
  const { contract = CONTRACT, window = { start: 0, end: 20_000 } } = options;
  const cohort = new CohortReducer(contract, window);
  const throughput = new ThroughputReducer(window);
  for (const r of records) {
    cohort.add(r);
    throughput.add(r);
  }
  return buildReport({
    contract,
    cohort: cohort.finish(),
    throughput: throughput.finish(),
    ...(options.client && { client: options.client }),
    ...(options.facts && { facts: options.facts }),
  });
}

const many = (n: number, of: (i: number) => Made = () => ({})) =>
  Array.from({ length: n }, (_, i) => operation(i, (i * 20_000) / n, of(i)));
const text = (report: Report, columns = 100) => renderReport(report, { color: false, columns });

/** 10 of 100 miss TTFT, 10 others TPOT. */
const worked = many(100, (i) => ({ ttft: i % 10 === 3 ? 600 : 400, gap: i % 10 === 7 ? 60 : 40 }));

describe("DEFINITIONS' example of 100 requests", () => {
  test('80 good, goodput 4 requests/s, attainment 80 %', () => {
    const r = reportOf(worked);
    expect(r.cohort).toMatchObject({ offered: 100, good: 80, late: 20, window_s: 20 });
    expect([r.goodput_rps, r.offered_rps, r.achieved_rps, r.attainment.value]).toEqual([4, 5, 5, 0.8]);
    expect(r.attainment.denominator).toBe(100);
    expect(r.misses).toEqual({ ttft: 10, tpot: 10 });
    expect(r.misses_joint).toEqual([
      { limits: ['tpot'], count: 10 },
      { limits: ['ttft'], count: 10 },
    ]);
  });
  test('the two marginal p90s pass', () => {
    const { metrics } = reportOf(worked);
    expect(metrics.ttft_ms?.p90).toBeCloseTo(400 + 0.1 * 200, 9); // type 7: rank 89.1 of 90 at 400 and 10 at 600
    expect(metrics.tpot_ms?.p90).toBeLessThanOrEqual(50);
  });
  test('joint misses are told apart from those alone', () => {
    const r = reportOf(many(10, (i) => (i === 0 ? { ttft: 600, gap: 60 } : i === 1 ? { gap: 60 } : {})));
    expect(r.misses).toEqual({ ttft: 1, tpot: 2 });
    expect(r.misses_alone).toEqual({ ttft: 0, tpot: 1 });
    expect(text(r)).toMatch(/1 missed TTFT and TPOT together/);
  });
});

describe('pitfalls of other tools', () => {
  test('survivor-only percentage: half the requests get HTTP 500', () => {
    const r = reportOf(many(100, (i) => (i % 2 ? { outcome: 'failed', reason: 'http-500', elapsed: 5 } : {})));
    expect(r.attainment.value).toBe(0.5);
    expect(r.attainment.met).toBe(false);
    expect(r.metrics.ttft_ms).toMatchObject({ count: 50, p99: 100 });
    expect(r.metrics.ttft_ms?.offered).toEqual({
      count: 100,
      p50: null,
      p90: null,
      p95: null,
      p99: null,
      censored_above: 100,
    });
    expect(r.reasons).toEqual([{ reason: 'http-500', count: 50, detail: '' }]);
  });
  test('a tail of timeouts: p99 over offered operations is "> 30 s"', () => {
    const r = reportOf(many(100, (i) => (i < 5 ? { outcome: 'timed-out' } : {})));
    expect(r.metrics.ttft_ms?.offered).toMatchObject({ p90: 100, p99: null, censored_above: 30_000 });
    expect(text(r)).toMatch(/TTFT .*│ +100 ms +100 ms +> 30 s +> 30 s/);
  });
  test('one-token output passes as TPOT 0: it has none, and the note says so', () => {
    const r = reportOf(many(40, (i) => (i < 4 ? { chunks: 1 } : {})));
    expect(r.metrics.tpot_ms).toMatchObject({ count: 36, p50: 10 });
    expect(r.vacuous).toEqual({ tpot: 4 });
    expect(r.notes.find((n) => n.mark === 'vacuous')?.text).toBe(
      'TPOT is undefined on 4 one-token answers and was met vacuously.',
    );
  });
  test('missing usage shows as 0 tokens and TPOT 0.00: it is unknown', () => {
    const r = reportOf(many(10, () => ({ tokens: -1 })));
    expect(r.metrics.tpot_ms).toBeNull();
    expect(r.metrics.itl_ms).toBeNull();
    expect(r.throughput_tps).toBeNull();
    expect(r.tokens).toMatchObject({ source: 'unknown' });
    expect(r.cohort.late).toBe(10);
    expect(r.unmeasurable).toEqual({ tpot: 10 });
    expect(r.marks).toEqual(expect.arrayContaining(['unmeasurable', 'unknown-tokens', 'gaps-are-not-tokens']));
  });
  test('ITL counts chunks: chunks of four tokens appear as gaps alone', () => {
    const r = reportOf(many(50, () => ({ tokens: 4, gap: 40 })));
    expect(r.metrics.itl_ms).toBeNull();
    expect(r.metrics.chunk_gap_ms?.count).toBe(100);
    expect(r.metrics.chunk_gap_ms?.p50).toBeCloseTo(40, 0);
    expect(r.metrics.tpot_ms?.p50).toBeCloseTo(80 / 11, 10);
    expect(r.marks).toContain('coarse-first-chunk');
  });
  test('p99 of TPOT samples a mean a request, p99 of ITL every gap', () => {
    const stall = timelineOf([100, 110, 1110], [1, 1, 1]);
    const r = reportOf(many(100, (i) => (i < 5 ? { timeline: stall } : {})));
    expect(r.metrics.itl_ms?.exactness).toBe('exact');
    expect(r.metrics.itl_ms?.count).toBe(200);
    expect(r.metrics.tpot_ms?.count).toBe(100);
  });
  test('client-bound runs look like slow servers: said first', () => {
    const client = { sendLag: { p50: 0.1, p99: 80, max: 90 }, unsent: 0, dropped: 0 };
    const r = reportOf(worked, { client });
    expect(r.client).toMatchObject({ verdict: 'client-bound', send_lag_ms: { p99: 80 } });
    expect(text(r).split('\n')[0]).toBe('CLIENT-BOUND: this run proves nothing about the server');
    expect(r.marks[0]).toBe('client-bound');
  });
  test('throughput divided by a window with drain: only what arrives inside counts', () => {
    const r = reportOf([operation(0, 0), operation(1, 19_895)]); // the second delivers at 19,995, 20,005, 20,015
    expect(r.throughput).toMatchObject({ tokens: 4 });
    expect(r.throughput_tps).toBe(4 / 20);
  });
  test('a null statistic makes every point infeasible: no operation is no verdict', () => {
    const r = reportOf([]);
    expect(r.attainment).toMatchObject({ value: null, low: null, high: null, denominator: 0, met: false });
    expect(r.metrics.ttft_ms).toBeNull();
    expect(text(r)).toMatch(/Attainment: undefined, no operation counts/);
  });
  test('a closed loop cannot show capacity', () => {
    expect(reportOf(worked, { facts: { closed_loop: true } }).notes.map((n) => n.text)).toContainEqual(
      expect.stringMatching(/closed loop.*cannot show capacity/),
    );
  });
});

describe('attainment', () => {
  test('its interval holds the value and widens for what is alike', () => {
    const { attainment: a } = reportOf(worked);
    expect(a.low).toBeLessThan(0.8);
    expect(a.high).toBeGreaterThan(0.8);
    expect(a.level).toBe(0.95);
    expect(a.effective_n).toBeGreaterThan(1);
  });
  test('a target inside the interval is shown neither way, in words', () => {
    const r = reportOf(many(100, (i) => (i % 9 === 4 ? { ttft: 600 } : {})));
    expect(r.attainment).toMatchObject({ met: false, shown: 'neither' });
    expect(text(r)).toMatch(/not\s+shown either way/);
    expect(r.marks).toContain('target-not-shown');
  });
  test('far from the target it is shown', () => {
    const bad = reportOf(many(400, (i) => (i % 2 ? { ttft: 600 } : {})));
    expect(bad.attainment).toMatchObject({ met: false, shown: 'missed' });
    const good = reportOf(many(400, (i) => ({ ttft: 100 + ((i * 7919) % 97) })));
    expect(good.attainment).toMatchObject({ value: 1, met: true, shown: 'met' });
  });
  test('undecided operations make it a pair, and fail closed', () => {
    const r = reportOf(many(100, (i) => (i >= 85 ? { outcome: 'undecided' } : {})));
    expect(r.attainment).toMatchObject({ value: 0.85, undecided: [0.85, 1], met: false });
    expect(r.notes.find((n) => n.mark === 'undecided')?.text).toMatch(
      /^15 operations were still open .* between 85 % and 100 %/,
    );
    expect(text(r)).toMatch(/Attainment between 85 % and 100 %/);
  });
  test('cancelling more than 1 % at the deadline cannot pass', () => {
    const r = reportOf(many(200, (i) => (i < 3 ? { outcome: 'timed-out' } : {})));
    expect(r.attainment.value).toBeGreaterThan(0.9);
    expect(r.attainment.met).toBe(false);
    expect(r.attainment.shown).not.toBe('met');
    expect(r.marks).toContain('shed-at-deadline');
    expect(reportOf(many(200, (i) => (i < 2 ? { outcome: 'timed-out' } : {}))).attainment.met).toBe(true);
  });
  test('what completes after the deadline shed nothing', () => {
    const late = { stamps: { scheduled: 0, firstOutput: 1, lastOutput: 2, ended: 31_000 } };
    const r = reportOf(many(200, (i) => (i < 3 ? late : {})));
    expect(r.cohort.timed_out).toBe(3);
    expect(r.marks).not.toContain('shed-at-deadline');
  });
  test('excluded operations leave the denominator and stay in the ledger', () => {
    const contract = { ...CONTRACT, cases: { ...CONTRACT.cases, cancelled: 'exclude' as const } };
    const r = reportOf(
      many(10, (i) => (i < 4 ? { outcome: 'cancelled' } : {})),
      { contract },
    );
    expect(r.attainment).toMatchObject({ value: 1, denominator: 6 });
    expect(r.cohort).toMatchObject({ offered: 10, cancelled: 4, excluded: 4 });
    expect(r.marks).toContain('excluded');
  });
});

describe('quantiles', () => {
  test('type 7 over measured values, with intervals', () => {
    const r = reportOf(many(1000, (i) => ({ ttft: 1 + ((i * 389) % 1000) })));
    const values = Float64Array.from({ length: 1000 }, (_, i) => i + 1);
    expect(r.metrics.ttft_ms).toMatchObject({ count: 1000, mean: 500.5, max: 1000, unsupported: [] });
    for (const [name, p] of [
      ['p50', 0.5],
      ['p90', 0.9],
      ['p95', 0.95],
      ['p99', 0.99],
    ] as const) {
      expect(r.metrics.ttft_ms?.[name]).toBeCloseTo(quantile(values, p) as number, 9);
      const [low, high] = r.metrics.ttft_ms?.ci?.[name] ?? [];
      expect(low).toBeLessThanOrEqual(r.metrics.ttft_ms?.[name] as number);
      if (high !== null) expect(high).toBeGreaterThanOrEqual(r.metrics.ttft_ms?.[name] as number);
    }
  });
  test('one the sample cannot support is marked: p99 of 40', () => {
    const r = reportOf(many(40));
    expect(r.metrics.ttft_ms?.unsupported).toContain('p99');
    expect(r.metrics.ttft_ms?.unsupported).not.toContain('p50');
    expect(r.marks).toContain('unsupported-quantiles');
    expect(text(r)).toMatch(/TTFT +40 +100 ms +100 ms +100 ms\*/);
  });
  test('from dispatch beside from the schedule', () => {
    const { metrics } = reportOf(many(10));
    expect(metrics.ttft_dispatched_ms?.p50).toBe(99);
    expect(metrics.e2e_dispatched_ms?.p50).toBe(119);
    expect(metrics.e2e_ms?.p50).toBe(120);
    const other = reportOf(many(10), { contract: { ...CONTRACT, boundary: 'dispatched' } }).metrics;
    expect([other.ttft_ms?.p50, other.ttft_dispatched_ms?.p50, other.ttfa_ms?.p50]).toEqual([100, 99, 99]);
    expect([other.e2e_ms?.p50, other.e2e_dispatched_ms?.p50]).toEqual([120, 119]);
  });
});

describe('notes', () => {
  test('lengths more than 5 % short of those asked for', () => {
    const short = many(10, () => ({ asked: { input: 0, output: 4, choices: 1, stream: true } }));
    expect(reportOf(short).notes.find((n) => n.mark === 'short-output')?.text).toMatch(
      /25 % fewer output tokens than asked for \(30 of 40/,
    );
    expect(reportOf(many(10)).marks).not.toContain('short-output');
  });
  test('implied ends, unclassified output, retries, dropped records, a cut run', () => {
    const r = reportOf(
      many(10, () => ({ impliedEnd: true, unclassified: 1, attempts: 2 })),
      {
        client: { unsent: 0, dropped: 3 },
        facts: { cut: 'the process was killed', default_contract: true, remarks: ['Said by the command.'] },
      },
    );
    expect(r.marks).toEqual(
      expect.arrayContaining([
        'implied-end',
        'unclassified-output',
        'retries',
        'records-dropped',
        'cut',
        'default-contract',
        'remark',
      ]),
    );
  });
  test('a clean run of known tokens needs none', () => {
    const r = reportOf(
      many(1000, (i) => ({ chunks: 12, ttft: 100 + ((i * 7919) % 97) })),
      { client: { unsent: 0, dropped: 0 } },
    );
    expect(r.notes).toEqual([]);
  });
});

describe('the text', () => {
  test('the ledger as printed adds up to offered', () => {
    const outcomes: Outcome[] = [
      'completed',
      'rejected',
      'failed',
      'truncated',
      'timed-out',
      'cancelled',
      'unsent',
      'undecided',
    ];
    const printed = text(reportOf(many(80, (i) => ({ outcome: outcomes[i % 8] as Outcome }))));
    const row = (name: string) => Number(new RegExp(`^  ${name} +(\\d+)`, 'm').exec(printed)?.[1]);
    const names = [
      'good',
      'late',
      'invalid',
      'rejected',
      'failed',
      'truncated',
      'timed out',
      'cancelled',
      'unsent',
      'undecided',
    ];
    expect(names.map(row).reduce((a, b) => a + b, 0)).toBe(row('offered'));
    expect(row('offered')).toBe(80);
  });
  test('colour only where the terminal has it', () => {
    const r = reportOf(worked);
    expect(text(r)).not.toContain('\u001b');
    expect(renderReport(r, { color: true, columns: 100 })).toContain('\u001b[1m');
  });
  test('lines fit the terminal, and hostile words reach it escaped', () => {
    const facts = { target: 'http://x/\u001b[2J', model: `evil\u009b${'x'.repeat(500)}` };
    const printed = text(
      reportOf(
        many(40, (i) => (i < 9 ? { outcome: 'failed', detail: '\u001b]0;owned\u0007' } : {})),
        { facts },
      ),
    );
    expect(printed).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
  });
  test('without a window rates are undefined, in words', () => {
    const r = reportOf([operation(0, 5)], {
      window: { start: Number.NEGATIVE_INFINITY, end: Number.POSITIVE_INFINITY },
    });
    expect(text(r)).toMatch(/goodput +undefined/);
  });
});

test('the JSON is the report: no Infinity or NaN lost to null unsaid', () => {
  const r = reportOf(many(100, (i) => (i < 5 ? { outcome: 'timed-out' } : {})));
  expect(JSON.parse(reportJson(r))).toEqual(r);
});

test('a contract in sentences names every edge, for every preset', () => {
  for (const name of PRESET_NAMES) {
    const { promise, edges } = explainContract(PRESETS[name].contract);
    expect(promise.length).toBeGreaterThan(3);
    const named = edges.map((e) => e.edge);
    for (const edge of [
      'cancelled by the caller',
      'retried',
      'hedged',
      'one token',
      'empty',
      'unmeasurable',
      'non-streamed',
      'rejected',
      'truncated',
      'undecided',
      'unsent',
      'deadline passed',
      'several choices',
    ]) {
      expect(named).toContain(edge);
    }
    for (const { classed } of edges) expect(classed).not.toMatch(/null|NaN|\[object/);
  }
  expect(explainContract(CONTRACT).promise[0]).toBe(
    'At least 90 % of all offered operations are good: each meets all of these at once.',
  );
});

test('docs/reading-a-report.md explains every mark and every key of the JSON', () => {
  const page = readFileSync(new URL('../../docs/reading-a-report.md', import.meta.url), 'utf8');
  const source = readFileSync(new URL('./report.ts', import.meta.url), 'utf8');
  const marks = [...(source.split('export type Mark =')[1] ?? '').matchAll(/\| '([a-z-]+)'/g)].map((m) => m[1]);
  expect(marks.length).toBeGreaterThan(20);
  const { schema: _, goodput_rps_per_gpu: __, ...rest } = reportOf(worked);
  for (const word of [...marks, ...Object.keys(rest), ...Object.keys(rest.metrics)])
    expect(page).toContain(`\`${word}\``);
});
