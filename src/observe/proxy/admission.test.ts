import { describe, expect, it } from 'vitest';
import { Admission, type Admitted } from './admission.ts';
import { choose, Upstream } from './upstream.ts';

const target = (url: string) => ({ url, authority: 'x', prefix: '', host: 'x', port: 1, tls: false });

class Request implements Admitted {
  readonly at: number;
  readonly ttftLimit: number;
  upstream: Upstream | undefined;
  refused: { retryAfter: number; why: string } | undefined;
  constructor(at: number, ttftLimit = Number.POSITIVE_INFINITY) {
    this.at = at;
    this.ttftLimit = ttftLimit;
  }
  dispatch(upstream: Upstream): void {
    this.upstream = upstream;
    upstream.inFlight++;
  }
  refuse(retryAfter: number, why: string): void {
    this.refused = { retryAfter, why };
  }
}

function gate(cap: number, maxQueueAge = Number.POSITIVE_INFINITY, maxQueue = 100) {
  let now = 0;
  const upstream = new Upstream(target('a'), cap);
  const admission = new Admission([upstream], { maxQueueAge, maxQueue }, () => now);
  const enter = (ttftLimit?: number): Request => {
    const request = new Request(now, ttftLimit);
    admission.enter(request);
    return request;
  };
  const release = (): void => {
    upstream.inFlight--;
    admission.released();
  };
  return { admission, upstream, enter, release, at: (t: number) => void (now = t) };
}

describe('admission', () => {
  it('sends everyone on where there is no cap', () => {
    const g = gate(Number.POSITIVE_INFINITY);
    expect(Array.from({ length: 500 }, () => g.enter()).every((r) => r.upstream)).toBe(true);
  });

  it('lets the first to come go first', () => {
    const g = gate(1);
    const [a, b, c] = [g.enter(), g.enter(), g.enter()];
    expect([a, b, c].map((r) => r.upstream !== undefined)).toEqual([true, false, false]);
    expect(g.admission.queued).toBe(2);
    g.admission.leave(b);
    g.release();
    expect(c.upstream).toBeDefined();
  });

  it('refuses what has waited too long, and what finds the queue full', () => {
    const g = gate(1, 1000, 1);
    g.enter();
    const waits = g.enter();
    expect(g.enter().refused?.why).toMatch(/queue is full/);
    g.at(1001);
    g.admission.sweep();
    expect(waits.refused?.why).toMatch(/longer than requests may/);
    expect(g.admission.queued).toBe(0);
  });

  it('refuses early what would miss its limit by waiting, and says when to come again', () => {
    const g = gate(1);
    // Served one a second, each with its first token after 200 ms.
    for (let i = 0; i < 20; i++) {
      g.at(1000 * i);
      if (i > 0) g.release();
      while (g.admission.queued < 2) g.enter();
      g.admission.served(200);
    }
    const hopeless = g.enter(2000);
    expect(hopeless.refused?.why).toMatch(/miss its TTFT limit/);
    expect(hopeless.refused?.retryAfter).toBeGreaterThanOrEqual(3);
    const patient = g.enter(10_000);
    expect(patient.refused).toBeUndefined();
  });
});

describe('upstreams', () => {
  it('are chosen by fewest in flight, and passed over after failures in a row for a while', () => {
    const [a, b] = [new Upstream(target('a')), new Upstream(target('b'))];
    a.inFlight = 2;
    expect(choose([a, b], 0, 0)).toBe(b);
    for (let i = 0; i < 3; i++) b.failed(0);
    expect(choose([a, b], 0, 500)).toBe(a);
    expect(choose([a, b], 0, 1001)).toBe(b);
    for (let i = 0; i < 3; i++) a.failed(1001);
    b.failed(1001);
    expect(b.isHealthy(2900)).toBe(false);
    // Better the one whose pause ends first than none.
    expect(choose([a, b], 0, 1002)).toBe(a);
    b.succeeded();
    expect(choose([a, b], 0, 3002)).toBe(b);
  });
});
