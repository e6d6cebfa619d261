import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { keyed } from '../../base/random.ts';
import { confirmPoint } from './assess.ts';
import { curveNotes } from './outcome.ts';
import { runSearch } from './run.ts';
import { nextStep } from './search.ts';
import {
  type CurvePoint,
  type Probe,
  type ProbeMeasure,
  type ProbeRequest,
  SEARCH_DEFAULTS,
  type SearchPlan,
} from './types.ts';

const PLAN: SearchPlan = { ...SEARCH_DEFAULTS, target: 0.9, seed: 1, unloadedRate: 0.5 };

/** A server whose attainment is a known function of the rate, seen with binomial-like noise. */
function pretend(attainment: (rate: number) => number, more: Partial<ProbeMeasure> = {}) {
  return (request: ProbeRequest): ProbeMeasure => {
    const u = keyed(request.seed, 'pretend');
    const p = attainment(request.rate);
    const worth = request.requests / 4;
    const z = Math.sqrt(-2 * Math.log(1 - u())) * Math.cos(2 * Math.PI * u());
    const seen = Math.max(0, Math.min(1, p + z * Math.sqrt((p * (1 - p)) / worth)));
    const half = 2 * Math.sqrt((seen * (1 - seen) + 1e-3) / worth);
    return {
      offered: request.requests,
      good: Math.round(seen * request.requests),
      attainment: seen,
      low: Math.max(0, seen - half),
      high: Math.min(1, seen + half),
      effectiveN: worth,
      goodput: seen * request.rate,
      throughput: 100 * request.rate,
      ttft: { p50: 50, p90: 90, p99: 99 },
      tpot: { p50: 10, p90: 11, p99: 12 },
      e2eP50: 500,
      e2eP95: 900,
      shed: 0,
      trend: 0,
      trendP: 1,
      climb: 1,
      settling: 0,
      misses: seen < 1 ? [{ class: 'default', limit: 'ttft', count: 10, offered: 100 }] : [],
      clientBound: [],
      elapsed: (1000 * request.requests) / request.rate,
      ...more,
    };
  };
}

const knee =
  (capacity: number, slope = 12) =>
  (rate: number) =>
    1 / (1 + Math.exp(slope * Math.log(rate / capacity) - Math.log(9)));

describe('the search', () => {
  it('brackets the truth, whatever its size, rates far below 1/s among them', async () => {
    let covered = 0;
    const sizes = [0.02, 0.3, 4, 77, 900];
    for (const size of sizes) {
      for (let seed = 1; seed <= 8; seed++) {
        const plan = { ...PLAN, seed, unloadedRate: size / 40 };
        const { end, low, high } = await runSearch(plan, { run: pretend(knee(size)) });
        expect(end).toBe('found');
        if ((low as number) <= size && size <= (high as number)) covered++;
        expect((high as number) / (low as number)).toBeLessThan(1.35);
      }
    }
    expect(covered).toBeGreaterThanOrEqual(38); // of 40; 95 % is promised
  });

  it('warms replications up by what MSER-5 would leave out, and by the stay of a session', async () => {
    const asked: ProbeRequest[] = [];
    const of = async (more: Partial<ProbeMeasure>, plan = PLAN): Promise<number> => {
      asked.length = 0;
      const run = pretend(knee(5), more);
      await runSearch(plan, {
        run: (request) => {
          asked.push(request);
          return run(request);
        },
      });
      return Math.min(...asked.filter((r) => r.role === 'confirm').map((r) => r.warmup));
    };
    const plain = await of({});
    expect(await of({ settling: 170 })).toBe(170);
    expect(plain).toBeLessThan(170);
    // Not settled says nothing of how long it takes.
    expect(await of({ settling: null })).toBe(plain);
    const sessions = await of({}, { ...PLAN, arrival: { operations: 4, pauses: 60_000 } });
    // Two stays of 4 × 0.9 s and a minute's thought, at rates near 5/s.
    expect(sessions).toBeGreaterThan(2 * 63 * 4.5);
  });

  it('never uses a seed twice, and says why at each run', async () => {
    const asked: ProbeRequest[] = [];
    const run = pretend(knee(5));
    await runSearch(PLAN, {
      run: (request) => {
        asked.push(request);
        return run(request);
      },
    });
    expect(new Set(asked.map((r) => r.seed)).size).toBe(asked.length);
    for (const r of asked) expect(r.why.length).toBeGreaterThan(10);
    const steered = asked.filter((r) => r.role === 'steer').map((r) => r.rate);
    expect(new Set(steered).size).toBe(steered.length);
  });

  it('taken up after any run it goes on as if it had not been interrupted', async () => {
    const run = pretend(knee(5));
    const all: Probe[] = [];
    const whole = await runSearch(PLAN, { run, keep: (probes) => void all.splice(0, all.length, ...probes) });
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: all.length }), async (cut) => {
        const stored = JSON.parse(JSON.stringify(all.slice(0, cut))) as Probe[];
        expect(await runSearch(PLAN, { run }, stored)).toEqual(whole);
      }),
      { numRuns: 20 },
    );
  });

  it('refuses stored runs of another plan', async () => {
    const run = pretend(knee(5));
    const all: Probe[] = [];
    await runSearch(PLAN, { run, keep: (probes) => void all.splice(0, all.length, ...probes) });
    await expect(runSearch({ ...PLAN, seed: 2 }, { run }, all)).rejects.toThrow(/not those of this plan/);
  });

  it('infeasible at any rate names the limit and class missed without load', async () => {
    const run = pretend(() => 0.3, { misses: [{ class: 'chat', limit: 'tpot', count: 21, offered: 30 }] });
    const outcome = await runSearch(PLAN, { run });
    expect(outcome).toMatchObject({ end: 'infeasible', low: null, high: null });
    expect(outcome.binding).toMatchObject({ class: 'chat', limit: 'tpot' });
    // Four times faster was tried too, in case attainment rises with the rate.
    expect(outcome.points.map((p) => p.rate)).toContain(2);
  });

  it('goes lower before it calls a server infeasible that was not unloaded', async () => {
    const outcome = await runSearch({ ...PLAN, unloadedRate: 20 }, { run: pretend(knee(2)) });
    expect(outcome.end).toBe('found');
    expect(outcome.low).toBeLessThan(2);
  });

  it('a queue that grows fails, whatever attainment says', async () => {
    const run = (request: ProbeRequest): ProbeMeasure => ({
      ...pretend(() => 1)(request),
      ...(request.rate > 8 && { trend: 0.9, trendP: 1e-6, climb: 20 }),
    });
    const outcome = await runSearch(PLAN, { run });
    expect(outcome.end).toBe('found');
    expect(outcome.low).toBeLessThanOrEqual(8);
    expect(outcome.high).toBeGreaterThan(8);
    expect(outcome.points.some((p) => p.role === 'confirm' && p.unstable)).toBe(true);
  });

  it('cancelling more than 1 % at the deadline cannot pass', async () => {
    const run = (request: ProbeRequest): ProbeMeasure => ({
      ...pretend(() => 0.97)(request),
      ...(request.rate > 8 && { shed: 0.03 }),
    });
    const outcome = await runSearch(PLAN, { run });
    expect(outcome.low).toBeLessThanOrEqual(8);
    expect(outcome.high).toBeGreaterThan(8);
  });

  it('void probes prove nothing: the rate is tried once more, then bounds the search', async () => {
    const run = (request: ProbeRequest): ProbeMeasure => ({
      ...pretend(knee(100))(request),
      ...(request.rate > 10 && { clientBound: ['send lag p99 80 ms is above 2 ms'] }),
    });
    const outcome = await runSearch(PLAN, { run });
    expect(outcome.end).toBe('client-bound');
    expect(outcome.low).toBeLessThanOrEqual(10);
    expect(outcome.high).toBeNull();
    const voids = outcome.points.filter((p) => p.verdict === 'void');
    expect(voids).toHaveLength(2);
    expect(voids[1]?.why).toMatch(/^again, since the client/);
  });

  it('ended early it says what is known', () => {
    const run = pretend(knee(5));
    const done: ProbeMeasure[] = [];
    for (let i = 0; i < 6; i++) {
      const step = nextStep(PLAN, done);
      if (!('ask' in step)) throw new Error('ended too soon');
      done.push(run(step.ask));
    }
    const step = nextStep(PLAN, done, true);
    expect(step).toMatchObject({ outcome: { end: 'interrupted', low: null, high: null } });
    expect('outcome' in step && step.outcome.points).toHaveLength(6);
  });

  it('ended early with both ends confirmed it is found, only wider than it might be', () => {
    const ends = new Set<string>();
    for (let seed = 1; seed <= 10; seed++) {
      const plan = { ...PLAN, seed };
      const run = pretend(knee(5, 6));
      const done: ProbeMeasure[] = [];
      for (let step = nextStep(plan, done); 'ask' in step; step = nextStep(plan, done)) {
        const early = nextStep(plan, done, true);
        if (!('outcome' in early)) throw new Error('went on though told to stop');
        const { end, low, high } = early.outcome;
        expect(end).toBe(low !== null && high !== null ? 'found' : 'interrupted');
        ends.add(end);
        done.push(run(step.ask));
      }
    }
    expect([...ends]).toEqual(['interrupted', 'found']);
  });

  it('a server nothing brings down is above the range', async () => {
    const outcome = await runSearch({ ...PLAN, maxRate: 50 }, { run: pretend(() => 0.999) });
    expect(outcome).toMatchObject({ end: 'above-range', low: 50, high: null });
  });
});

describe('the curve', () => {
  const point = (rate: number, attainment: number, more: Partial<CurvePoint> = {}): CurvePoint => ({
    rate,
    role: 'confirm',
    verdict: 'pass',
    attainment,
    low: attainment - 0.02,
    high: Math.min(1, attainment + 0.02),
    level: 0.95,
    effectiveN: 500,
    goodput: rate * attainment,
    throughput: 100 * rate,
    ttft: { p50: 1, p90: 1, p99: 1 },
    tpot: { p50: 1, p90: 1, p99: 1 },
    offered: 1000,
    replications: 5,
    unstable: false,
    shed: 0,
    misses: [],
    because: '',
    why: '',
    elapsed: 1,
    ...more,
  });

  it('reports a rise of attainment that chance does not make, and no other', () => {
    expect(curveNotes([point(1, 0.8), point(2, 0.95)]).join()).toMatch(/Attainment rises/);
    expect(curveNotes([point(1, 0.94), point(2, 0.95)])).toEqual([]);
  });

  it('says when goodput peaks and falls while throughput climbs', () => {
    const notes = curveNotes([point(10, 0.99), point(20, 0.9), point(30, 0.3)]);
    expect(notes.join()).toMatch(/Goodput peaks: 18 requests\/s good at 20/);
    expect(curveNotes([point(10, 0.99), point(20, 0.9), point(30, 0.3, { throughput: 900 })])).toEqual([]);
  });
});

describe('a group of replications', () => {
  const probes = (shares: number[], more: Partial<ProbeMeasure> = {}): Probe[] =>
    shares.map((attainment, i) => {
      const request = { rate: 5, seed: i, requests: 500, warmup: 20, role: 'confirm', why: 'test' } as const;
      return { request, measure: { ...pretend(() => 0.5)(request), attainment, effectiveN: 100, ...more } };
    });

  it('passes, fails, or decides nothing by its whole interval', () => {
    expect(confirmPoint(probes([0.97, 0.96, 0.98, 0.97, 0.97]), 0.9, 0.015).verdict).toBe('pass');
    expect(confirmPoint(probes([0.8, 0.82, 0.79, 0.81, 0.8]), 0.9, 0.015).verdict).toBe('fail');
    expect(confirmPoint(probes([0.85, 0.97, 0.91, 0.99, 0.8]), 0.9, 0.015).verdict).toBe('undecided');
  });

  it('runs that agree by luck do not make its interval empty', () => {
    const { low, high } = confirmPoint(probes([1, 1, 1, 1, 1], { effectiveN: 3 }), 0.9, 0.015);
    expect(low).toBeLessThan(0.9);
    expect(high).toBe(1);
  });
});
