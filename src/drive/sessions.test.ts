import { describe, expect, it } from 'vitest';
import {
  CohortReducer,
  contractFor,
  contractOf,
  type Engine,
  type Observer,
  type RequestRecord,
  type RequestSpec,
  type Sink,
  virtualClock,
} from '../core/index.ts';
import { type ClassPlan, type MixPlan, openMix, REQUEST_DEFAULTS } from '../workload/index.ts';
import { type DrivePlan, drive } from './drive.ts';

const CONTRACT = contractOf({ ttft: 500 }, { deadline: 5000 });
const TURNS = 3;
const THINK = 2000;
const CHAT: ClassPlan = {
  ...REQUEST_DEFAULTS,
  name: 'chat',
  share: 1,
  output: { kind: 'fixed', tokens: 4 },
  session: { turns: { kind: 'fixed', tokens: TURNS }, think: { kind: 'fixed', time: THINK } },
};

/** Answers after 100 ms with one chunk, or refuses what `fails` says. */
function run(mix: MixPlan, plan: Partial<DrivePlan>, fails: (spec: RequestSpec) => boolean = () => false, rate = 2) {
  const clock = virtualClock();
  const engine: Engine = {
    name: 'test',
    submit(spec, to: Observer) {
      const t0 = clock.now();
      const cancels = [
        clock.at(t0, () => to.dispatched(t0)),
        clock.at(t0 + 100, () => {
          if (fails(spec)) to.ended(t0 + 100, { kind: 'http-error', status: 500, detail: '' });
          else {
            to.event(t0 + 100, { outputs: [{ choice: 0, kind: 'text', tokens: 1 }] }, false);
            to.event(t0 + 100, { outputs: [], finishes: [{ choice: 0, reason: 'stop' }] }, false);
            to.ended(t0 + 100, { kind: 'closed' });
          }
        }),
      ];
      return () => {
        for (const cancel of cancels) cancel();
      };
    },
    close: async () => {},
  };
  const records: RequestRecord[] = [];
  const sink: Sink = { add: (r) => void records.push(r), full: false, drained: async () => {}, close: async () => {} };
  const running = drive(
    openMix(mix, { process: 'poisson', rate }, 5),
    engine,
    clock,
    { contract: CONTRACT, seed: 5, window: { warmup: 3000, duration: 10_000, rate, sessions: true }, ...plan },
    sink,
  );
  clock.runAll(1_000_000);
  return { done: running.done, records };
}

describe('driving sessions', () => {
  it('schedules a turn a think time after its predecessor ended', async () => {
    const { done, records } = run({ classes: [CHAT], prompt: 'none' }, {});
    await done;
    const bySession = groupBySession(records);
    let checked = 0;
    for (const turns of bySession.values()) {
      for (let k = 1; k < turns.length; k++) {
        expect((turns[k] as RequestRecord).stamps.scheduled).toBeCloseTo(
          ((turns[k - 1] as RequestRecord).stamps.ended as number) + THINK,
          2,
        );
        checked++;
      }
    }
    expect(checked).toBeGreaterThan(30);
  });

  it('takes all turns of the sessions that arrive in the window, and no others', async () => {
    const { done, records } = run({ classes: [CHAT], prompt: 'none' }, {});
    const { window } = await done;
    const cohort = new CohortReducer(CONTRACT, window);
    for (const r of records) cohort.add(r);
    const fold = cohort.finish();
    const arrived = new Set(
      records
        .filter((r) => r.turn === 0 && r.stamps.scheduled >= window.start && r.stamps.scheduled < window.end)
        .map((r) => r.session),
    );
    expect(arrived.size).toBeGreaterThan(10);
    expect(fold.offered).toBe(TURNS * arrived.size);
    expect(fold.ledger.good).toBe(fold.offered);
    // The last turns come after the window's end, and earlier sessions' turns inside it are not counted.
    expect(Math.max(...fold.arrivals)).toBeGreaterThan(window.end);
    const inside = records.filter((r) => r.stamps.scheduled >= window.start && r.stamps.scheduled < window.end);
    expect(inside.some((r) => !arrived.has(r.session))).toBe(true);
  });

  it('asked for N, takes N sessions', async () => {
    const { done, records } = run(
      { classes: [CHAT], prompt: 'none' },
      { window: { warmup: 3000, requests: 12, rate: 2, sessions: true } },
    );
    const { window } = await done;
    const cohort = new CohortReducer(CONTRACT, window);
    for (const r of records) cohort.add(r);
    expect(cohort.finish().offered).toBe(12 * TURNS);
    expect(window.end - window.start).toBe(6000);
  });

  it('offers the turns after a failed one, unsent, and does not blame the client', async () => {
    const { done, records } = run({ classes: [CHAT], prompt: 'none' }, {}, (spec) => spec.turn === 1);
    const result = await done;
    const cohort = new CohortReducer(CONTRACT, result.window);
    for (const r of records) cohort.add(r);
    const { ledger, offered, unsentAfterFailure } = cohort.finish();
    expect(offered).toBeGreaterThan(30);
    expect(ledger).toMatchObject({ good: offered / 3, failed: offered / 3, unsent: offered / 3 });
    expect(unsentAfterFailure).toBe(offered / 3);
    expect(result.unsent).toBe(0);
  });

  it('judges and times out each class by its own contract', async () => {
    const single = (name: string): ClassPlan => ({ ...REQUEST_DEFAULTS, name, share: 1 });
    const strict = contractOf({ ttft: 50 });
    const hasty = contractOf({}, { deadline: 60 });
    const of = contractFor(CONTRACT, { strict, hasty });
    const { done, records } = run(
      { classes: [single('easy'), single('strict'), single('hasty')], prompt: 'none' },
      { window: { warmup: 0, duration: 20_000, rate: 10 }, contractFor: of },
      undefined,
      10,
    );
    const { window } = await done;
    expect(records.filter((r) => r.class === 'hasty').every((r) => r.outcome === 'timed-out')).toBe(true);
    const cohort = new CohortReducer(CONTRACT, window, of);
    for (const r of records) cohort.add(r);
    const { ledger, offered } = cohort.finish();
    expect(ledger.good + ledger.late + ledger['timed-out']).toBe(offered);
    for (const c of ['good', 'late', 'timed-out'] as const) expect(ledger[c]).toBeGreaterThan(offered / 5);
  });
});

function groupBySession(records: readonly RequestRecord[]): Map<number, RequestRecord[]> {
  const out = new Map<number, RequestRecord[]>();
  for (const r of records) out.set(r.session as number, [...(out.get(r.session as number) ?? []), r]);
  return out;
}
