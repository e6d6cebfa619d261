/**
 * What every scheduler must hold, whatever it schedules: the suite runs on each `Cluster` there is. (A library of tests;
 * imported by test files only.)
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Millis, toMicroGrid } from '../base/units.ts';
import { virtualClock } from '../core/clock.ts';
import type { RequestRecord } from '../core/record.ts';
import { Recorder } from '../core/recorder.ts';
import type { Offer, RequestSpec, Workload } from '../core/request.ts';
import { type Cluster, type Finished, QUEUE_FULL, TOO_LONG } from './cluster.ts';
import { recordOf, type SimDone } from './record-of.ts';
import { simEngine } from './sim-engine.ts';
import { simulate } from './simulate.ts';
import { listed, spec } from './testing.ts';

export interface ConformanceOptions {
  /**
   * Makes a fresh cluster whose KV pool is so small that a dozen requests of 100 tokens press on it.
   * @param maxQueue how many may wait; unsaid: any number.
   */
  readonly make: (maxQueue?: number) => Cluster;
  /** Requests start in the order they came; or do so among those this puts together (one replica of several). */
  readonly fcfs: boolean | ((f: Finished) => number);
  /** A step may give a request several tokens at once. */
  readonly severalTokensAStep?: boolean;
}

/** Offers in bursts and gaps, some with shared prefixes. */
const offers: fc.Arbitrary<Offer[]> = fc
  .array(
    fc.record({
      gap: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 60, noNaN: true })),
      input: fc.integer({ min: 1, max: 120 }),
      output: fc.integer({ min: 1, max: 60 }),
      prefix: fc.integer({ min: 0, max: 3 }),
    }),
    { minLength: 1, maxLength: 40 },
  )
  .map((rows) => {
    let at = 0;
    return rows.map(({ gap, input, output, prefix }, operation) => {
      at = toMicroGrid(at + gap); // as `drive` and `simulate` put them
      // Prompts of one prefix class share the hashes of their whole 16-token blocks, but for the last.
      const blocks = Math.floor(input / 16);
      const prefixBlocks = Array.from(
        { length: blocks },
        (_, i) => 100 * prefix + (i < blocks - 1 ? i : 1000 + operation),
      );
      return { at, spec: spec(operation, input, output, prefix > 0 ? { prefixBlocks } : {}) };
    });
  });

export function schedulerConformance(
  name: string,
  { make, fcfs, severalTokensAStep = false }: ConformanceOptions,
): void {
  describe(`scheduler conformance: ${name}`, () => {
    it('ends every request with all its tokens, never over-allocates KV, and comes to rest empty', () => {
      fc.assert(
        fc.property(offers, (list) => {
          const cluster = watched(make());
          const done = run(cluster, list);
          expect(done.map((d) => d.spec.operation).sort((a, b) => a - b)).toEqual(list.map((_, i) => i));
          for (const d of done) {
            expect(d.outcome).toBe('completed');
            const f = d.finished as Finished;
            expect(f.generated).toBe(d.spec.outputTokens);
            expect(f.scheduled).toBeGreaterThanOrEqual(f.arrived);
            expect(f.firstToken).toBeGreaterThan(f.scheduled);
            expect(f.lastToken).toBe(f.ended);
          }
          const g = cluster.gauges();
          expect(g).toMatchObject({ running: 0, waiting: 0, kvUsed: 0 });
          expect(g.generationTokens).toBe(list.reduce((sum, o) => sum + o.spec.outputTokens, 0));
          expect(g.promptTokens).toBe(list.reduce((sum, o) => sum + o.spec.inputTokens, 0));
        }),
        { numRuns: 25, seed: 11 },
      );
    });

    it('gives tokens in increasing time, the first and last as told', () => {
      fc.assert(
        fc.property(offers, (list) => {
          simulate(listed(list), make(), ({ finished }) => {
            const f = finished as Finished;
            const times = f.tokenTimes();
            expect(times.length).toBe(f.generated);
            expect(times[0]).toBe(f.firstToken);
            expect(times.at(-1)).toBe(f.lastToken);
            for (let i = 1; i < times.length; i++) {
              if (severalTokensAStep) expect(times[i]!).toBeGreaterThanOrEqual(times[i - 1]!);
              else expect(times[i]!).toBeGreaterThan(times[i - 1]!);
            }
          });
        }),
        { numRuns: 15, seed: 12 },
      );
    });

    it('is the same through both doors, record for record', () => {
      fc.assert(
        fc.property(offers, fc.option(fc.integer({ min: 5, max: 300 }), { nil: undefined }), (list, deadline) => {
          const pulled = new Map<number, RequestRecord>();
          simulate(listed(list), make(), (done) => void pulled.set(done.spec.operation, recordOf(done)), {
            ...(deadline !== undefined && { deadline: deadline + 0.123 }),
          });
          expect(throughClock(make(), list, deadline === undefined ? undefined : deadline + 0.123)).toEqual(pulled);
        }),
        { numRuns: 25, seed: 13 },
      );
    });

    it('gives the same twice, however finely time is advanced', () => {
      fc.assert(
        fc.property(offers, fc.double({ min: 0.5, max: 40, noNaN: true }), (list, stride) => {
          const coarse = run(make(), list).map(plain);
          const cluster = make();
          const fine: SimDone[] = [];
          const out: Finished[] = [];
          let i = 0;
          for (let t = 0; fine.length < list.length; t += stride) {
            while (i < list.length && list[i]!.at <= t) {
              if (i === 0 || list[i]!.at > list[i - 1]!.at) advance(cluster, list[i]!.at, out);
              cluster.offer(list[i]!.spec, list[i]!.at);
              i++;
            }
            advance(cluster, t, out);
            for (const f of out.splice(0))
              fine.push({ spec: f.spec, scheduled: f.arrived, ended: f.ended, outcome: 'completed', finished: f });
          }
          const byOperation = (a: SimDone, b: SimDone): number => a.spec.operation - b.spec.operation;
          expect([...fine].sort(byOperation).map(plain)).toEqual([...coarse].sort((a, b) => a.operation - b.operation));
        }),
        { numRuns: 15, seed: 14 },
      );
    });

    it('lets requests be cancelled at any time, and serves the rest', () => {
      fc.assert(
        fc.property(offers, fc.array(fc.nat({ max: 400 }), { maxLength: 20 }), (list, cancels) => {
          const cluster = watched(make());
          const out: Finished[] = [];
          const handles = new Map<number, number>();
          const ended = new Set<number>();
          const events = [
            ...list.map((o) => ({ t: o.at, offer: o })),
            ...cancels.map((t, k) => ({ t: t + 0.5, offer: undefined, operation: k % list.length })),
          ].sort((a, b) => a.t - b.t);
          const drain = (): void => {
            for (const f of out.splice(0)) {
              expect(ended.has(f.spec.operation)).toBe(false);
              ended.add(f.spec.operation);
            }
          };
          for (const e of events) {
            advance(cluster, e.t, out);
            drain();
            if (e.offer) handles.set(e.offer.spec.operation, cluster.offer(e.offer.spec, e.t));
            else {
              const handle = handles.get((e as { operation: number }).operation);
              const f = handle === undefined ? undefined : cluster.cancel(handle, e.t);
              if (f) {
                expect(ended.has(f.spec.operation)).toBe(false);
                ended.add(f.spec.operation);
                expect(f.tokenTimes().length).toBe(f.generated);
                expect(cluster.cancel(handle as number, e.t)).toBeUndefined();
              }
            }
          }
          for (let t = cluster.nextAt(); t < Number.POSITIVE_INFINITY; t = cluster.nextAt()) {
            cluster.advance(t, out);
            drain();
          }
          expect(ended.size).toBe(list.length);
          expect(cluster.gauges()).toMatchObject({ running: 0, waiting: 0, kvUsed: 0 });
        }),
        { numRuns: 25, seed: 15 },
      );
    });

    it('keeps deadlines, each request its own, and serves the rest', () => {
      fc.assert(
        fc.property(offers, fc.integer({ min: 20, max: 200 }), (list, least) => {
          const deadline = ({ operation }: RequestSpec): Millis => least + 0.37 + (operation % 3) * 90;
          const ended: SimDone[] = [];
          const cluster = watched(make());
          simulate(listed(list), cluster, (d) => void ended.push(d), { deadline });
          expect(ended.length).toBe(list.length);
          for (const d of ended) {
            const due = d.scheduled + deadline(d.spec);
            if (d.outcome === 'timed-out') expect(d.ended).toBeCloseTo(due, 6);
            else {
              expect(d.outcome).toBe('completed');
              expect(d.ended).toBeLessThanOrEqual(due);
            }
          }
          expect(cluster.gauges()).toMatchObject({ running: 0, waiting: 0, kvUsed: 0 });
        }),
        { numRuns: 20, seed: 17 },
      );
    });

    it('refuses when its queue is full, and only then', () => {
      fc.assert(
        fc.property(offers, fc.integer({ min: 1, max: 4 }), (list, most) => {
          const cluster = watched(make(most));
          const out: Finished[] = [];
          let refused = 0;
          for (const { at, spec: s } of list) {
            advance(cluster, at, out);
            cluster.nextAt(); // what starts at this instant has started
            const { waiting } = cluster.gauges();
            const handle = cluster.offer(s, at);
            expect(handle === QUEUE_FULL).toBe(waiting >= most);
            if (handle === QUEUE_FULL) refused++;
          }
          advance(cluster, 1e9, out);
          expect(out.length).toBe(list.length - refused);
        }),
        { numRuns: 20, seed: 18 },
      );
    });

    it('refuses what can never fit, with nothing taken', () => {
      const cluster = watched(make());
      const g = cluster.gauges();
      const long = spec(0, 16 * g.kvBlocks + 1, 1);
      expect(cluster.fits(long)).toBe(false);
      expect(cluster.offer(long, 0)).toBe(TOO_LONG);
      expect(cluster.gauges()).toEqual(g);
      expect(cluster.nextAt()).toBe(Number.POSITIVE_INFINITY);
    });

    if (fcfs !== false) {
      it('schedules in order of arrival', () => {
        fc.assert(
          fc.property(offers, (list) => {
            const done = run(make(), list).sort((a, b) => a.spec.operation - b.spec.operation);
            const last = new Map<number, Millis>();
            for (const d of done) {
              const f = d.finished as Finished;
              const lane = fcfs === true ? 0 : fcfs(f);
              expect(f.scheduled).toBeGreaterThanOrEqual(last.get(lane) ?? 0);
              last.set(lane, f.scheduled);
            }
          }),
          { numRuns: 15, seed: 16 },
        );
      });
    }
  });
}

function run(cluster: Cluster, list: readonly Offer[]): SimDone[] {
  const done: SimDone[] = [];
  simulate(listed(list), cluster, (d) => void done.push(d));
  return done;
}

function advance(cluster: Cluster, to: Millis, out: Finished[]): void {
  for (let t = cluster.nextAt(); t <= to; t = cluster.nextAt()) cluster.advance(t, out);
  cluster.advance(to, out);
}

function plain(d: SimDone): {
  operation: number;
  scheduled: Millis;
  first: Millis;
  ended: Millis;
  preemptions: number;
} {
  const f = d.finished as Finished;
  return {
    operation: d.spec.operation,
    scheduled: f.scheduled,
    first: f.firstToken,
    ended: f.ended,
    preemptions: f.preemptions,
  };
}

/**
 * Looks at the KV pool after every call, and holds Little's law on the run: the integral of the number in the system is the
 * sum of the times in the system, whenever it is empty. (As an identity of the path it holds exactly, not in the mean.)
 */
function watched(cluster: Cluster): Cluster {
  let now: Millis = 0;
  let area = 0;
  let times = 0;
  const inSystem = (): number => {
    const g = cluster.gauges();
    return g.running + g.waiting;
  };
  /** Up to `t`, before what happens at `t`. */
  const reach = (t: Millis): void => {
    if (t <= now || t === Number.POSITIVE_INFINITY) return;
    area += inSystem() * (t - now);
    now = t;
  };
  const left = (f: Finished | undefined): void => {
    if (f) times += f.ended - f.arrived;
  };
  const check = <T>(value: T): T => {
    const g = cluster.gauges();
    expect(g.kvUsed).toBeLessThanOrEqual(g.kvBlocks);
    expect(g.kvUsed).toBeGreaterThanOrEqual(0);
    if (g.running + g.waiting === 0) expect(Math.abs(area - times)).toBeLessThan(1e-6 * (1 + times));
    return value;
  };
  return {
    offer: (s, t) => {
      reach(t);
      return check(cluster.offer(s, t));
    },
    cancel: (h, t) => {
      reach(t);
      const f = cluster.cancel(h, t);
      left(f);
      return check(f);
    },
    nextAt: () => cluster.nextAt(),
    fits: (s) => cluster.fits(s),
    nextStepAt: () => cluster.nextStepAt(),
    advance: (to, out) => {
      const before = out.length;
      if (to < 1e9) reach(to);
      cluster.advance(to, out);
      for (let i = before; i < out.length; i++) left(out[i]);
      check(undefined);
    },
    forEachDecoding: (visit) => cluster.forEachDecoding(visit),
    gauges: () => cluster.gauges(),
  };
}

/** The records a recorder makes behind `simEngine` on a virtual clock, deadlines kept by the client. */
export function throughClock(cluster: Cluster, list: readonly Offer[], deadline?: Millis): Map<number, RequestRecord> {
  const clock = virtualClock();
  const engine = simEngine(cluster, clock);
  const records = new Map<number, RequestRecord>();
  for (const offer of list) {
    clock.at(offer.at, () => {
      const recorder = new Recorder(offer.spec, offer.at);
      const finish = (): void => void records.set(offer.spec.operation, recorder.record());
      const cancel = engine.submit(offer.spec, {
        dispatched: (t) => recorder.dispatched(t),
        connected: (t, how) => recorder.connected(t, how),
        sent: (t) => recorder.sent(t),
        headers: (t, status) => recorder.headers(t, status),
        event: (t, event, coalesced) => recorder.event(t, event, coalesced),
        ended: (t, ending) => {
          recorder.ended(t, ending);
          finish();
        },
      });
      if (deadline !== undefined) {
        clock.at(offer.at + deadline, () => {
          if (recorder.isEnded) return;
          cancel();
          recorder.giveUp(offer.at + deadline, 'timed-out', 'deadline');
          finish();
        });
      }
    });
  }
  clock.runAll();
  return records;
}

export type { Workload };
