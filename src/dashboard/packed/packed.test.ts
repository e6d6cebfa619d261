import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CohortReducer } from '../../core/cohort.ts';
import {
  CONTRACT_DEFAULTS,
  type Contract,
  contractFor,
  LIMIT_NAMES,
  type LimitName,
  type Limits,
} from '../../core/contract.ts';
import { judgeRecord, LEDGER } from '../../core/judge.ts';
import { OUTCOMES } from '../../core/outcome.ts';
import type { RequestRecord, Stamps } from '../../core/record.ts';
import { OUTPUT_KINDS } from '../../core/stream.ts';
import { TimelineBuilder } from '../../core/timeline.ts';
import { decodePacked, encodePacked } from './form.ts';
import { foldJudged, judgePacked, keepsSmoothness } from './judge.ts';
import { FINISH_CLASSES, Packer } from './pack.ts';

const us = (max: number) => fc.integer({ min: 0, max }).map((n) => n / 1000);
/** A few values that limits are drawn from too, so that ties with a limit are common. */
const tight = fc.constantFrom(0, 1, 10, 20.5, 33.333, 50, 100, 200);

const records: fc.Arbitrary<RequestRecord> = fc
  .record({
    scheduled: us(1e6),
    lag: fc.option(tight),
    firstGap: fc.oneof(tight, us(300_000)),
    gaps: fc.array(fc.oneof(tight, us(200_000)), { maxLength: 6 }),
    hasOutput: fc.boolean(),
    tail: tight,
    ended: fc.boolean(),
    tokens: fc.constantFrom(-1, 1, 3),
    kind: fc.constantFrom(...OUTPUT_KINDS),
    choices: fc.constantFrom(1, 1, 2),
    streamed: fc.boolean(),
    outcome: fc.constantFrom('completed' as const, 'completed' as const, ...OUTCOMES),
    finish: fc.option(fc.constantFrom(...FINISH_CLASSES)),
    usage: fc.option(fc.integer({ min: 0, max: 12 })),
    asked: fc.integer({ min: 0, max: 20 }),
    class: fc.constantFrom('default', 'chat', 'code'),
  })
  .map((r): RequestRecord => {
    const dispatched = r.lag === null ? undefined : Math.round((r.scheduled + r.lag) * 1000) / 1000;
    const timeline = new TimelineBuilder();
    let at = (dispatched ?? r.scheduled) + r.firstGap;
    if (r.hasOutput) {
      for (const [i, gap] of [0, ...r.gaps].entries()) {
        at = Math.round((at + gap) * 1000) / 1000;
        timeline.push(at, r.tokens, i === 0 ? r.kind : 'text', r.choices === 1 ? 0 : i % 2);
      }
    }
    const t = timeline.finish();
    const answer = t.kind.findIndex((k) => OUTPUT_KINDS[k] !== 'reasoning' && OUTPUT_KINDS[k] !== 'summary');
    const stamps: Stamps = {
      scheduled: r.scheduled,
      ...(dispatched !== undefined && { dispatched }),
      ...(t.length > 0 && { firstOutput: t.at[0]!, lastOutput: t.at.at(-1)! }),
      ...(answer >= 0 && { firstAnswer: t.at[answer]! }),
      ...(r.ended && { ended: Math.round((at + r.tail) * 1000) / 1000 }),
    };
    return {
      operation: 0,
      attempt: 0,
      attempts: 1,
      lostHedge: false,
      class: r.class,
      asked: { input: 10, output: r.asked, choices: r.choices, stream: r.streamed },
      stamps,
      timeline: t,
      streamed: r.streamed,
      ...(r.usage !== null && { usage: { output: r.usage } }),
      unseenEndTokens: 0,
      outcome: r.outcome,
      reason: r.outcome === 'completed' ? '' : 'why',
      detail: '',
      phase: 'done',
      ...(r.finish && { finish: r.finish }),
      impliedEnd: false,
      events: t.length,
      coalesced: 0,
      unclassified: 0,
    };
  });

const limitsArb: fc.Arbitrary<Limits> = fc
  .record(
    {
      ttft: tight,
      ttfa: tight,
      tpot: tight,
      gap: tight,
      smoothness: fc.constantFrom(0, 0.5, 0.9, 1),
      latency: fc.oneof(tight, fc.constant(400)),
      e2e: fc.oneof(tight, fc.constant(500)),
    },
    { requiredKeys: [] },
  )
  .map((l) => Object.fromEntries(Object.entries(l).filter(([, v]) => v !== undefined)) as Limits);

const contracts: fc.Arbitrary<Contract> = fc.record({
  name: fc.constant('c'),
  boundary: fc.constantFrom('scheduled' as const, 'dispatched' as const),
  limits: limitsArb,
  deadline: fc.constantFrom(100, 500, 30_000, Number.POSITIVE_INFINITY),
  valid: fc.record({
    minTokens: fc.constantFrom(0, 1, 3),
    minShareOfAsked: fc.constantFrom(0, 0.5),
    finish: fc.constantFrom(CONTRACT_DEFAULTS.valid.finish, FINISH_CLASSES),
  }),
  cases: fc.record({
    cancelled: fc.constantFrom('not-good' as const, 'observed' as const, 'exclude' as const),
    nonStreamed: fc.constantFrom('unmeasurable' as const, 'skip' as const, 'exclude' as const),
    oneToken: fc.constantFrom('vacuous' as const, 'late' as const),
    unmeasurable: fc.constantFrom('late' as const, 'skip' as const, 'exclude' as const),
  }),
  attainment: fc.constant(0.9),
});

const bits = (names: readonly LimitName[]): number => names.reduce((s, n) => s | (1 << LIMIT_NAMES.indexOf(n)), 0);

const sample = (rs: readonly RequestRecord[]): RequestRecord[] => rs.map((r, operation) => ({ ...r, operation }));

describe('packed columns', () => {
  it('are judged as the records are, under any contract, its own classes, and after a trip over the wire', () => {
    fc.assert(
      fc.property(fc.array(records, { maxLength: 30 }), contracts, contracts, contracts, (rs, own, other, chat) => {
        const ops = sample(rs);
        const packer = new Packer(undefined, own, { chat });
        for (const r of ops) packer.add(r);
        const packed = decodePacked(encodePacked(packer.finish()).buffer);
        expect(packed.rows).toBe(ops.length);
        for (const [base, classes] of [
          [own, { chat }],
          [other, {}],
          [other, { code: chat }],
        ] as const) {
          const of = contractFor(base, classes);
          const judged = judgePacked(packed, base, classes);
          for (let i = 0; i < packed.rows; i++) {
            const record = ops[packed.operation[i]!]!;
            const contract = of(record.class);
            if (contract.limits.smoothness !== undefined && !keepsSmoothness(packed, contract, record.class)) continue;
            const { verdict } = judgeRecord(record, contract);
            expect({
              class: LEDGER[judged.class[i]!],
              excluded: judged.excluded[i] === 1,
              missed: judged.missed[i],
              unmeasurable: judged.unmeasurable[i],
              vacuous: judged.vacuous[i],
            }).toEqual({
              class: verdict.class,
              excluded: verdict.excluded,
              missed: bits(verdict.missed),
              unmeasurable: bits(verdict.unmeasurable),
              vacuous: bits(verdict.vacuous),
            });
          }
        }
      }),
      { numRuns: 300 },
    );
  });

  it('fold to the ledger and the misses of a cohort', () => {
    fc.assert(
      fc.property(fc.array(records, { maxLength: 30 }), contracts, (rs, own) => {
        const ops = sample(rs);
        const contract = { ...own, boundary: 'scheduled' as const };
        const window = { start: 200, end: 800 };
        const cohort = new CohortReducer(contract, window);
        const packer = new Packer(window, contract);
        for (const r of ops) {
          cohort.add(r);
          packer.add(r);
        }
        const want = cohort.finish();
        const packed = packer.finish();
        const got = foldJudged(packed, judgePacked(packed, contract));
        expect(got.ledger).toEqual(want.ledger);
        expect(got.excluded).toBe(want.excluded);
        expect(
          new Map([...got.sets].map(([s, n]) => [LIMIT_NAMES.filter((_, k) => s & (1 << k)).join('+'), n])),
        ).toEqual(want.missedSets);
        expect(new Map(Object.entries(got.vacuous))).toEqual(want.vacuous);
        expect(new Map(Object.entries(got.unmeasurable))).toEqual(want.unmeasurable);
      }),
      { numRuns: 200 },
    );
  });

  it('come back bit for bit, also where a time is too long for four bytes', () => {
    const at = 5_000_000; // 83 minutes
    const base = fc.sample(records, { numRuns: 1, seed: 1 })[0]!;
    const packer = new Packer({ start: 0, end: 9e6 }, { ...CONTRACT_DEFAULTS, name: 'x', limits: { ttft: 1 } });
    packer.add({ ...base, operation: 2 ** 33, stamps: { scheduled: at, ended: at + 4_999_999.001 } });
    const packed = packer.finish();
    const again = decodePacked(encodePacked(packed).buffer);
    expect(again).toEqual(packed);
    expect(again.e2e[0]).toBe(4_999_999.001);
    expect(again.operation[0]).toBe(2 ** 33);
  });

  it('refuse bytes that are not theirs', () => {
    expect(() => decodePacked(new ArrayBuffer(4))).toThrow(/damaged/);
    expect(() => decodePacked(new TextEncoder().encode('GPCOLS01....').buffer as ArrayBuffer)).toThrow();
  });
});
