import { describe, expect, it } from 'vitest';
import type { Offer, Workload } from '../core/request.ts';
import { interArrivalTest, type PlannedArrivals } from '../stats/arrivals-test.ts';
import { type ArrivalPlan, arrivals, gapVariation } from './arrivals.ts';
import type { ClassPlan, MixPlan } from './classes.ts';
import { closedMix, openMix } from './mix.ts';
import { promptText, textSource } from './prompts.ts';
import { openLoop, REQUEST_DEFAULTS, specOf } from './synthetic.ts';

/** What every arrival process keeps. */
function arrivalConformance(plan: ArrivalPlan, planned: PlannedArrivals): void {
  const mean = 1000 / plan.rate;
  const take = (seed: number, n: number): number[] => {
    const next = arrivals(plan, seed);
    return Array.from({ length: n }, next);
  };
  const gaps = (at: readonly number[]): number[] => at.map((t, i) => t - (at[i - 1] ?? 0));

  it('has the mean and the variance it was asked for', () => {
    const n = 40_000;
    const g = gaps(take(11, n));
    const m = g.reduce((a, b) => a + b) / n;
    const cv2 = g.reduce((a, b) => a + (b - m) ** 2, 0) / n / m ** 2;
    const expected = gapVariation(plan);
    expect(Math.abs(m / mean - 1)).toBeLessThan(5 * Math.sqrt(expected / n) + 1e-9);
    expect(Math.abs(cv2 - expected)).toBeLessThan(0.08 * Math.max(expected, 0.01));
  });

  it('follows its distribution', () => {
    const test = interArrivalTest(Float64Array.from(take(12, 3000)), plan.rate / 1000, planned);
    expect(test?.p).toBeGreaterThan(0.01);
  });

  it('is the same for a seed, another for another', () => {
    expect(take(3, 50)).toEqual(take(3, 50));
    if (plan.process !== 'constant') expect(take(3, 50)).not.toEqual(take(4, 50));
  });

  it('draws each operation apart: rate only stretches it, and more operations change no earlier one', () => {
    const twice = arrivals({ ...plan, rate: 2 * plan.rate }, 5);
    const once = take(5, 200);
    for (const t of once) expect(twice()).toBeCloseTo(t / 2, 6);
    expect(take(5, 10)).toEqual(once.slice(0, 10));
  });

  it('is never rescaled: counts in equal windows vary as the process says', () => {
    const counts = Array.from({ length: 300 }, (_, seed) => {
      const next = arrivals(plan, 1000 + seed);
      let n = 0;
      while (next() < 50 * mean) n++;
      return n;
    });
    const m = counts.reduce((a, b) => a + b) / counts.length;
    const variance = counts.reduce((a, b) => a + (b - m) ** 2, 0) / counts.length;
    const dispersion = gapVariation(plan);
    expect(variance / m).toBeGreaterThan(0.6 * dispersion - 1e-9);
    expect(variance / m).toBeLessThan(1.5 * dispersion + 0.1);
  });
}

describe('poisson arrivals', () => arrivalConformance({ process: 'poisson', rate: 7 }, { process: 'poisson' }));
describe('constant arrivals', () => arrivalConformance({ process: 'constant', rate: 7 }, { process: 'constant' }));
describe('bursty gamma arrivals', () =>
  arrivalConformance({ process: 'gamma', rate: 7, burstiness: 0.5 }, { process: 'gamma', shape: 0.5 }));
describe('regular gamma arrivals', () =>
  arrivalConformance({ process: 'gamma', rate: 7, burstiness: 4 }, { process: 'gamma', shape: 4 }));

const CLASS: ClassPlan = { ...REQUEST_DEFAULTS, name: 'a', share: 1, output: { kind: 'gamma', mean: 40, cv: 0.5 } };
const PREFIXED: ClassPlan = {
  ...CLASS,
  name: 'p',
  input: { kind: 'uniform', low: 20, high: 60 },
  prefix: {
    name: 'tree',
    levels: [
      { tokens: 40, branches: 1, skew: 0 },
      { tokens: 24, branches: 3, skew: 1 },
    ],
  },
};
const CHAT: ClassPlan = {
  ...PREFIXED,
  name: 'chat',
  session: { turns: { kind: 'uniform', low: 1, high: 4 }, think: { kind: 'exponential', mean: 500 } },
};

/** Runs a workload against a server that answers each request after a second, and fails the ones `fails` names. */
function played(workload: Workload, n: number, fails: (o: Offer) => boolean = () => false): Offer[] {
  const out: Offer[] = [];
  const pending: { t: number; offer: Offer }[] = [];
  let next = workload.next();
  while (out.length < n && (next || pending.length > 0)) {
    pending.sort((a, b) => a.t - b.t);
    const first = pending[0];
    if (first && (!next || first.t <= next.at)) {
      pending.shift();
      const ok = first.offer.unsent === undefined && !fails(first.offer);
      for (const offer of workload.ended(first.offer.spec.operation, first.t, ok)) {
        out.push(offer);
        pending.push({ t: offer.at + (offer.unsent ? 0 : 1000), offer });
      }
    } else if (next) {
      out.push(next);
      pending.push({ t: next.at + 1000, offer: next });
      next = workload.next();
    }
  }
  return out;
}

describe.each<[string, MixPlan]>([
  ['two classes', { classes: [CLASS, { ...PREFIXED, share: 2 }], prompt: 'text' }],
  ['sessions', { classes: [CHAT, CLASS], prompt: 'text' }],
])('a mix of %s', (_name, mix) => {
  const make = (seed: number): Workload => openMix(mix, { process: 'poisson', rate: 4 }, seed);

  it('offers arrivals in order, each operation once, the same for a seed', () => {
    const w = make(9);
    const offers = Array.from({ length: 300 }, () => w.next() as Offer);
    for (let i = 1; i < offers.length; i++) expect(offers[i]!.at).toBeGreaterThanOrEqual(offers[i - 1]!.at);
    const all = played(make(9), 400);
    expect(new Set(all.map((o) => o.spec.operation)).size).toBe(all.length);
    expect(played(make(9), 100)).toEqual(played(make(9), 100));
    expect(played(make(9), 100)).not.toEqual(played(make(8), 100));
  });

  it('writes prompts of as many words as tokens were asked for, and shares blocks exactly where texts agree', () => {
    const specs = played(make(2), 120).map((o) => o.spec);
    const words = specs.map((s) =>
      (typeof s.prompt === 'string' ? s.prompt : (s.prompt ?? []).map((m) => m.content).join(' ')).split(' '),
    );
    for (const [i, s] of specs.entries()) expect(words[i]).toHaveLength(s.inputTokens);
    let shared = 0;
    for (let i = 0; i < 60; i++) {
      for (let j = i + 1; j < 60; j++) {
        const [a, b] = [specs[i]?.prefixBlocks ?? [], specs[j]?.prefixBlocks ?? []];
        let common = 0;
        while (words[i]![common] !== undefined && words[i]![common] === words[j]![common]) common++;
        const whole = Math.min(a.length, b.length);
        let same = 0;
        while (same < whole && a[same] === b[same]) same++;
        // Two unrelated texts may agree on a word or two by chance, which no hash claims.
        expect(16 * same).toBeLessThanOrEqual(common);
        if (whole > 0) expect(Math.floor(common / 16) - same).toBeLessThanOrEqual(common % 16 < 3 ? 1 : 0);
        shared += same;
      }
    }
    expect(shared).toBeGreaterThan(100);
  });

  it('gives plain and simulated runs the same lengths, whatever the salt; the salt changes all text', () => {
    const bare = played(openMix({ ...mix, prompt: 'none' }, { process: 'poisson', rate: 4 }, 2), 60);
    const salted = { ...mix, text: { salt: 77, tokensPerWord: 1, overhead: 0 } };
    const cold = played(openMix(salted, { process: 'poisson', rate: 4 }, 2), 60);
    played(make(2), 60).forEach(({ at, spec: { prompt, ...rest } }, i) => {
      expect({ at: bare[i]?.at, spec: { ...bare[i]?.spec } }).toMatchObject({ at, spec: rest });
      expect(bare[i]?.spec.prompt).toBeUndefined();
      expect(cold[i]?.spec).toMatchObject(rest);
      expect(cold[i]?.spec.prompt).not.toEqual(prompt);
    });
  });
});

describe('sessions', () => {
  const mix: MixPlan = { classes: [CHAT], prompt: 'text' };
  it('grow: a turn holds all that was asked and answered before, then something new', () => {
    const offers = played(openMix(mix, { process: 'poisson', rate: 2 }, 6), 200);
    const second = offers.filter((o) => o.spec.turn === 1);
    expect(second.length).toBeGreaterThan(20);
    for (const { spec } of second) {
      const before = offers.find((o) => o.spec.session === spec.session && o.spec.turn === 0)!.spec;
      const old = before.prompt as readonly { role: string; content: string }[];
      const now = spec.prompt as readonly { role: string; content: string }[];
      expect(now.slice(0, old.length)).toEqual(old);
      expect(now.map((m) => m.role)).toEqual(['system', 'user', 'assistant', 'user']);
      expect(now[2]!.content.split(' ')).toHaveLength(before.outputTokens);
      expect(spec.operation).toBe(before.operation + 1);
    }
  });

  it('end before the turn that would exceed their context', () => {
    const limited = { ...CHAT, session: { ...CHAT.session!, context: 250 } };
    const offers = played(openMix({ classes: [limited], prompt: 'none' }, { process: 'poisson', rate: 2 }, 6), 300);
    for (const { spec } of offers) {
      if (spec.turn! > 0) expect(spec.inputTokens + spec.outputTokens).toBeLessThanOrEqual(250);
    }
    expect(offers.some((o) => o.spec.turn! > 0)).toBe(true);
  });

  it('offer every later turn as unsent after a failure', () => {
    const offers = played(openMix(mix, { process: 'poisson', rate: 2 }, 6), 200, (o) => o.spec.turn === 0);
    const later = offers.filter((o) => o.spec.turn! > 0);
    expect(later.length).toBeGreaterThan(20);
    expect(later.every((o) => o.unsent === 'predecessor-failed')).toBe(true);
  });
});

describe('plain loads', () => {
  it('draw an operation alike in any order, in open and closed loops', () => {
    const open = openLoop(REQUEST_DEFAULTS, { process: 'poisson', rate: 1 }, 4);
    for (let k = 0; k < 20; k++) expect(open.next()?.spec).toEqual(specOf(REQUEST_DEFAULTS, 4, k));
    const closed = closedMix({ classes: [CLASS], prompt: 'none' }, 3, 4);
    expect([closed.next(), closed.next(), closed.next(), closed.next()].map((o) => o?.at)).toEqual([
      0,
      0,
      0,
      undefined,
    ]);
    expect(closed.ended(1, 250, true)[0]).toMatchObject({ at: 250, spec: { operation: 3 } });
  });

  it('write distinct prompts, corrected by the measured ratio', () => {
    const texts = Array.from({ length: 500 }, (_, k) => promptText(32, 1, k));
    expect(new Set(texts.map((t) => t.split(' ').slice(0, 4).join(' '))).size).toBe(500);
    const source = textSource(1, { salt: 0, tokensPerWord: 1.25, overhead: 0 });
    expect(source.text([{ purpose: 'prompt', key: 1, tokens: 100 }]).split(' ')).toHaveLength(80);
  });
});
