/**
 * The rules of `core/engine.ts`, run on any engine, live or simulated: no observer call inside `submit`, `dispatched`
 * first, `t` never decreasing and never ahead of the clock, exactly one `ended` and it last, nothing after cancel.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Cancel, Clock } from '../../src/core/clock.ts';
import type { Connection, Ending, Engine, Observer } from '../../src/core/engine.ts';
import { Recorder } from '../../src/core/recorder.ts';
import type { RequestSpec } from '../../src/core/request.ts';
import type { StreamEvent } from '../../src/core/stream.ts';

export interface EngineUnderTest {
  readonly engine: Engine;
  readonly clock: Clock;
  /** A streamed request that the engine serves to its clean end, with `tokens` output tokens. */
  spec(operation: number, tokens: number): RequestSpec;
  /** Lets time pass, on whatever clock, until `done()`. Rejects when that cannot come. */
  pass(done: () => boolean): Promise<void>;
  /** Frees what `engine.close()` does not. */
  dispose?(): Promise<void>;
}

export type Call =
  | { readonly what: 'dispatched' | 'sent'; readonly t: number }
  | { readonly what: 'connected'; readonly t: number; readonly how: Connection }
  | { readonly what: 'headers'; readonly t: number; readonly status: number }
  | { readonly what: 'event'; readonly t: number; readonly event: StreamEvent; readonly coalesced: boolean }
  | { readonly what: 'ended'; readonly t: number; readonly ending: Ending };

/** Writes down every call, and holds the rules that can be told at once. */
export class CallLog implements Observer {
  readonly calls: Call[] = [];
  readonly breaches: string[] = [];
  /** Called after each call is written down. */
  after: (call: Call) => void = () => {};
  #forbidden = '';
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get ending(): Ending | undefined {
    const last = this.calls.at(-1);
    return last?.what === 'ended' ? last.ending : undefined;
  }
  get names(): string[] {
    return this.calls.map((call) => call.what);
  }
  get events(): StreamEvent[] {
    return this.calls.flatMap((call) => (call.what === 'event' ? [call.event] : []));
  }
  /** From now on every call is a breach, for this reason; '' allows them again. */
  forbid(why: string): void {
    this.#forbidden = why;
  }

  dispatched(t: number): void {
    this.#note({ what: 'dispatched', t });
  }
  connected(t: number, how: Connection): void {
    this.#note({ what: 'connected', t, how });
  }
  sent(t: number): void {
    this.#note({ what: 'sent', t });
  }
  headers(t: number, status: number): void {
    this.#note({ what: 'headers', t, status });
  }
  event(t: number, event: StreamEvent, coalesced: boolean): void {
    this.#note({ what: 'event', t, event, coalesced });
  }
  ended(t: number, ending: Ending): void {
    this.#note({ what: 'ended', t, ending });
  }

  #note(call: Call): void {
    const { what, t } = call;
    const last = this.calls.at(-1);
    if (this.#forbidden) this.breaches.push(`${what} ${this.#forbidden}`);
    if (!Number.isFinite(t)) this.breaches.push(`${what} at ${t}`);
    if (t > this.#clock.now()) this.breaches.push(`${what} at ${t}, ahead of the clock at ${this.#clock.now()}`);
    if (last === undefined && what !== 'dispatched') this.breaches.push(`${what} before dispatched`);
    if (last !== undefined && t < last.t) this.breaches.push(`${what} at ${t} after ${last.what} at ${last.t}`);
    if (last?.what === 'ended') this.breaches.push(`${what} after ended`);
    if (what !== 'event' && this.calls.some((c) => c.what === what)) this.breaches.push(`${what} twice`);
    this.calls.push(call);
    this.after(call);
  }
}

export function engineConformance(name: string, make: () => Promise<EngineUnderTest>): void {
  describe(`engine conformance: ${name}`, () => {
    let sut: EngineUnderTest;
    beforeEach(async () => {
      sut = await make();
    });
    afterEach(async () => {
      await sut.engine.close();
      await sut.dispose?.();
    });

    const submit = (operation: number, tokens: number, prepare?: (log: CallLog, cancel: Cancel) => void): CallLog => {
      const log = new CallLog(sut.clock);
      log.forbid('inside submit');
      let cancel: Cancel = () => {};
      prepare?.(log, () => cancel());
      cancel = sut.engine.submit(sut.spec(operation, tokens), log);
      log.forbid('');
      return log;
    };
    /** Serves another request from start to end, so that whatever was still to come has come. */
    const settle = async (): Promise<void> => {
      const other = submit(999_999, 4);
      await sut.pass(() => other.ending !== undefined);
    };

    it('tells one request in order, from dispatched to its one end', async () => {
      const before = sut.clock.now();
      const log = submit(0, 5);
      expect(log.calls).toEqual([]);
      await sut.pass(() => log.ending !== undefined);
      await settle();
      expect(log.breaches).toEqual([]);
      expect(log.calls[0]?.t).toBeGreaterThanOrEqual(before);
      expect(log.ending).toEqual({ kind: 'closed' });
      const order = ['dispatched', 'connected', 'sent', 'headers', 'event', 'ended'];
      const ranks = log.names.map((n) => order.indexOf(n));
      expect(ranks).toEqual([...ranks].sort((a, b) => a - b));
      expect(log.events.some((event) => event.outputs.length > 0)).toBe(true);
    });

    it('gives a recorder what makes a completed record', async () => {
      const spec = sut.spec(3, 6);
      const recorder = new Recorder(spec, sut.clock.now());
      sut.engine.submit(spec, recorder);
      await sut.pass(() => recorder.isEnded);
      const record = recorder.record();
      expect(record).toMatchObject({ operation: 3, outcome: 'completed', phase: 'done' });
      expect(record.timeline.length).toBeGreaterThan(0);
      expect(record.timeline.length).toBeLessThanOrEqual(6);
      expect(record.stamps.ended).toBeGreaterThanOrEqual(record.stamps.lastOutput as number);
    });

    it('marks only events that share the stamp of the one before as coalesced', async () => {
      const log = submit(0, 20);
      await sut.pass(() => log.ending !== undefined);
      const events = log.calls.filter((call) => call.what === 'event');
      events.forEach((call, i) => {
        if (call.coalesced) expect(call.t).toBe(events[i - 1]?.t);
      });
      expect(events[0]?.coalesced).toBe(false);
    });

    it('serves many at once, each to its own end', async () => {
      const logs = Array.from({ length: 20 }, (_, i) => submit(i, 1 + (i % 7)));
      await sut.pass(() => logs.every((log) => log.ending !== undefined));
      await settle();
      for (const log of logs) {
        expect(log.breaches).toEqual([]);
        expect(log.ending).toEqual({ kind: 'closed' });
      }
    });

    it('tells nothing of a request cancelled at once', async () => {
      const log = new CallLog(sut.clock);
      log.forbid('after cancel');
      sut.engine.submit(sut.spec(0, 5), log)();
      await settle();
      expect(log.breaches).toEqual([]);
      expect(log.calls).toEqual([]);
    });

    for (const when of ['dispatched', 'connected', 'sent', 'headers', 'event'] as const) {
      it(`tells nothing after a cancel inside '${when}'`, async () => {
        let cancelled = false;
        const log = submit(0, 50, (l, cancel) => {
          l.after = (call) => {
            if (call.what !== when || cancelled) return;
            cancelled = true;
            l.forbid(`after cancel in ${when}`);
            cancel();
          };
        });
        await sut.pass(() => cancelled || log.ending !== undefined);
        await settle();
        expect(log.breaches).toEqual([]);
        if (cancelled) expect(log.names).not.toContain('ended');
        else expect(log.names).not.toContain(when); // an engine without that phase
      });
    }

    it('takes a cancel that is late or repeated', async () => {
      const log = new CallLog(sut.clock);
      const cancel = sut.engine.submit(sut.spec(0, 2), log);
      await sut.pass(() => log.ending !== undefined);
      cancel();
      cancel();
      await settle();
      expect(log.breaches).toEqual([]);
      expect(log.names.filter((n) => n === 'ended')).toHaveLength(1);
    });

    it('leaves the others alone when one is cancelled', async () => {
      const others = [0, 1, 2].map((i) => submit(i, 10));
      const cancelOne = sut.engine.submit(sut.spec(3, 10), new CallLog(sut.clock));
      await sut.pass(() => others.some((log) => log.names.includes('event')));
      cancelOne();
      await sut.pass(() => others.every((log) => log.ending !== undefined));
      for (const log of others) expect(log.ending).toEqual({ kind: 'closed' });
    });

    it('tells nothing once close has come to its end, and at most one end before', async () => {
      const logs = [0, 1, 2].map((i) => submit(i, 200));
      await sut.pass(() => logs.every((log) => log.calls.length > 0));
      await sut.engine.close();
      for (const log of logs) log.forbid('after close');
      await sut.engine.close();
      await new Promise((resolve) => setImmediate(resolve));
      for (const log of logs) expect(log.breaches).toEqual([]);
    });
  });
}
