import { describe, expect, it } from 'vitest';
import { contractOf, judgeRecord, Recorder } from '../../core/index.ts';
import { LiveCohorts, type LiveSnapshot } from '../cohorts/index.ts';
import { Watched, windowsTogether } from './index.ts';

const contract = contractOf({ ttft: 500 }, { deadline: 30_000 });

/** A proxy that saw operations of these TTFTs (undefined: refused) in its first window of 1 s. */
function proxy(ttfts: readonly (number | undefined)[], epochWall: number): LiveSnapshot {
  const cohorts = new LiveCohorts({
    boundary: 'proxy',
    instance: 'p',
    epochWall,
    contractFor: () => contract,
    window: 1000,
  });
  ttfts.forEach((ttft, number) => {
    const at = 10 * number;
    const spec = { operation: number, attempt: 0, class: 'default', inputTokens: 0, outputTokens: 0, choices: 1 };
    const recorder = new Recorder({ ...spec, stream: true, ignoreEos: false }, at);
    if (ttft === undefined) recorder.ended(at + 5, { kind: 'http-error', status: 503, detail: '' });
    else {
      recorder.event(at + ttft, { outputs: [{ choice: 0, kind: 'text', tokens: 1 }] }, false);
      recorder.event(at + ttft, { outputs: [], finishes: [{ choice: 0, reason: 'stop' }] }, false);
      recorder.ended(at + ttft, { kind: 'closed' });
    }
    const record = recorder.record();
    const told = { operation: number, at, class: 'default', tenant: '' };
    cohorts.arrived(told);
    cohorts.final({
      ...told,
      record,
      attempts: [record],
      ...judgeRecord(record, contract),
      contract,
      groupedBy: 'none',
    });
  });
  const records = {
    written: 0,
    pending: 0,
    dropped: 0,
    problem: null,
    passed_through: 0,
    unreadable: {},
    listener_failures: 0,
  };
  return cohorts.snapshot({ now: 2500, inFlight: [], queued: 0, upstreams: [], records }, { sketches: true });
}

describe('windows of several proxies', () => {
  const a = proxy([100, 100, 100, 900], 1_000_000);
  const b = proxy([200, undefined], 1_000_120);
  const [first] = windowsTogether([a, b], 10);

  it('are taken together where they begin about together, and add up', () => {
    expect(first?.offered).toBe(6);
    expect(first?.outcomes).toMatchObject({ good: 4, late: 1, rejected: 1 });
    expect(first?.attainment).toMatchObject({ low: 4 / 6, high: 4 / 6, denominator: 6 });
    expect(first?.state).toBe('final');
  });

  it('give quantiles of all operations, never a mean of quantiles', () => {
    expect(first?.ttft?.count).toBe(6);
    expect(first?.ttft?.p50_ms).toBeGreaterThan(100);
    expect(first?.ttft?.p50_ms).toBeLessThan(201);
    expect(first?.ttft?.p99_ms).toBe('inf'); // one of six never had a first output
  });

  it('say nothing of quantiles where one sent no sketch', () => {
    const bare = {
      ...b,
      windows: b.windows.map((w) => ({ ...w, all: { ...w.all, ttft: { ...w.all.ttft, sketch_ms: undefined } } })),
    };
    expect(windowsTogether([a, bare as unknown as LiveSnapshot], 10)[0]?.ttft).toBeUndefined();
  });
});

describe('what is watched', () => {
  it('is named without user and password', () => {
    expect(new Watched('http://me:secret@127.0.0.1:9/x').url).toBe('http://127.0.0.1:9');
    expect(new Watched('127.0.0.1:9').url).toBe('http://127.0.0.1:9');
    expect(() => new Watched('http://')).toThrow(/is no URL/);
  });

  it('is told as not seen, with the reason, where nothing answers', async () => {
    const look = await new Watched('http://127.0.0.1:1').look({ timeout: 1000, windows: 1, wall: () => 0 });
    expect(look).toMatchObject({ kind: 'down', why: expect.stringContaining('ECONNREFUSED') });
  });
});
