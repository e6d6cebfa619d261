import { describe, expect, it } from 'vitest';
import {
  type Clock,
  CohortReducer,
  contractOf,
  type Ending,
  type Engine,
  foldAttempts,
  type Observer,
  type RequestRecord,
  type RequestSpec,
  type Sink,
  type VirtualClock,
  virtualClock,
} from '../core/index.ts';
import { LEDGER } from '../core/judge.ts';
import { closedLoop, openLoop, REQUEST_DEFAULTS } from '../workload/index.ts';
import { type Drive, type DrivePlan, drive } from './drive.ts';

const CONTRACT = contractOf({ ttft: 500, tpot: 50 }, { deadline: 5000 });
const REQUESTS = { ...REQUEST_DEFAULTS, output: { kind: 'fixed', tokens: 4 }, prompt: 'none' } as const;

/** What becomes of an attempt: first token after `ttft`, three more `itl` apart, then its ending; or just the ending. */
type Fate = { ttft: number; itl: number; ending?: Ending; finish?: boolean } | { after: number; ending: Ending };

function fatedEngine(clock: Clock, fate: (spec: RequestSpec) => Fate): Engine {
  return {
    name: 'fated',
    submit(spec, to: Observer) {
      const cancels: (() => void)[] = [];
      const at = (t: number, run: (t: number) => void): void => {
        cancels.push(clock.at(t, () => run(clock.now())));
      };
      const t0 = clock.now();
      const f = fate(spec);
      at(t0, (t) => to.dispatched(t));
      if ('after' in f) at(t0 + f.after, (t) => to.ended(t, f.ending));
      else {
        for (let i = 0; i < 4; i++) {
          at(t0 + f.ttft + i * f.itl, (t) => to.event(t, { outputs: [{ choice: 0, kind: 'text', tokens: 1 }] }, false));
        }
        at(t0 + f.ttft + 3 * f.itl, (t) => {
          if (f.finish !== false) to.event(t, { outputs: [], finishes: [{ choice: 0, reason: 'length' }] }, false);
          to.ended(t, f.ending ?? { kind: 'closed' });
        });
      }
      return () => {
        for (const cancel of cancels) cancel();
      };
    },
    close: async () => {},
  };
}

function memorySink(): Sink & { records: RequestRecord[] } {
  const records: RequestRecord[] = [];
  return { records, add: (r) => void records.push(r), full: false, drained: async () => {}, close: async () => {} };
}

function start(fate: (spec: RequestSpec) => Fate, plan: Partial<DrivePlan> = {}, rate = 10) {
  const clock = virtualClock();
  const sink = memorySink();
  const run = drive(
    openLoop(REQUESTS, { process: 'poisson', rate }, 7),
    fatedEngine(clock, fate),
    clock,
    { contract: CONTRACT, seed: 7, window: { warmup: 1000, duration: 20_000, rate }, ...plan },
    sink,
  );
  return { clock, sink, run };
}

async function finish(run: Drive, clock: VirtualClock, sink: { records: RequestRecord[] }) {
  clock.runAll(2_000_000);
  const result = await run.done;
  const attempts = new Map<number, RequestRecord[]>();
  for (const r of sink.records) attempts.set(r.operation, [...(attempts.get(r.operation) ?? []), r]);
  const cohort = new CohortReducer(CONTRACT, result.window);
  for (const rows of attempts.values()) cohort.add(foldAttempts(rows));
  const fold = cohort.finish();
  expect(LEDGER.reduce((sum, c) => sum + fold.ledger[c], 0)).toBe(fold.offered);
  return { result, fold };
}

const GOOD: Fate = { ttft: 100, itl: 10 };

describe('drive, open loop', () => {
  it('offers at the planned rate and judges every operation of the window', async () => {
    const { clock, sink, run } = start(() => GOOD);
    const { result, fold } = await finish(run, clock, sink);
    expect(result.window.end - result.window.start).toBe(20_000);
    expect(fold.ledger.good).toBe(fold.offered);
    expect(fold.offered).toBeGreaterThan(150);
    expect(fold.offered).toBeLessThan(250);
    expect(fold.columns.ttft.every((t) => Math.abs(t - 100) < 0.002)).toBe(true);
  });

  it('gives the same records for the same seed', async () => {
    const runs = [];
    for (let i = 0; i < 2; i++) {
      const { clock, sink, run } = start(() => GOOD);
      await finish(run, clock, sink);
      runs.push(sink.records);
    }
    expect(runs[0]).toEqual(runs[1]);
  });

  it('measures from the schedule when the engine stalls: nothing is omitted (coordinated omission)', async () => {
    // An engine that serves one at a time, 200 ms each, under 10/s: the queue grows without bound.
    let free = 0;
    const clock = virtualClock();
    const sink = memorySink();
    const run = drive(
      openLoop(REQUESTS, { process: 'constant', rate: 10 }, 1),
      fatedEngine(clock, () => {
        const begin = Math.max(clock.now(), free);
        free = begin + 200;
        return { ttft: begin - clock.now() + 100, itl: 10 };
      }),
      clock,
      { contract: { ...CONTRACT, deadline: 60_000 }, seed: 1, window: { warmup: 0, duration: 10_000, rate: 10 } },
      sink,
    );
    clock.runAll();
    const { window, offeredRate } = await run.done;
    expect(offeredRate).toBeCloseTo(10, 0);
    const last = sink.records.filter((r) => r.stamps.scheduled < window.end).at(-1) as RequestRecord;
    expect((last.stamps.firstOutput as number) - last.stamps.scheduled).toBeGreaterThan(9000);
  });

  it('keeps offering after the window until the cohort is final, and leaves that load out of the cohort', async () => {
    const { clock, sink, run } = start(() => ({ ttft: 2000, itl: 100 }));
    const { result, fold } = await finish(run, clock, sink);
    const later = sink.records.filter((r) => r.stamps.scheduled >= result.window.end);
    expect(later.length).toBeGreaterThan(10);
    expect(fold.offered).toBe(
      sink.records.filter((r) => r.stamps.scheduled >= result.window.start).length - later.length,
    );
    expect(fold.ledger.cancelled).toBe(0);
  });

  it('without cool-down stops offering at the end of the window', async () => {
    const { clock, sink, run } = start(() => ({ ttft: 2000, itl: 100 }), { coolDown: false });
    const { result } = await finish(run, clock, sink);
    expect(sink.records.every((r) => r.stamps.scheduled < result.window.end)).toBe(true);
  });

  it('asked for N requests, judges exactly the N first after warm-up', async () => {
    const { clock, sink, run } = start(() => GOOD, { window: { warmup: 1000, requests: 50, rate: 10 } });
    const { result, fold } = await finish(run, clock, sink);
    expect(fold.offered).toBe(50);
    expect(result.window.end - result.window.start).toBe(5000);
  });

  it('warms up for at least one p95 E2E when told nothing', async () => {
    const { clock, sink, run } = start(() => ({ ttft: 3000, itl: 100 }), {
      window: { warmup: 'auto', duration: 5000, rate: 10 },
    });
    const { result } = await finish(run, clock, sink);
    expect(result.window.start).toBeGreaterThan(3300);
    expect(result.window.start).toBeLessThan(8000);
  });
});

describe('outcomes', () => {
  it('adds up when every kind of end is mixed', async () => {
    const fates: Fate[] = [
      GOOD,
      { ttft: 900, itl: 10 },
      { after: 20, ending: { kind: 'http-error', status: 503, detail: 'full' } },
      { after: 20, ending: { kind: 'http-error', status: 500, detail: 'oops' } },
      { after: 20, ending: { kind: 'failed', reason: 'reset', detail: 'ECONNRESET' } },
      { ttft: 100, itl: 10, finish: false },
      { ttft: 9000, itl: 10 },
      { after: 20, ending: { kind: 'refused', detail: 'queue full' } },
    ];
    const { clock, sink, run } = start((spec) => fates[spec.operation % fates.length] as Fate);
    const { fold } = await finish(run, clock, sink);
    for (const c of ['good', 'late', 'rejected', 'failed', 'truncated', 'timed-out'] as const) {
      expect(fold.ledger[c], c).toBeGreaterThan(0);
    }
    expect(fold.censored.ttft).toBeGreaterThan(0);
  });

  it('turns what exceeds --max-in-flight into unsent', async () => {
    const { clock, sink, run } = start(() => ({ ttft: 1000, itl: 10 }), { maxInFlight: 3 });
    const { result, fold } = await finish(run, clock, sink);
    expect(fold.ledger.unsent).toBeGreaterThan(50);
    expect(result.unsent).toBe(fold.ledger.unsent);
    expect(result.maxInFlight).toBeLessThanOrEqual(4);
  });

  it('re-attempts a stale connection once, by default and visibly', async () => {
    const stale: Fate = { after: 1, ending: { kind: 'failed', reason: 'reset', detail: 'closed', stale: true } };
    const { clock, sink, run } = start((spec) => (spec.attempt === 0 && spec.operation % 5 === 0 ? stale : GOOD));
    const { result, fold } = await finish(run, clock, sink);
    expect(result.stale).toBeGreaterThan(10);
    expect(fold.ledger.good).toBe(fold.offered);
    expect(fold.attempts).toBeGreaterThan(fold.offered);
  });

  it('folds retries into one operation whose TTFT runs from its first attempt', async () => {
    const refuse: Fate = { after: 50, ending: { kind: 'http-error', status: 503, detail: '' } };
    const { clock, sink, run } = start((spec) => (spec.attempt < 2 ? refuse : GOOD), {
      retry: { retries: 2, backoff: 100 },
    });
    const { fold } = await finish(run, clock, sink);
    expect(fold.attempts).toBe(3 * fold.offered);
    expect(fold.ledger.good + fold.ledger.late).toBe(fold.offered);
    expect(Math.min(...fold.columns.ttft)).toBeGreaterThan(100 + 50 + 50 + 50 + 100);
  });

  it('does not retry what would be as bad again', async () => {
    const { clock, sink, run } = start(() => ({ after: 5, ending: { kind: 'http-error', status: 401, detail: '' } }), {
      retry: { retries: 3, backoff: 10 },
    });
    const { fold } = await finish(run, clock, sink);
    expect(fold.attempts).toBe(fold.offered);
    expect(fold.ledger.failed).toBe(fold.offered);
  });
});

describe('stopping', () => {
  it('once: ends arrivals, observes the cohort to its end', async () => {
    const { clock, sink, run } = start(() => ({ ttft: 2000, itl: 100 }));
    clock.advance(8000);
    run.stop();
    const { result, fold } = await finish(run, clock, sink);
    expect(result.stopped).toBe('stopped');
    expect(result.window.end).toBe(8000);
    expect(fold.ledger.undecided).toBe(0);
    expect(fold.ledger.late).toBe(fold.offered);
  });

  it('twice: what is open is undecided', async () => {
    const { clock, sink, run } = start(() => ({ ttft: 2000, itl: 100 }));
    clock.advance(8000);
    run.stop();
    run.abort();
    const { result, fold } = await finish(run, clock, sink);
    expect(result.stopped).toBe('aborted');
    expect(fold.ledger.undecided).toBeGreaterThan(5);
    expect(fold.ledger.undecided + fold.ledger.late).toBe(fold.offered);
  });

  it('before the window is known: everything offered is the cohort', async () => {
    const { clock, sink, run } = start(() => GOOD, { window: { warmup: 'auto', duration: 1000, rate: 10 } });
    clock.advance(90);
    run.abort();
    const { result } = await finish(run, clock, sink);
    expect(result.window.estimated).toBe(true);
  });
});

describe('closed loop', () => {
  it('keeps its slots full and schedules from the freed slot', async () => {
    const clock = virtualClock();
    const sink = memorySink();
    const run = drive(
      closedLoop(REQUESTS, 4, 3),
      fatedEngine(clock, () => GOOD),
      clock,
      { contract: CONTRACT, seed: 3, window: { warmup: 500, duration: 5000 } },
      sink,
    );
    const { result, fold } = await finish(run, clock, sink);
    expect(result.maxInFlight).toBe(4);
    expect(fold.offered).toBeGreaterThan(4 * 35);
    expect(fold.ledger.good).toBe(fold.offered);
  });
});
