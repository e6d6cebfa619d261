import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { keyed } from '../base/random.ts';
import { contractOf, type RequestRecord, timelineOf } from '../core/index.ts';
import { quantile } from '../stats/index.ts';
import { type Comparison, compareRuns } from './compare.ts';
import type { Figure } from './compare-figure.ts';
import { comparisonMarkdown, renderComparison } from './compare-render.ts';
import { type ComparedRun, CompareReducer } from './compare-run.ts';
import { counted, effectOf, meanAndQuantiles, noiseOf, weightedHolm } from './compare-stats.ts';
import { checkThresholds, parseThresholds } from './compare-thresholds.ts';
import { unlikeRuns } from './compare-unlike.ts';

const contract = contractOf({ ttft: 130, tpot: 50 });
const N = 400;

function record(operation: number, scheduled: number, ttft: number, tokens = 5, gap = 10): RequestRecord {
  const at = Array.from({ length: tokens }, (_, i) => Math.round(1000 * (scheduled + ttft + i * gap)) / 1000);
  const failed = tokens === 0;
  return {
    operation,
    attempt: 0,
    attempts: 1,
    lostHedge: false,
    class: 'default',
    asked: { input: 10, output: 5, choices: 1, stream: true },
    stamps: {
      scheduled,
      dispatched: scheduled,
      ...(!failed && { firstEvent: at[0]!, firstOutput: at[0]!, firstAnswer: at[0]!, lastOutput: at.at(-1)! }),
      ended: failed ? scheduled + 5 : at.at(-1)!,
    },
    timeline: timelineOf(
      at,
      at.map(() => 1),
    ),
    streamed: true,
    unseenEndTokens: 0,
    outcome: failed ? 'failed' : 'completed',
    reason: failed ? 'http-500' : '',
    detail: '',
    phase: failed ? 'waiting' : 'done',
    ...(!failed && { finish: 'stop' as const }),
    impliedEnd: false,
    events: tokens,
    coalesced: 0,
    unclassified: 0,
  };
}

/** TTFTs of one seed around 100 ms, times `factor`. */
function run(
  seed: number,
  factor: number,
  more: { failing?: number; spread?: number; closed?: boolean } = {},
): ComparedRun {
  const u = keyed(seed, 'test');
  const window = { start: 0, end: N * 10 };
  const reducer = new CompareReducer(contract, window, {
    name: `run ${seed}`,
    seed,
    closedLoop: more.closed ?? false,
    ...(more.spread !== undefined && { spread: more.spread }),
  });
  for (let i = 0; i < N; i++) {
    const ttft = Math.round(1000 * factor * (60 + 80 * u())) / 1000;
    reducer.add(record(i, i * 10, ttft, i < (more.failing ?? 0) ? 0 : 5));
  }
  return reducer.finish();
}

const figure = (c: Comparison, name: string): Figure => c.figures.find((f) => f.name === name)!;

describe('effectOf', () => {
  it('pairs runs by seed: what a pair shares cancels (worked by hand: d = 0.1, 0.2, 0.3)', () => {
    const e = effectOf({ a: [1, 5, 9], b: [1.1, 5.2, 9.3], paired: true, scale: 'absolute', noise: [0, 0, 0] });
    expect(e.value).toBeCloseTo(0.2, 12);
    // s = 0.1, t(2, 0.975) = 4.3027
    expect(e.high - e.value).toBeCloseTo((4.302653 * 0.1) / Math.sqrt(3), 5);
    expect(e.grounds).toBe('runs');
  });

  it('takes a stated spread for one run a side, and says only "these runs" without', () => {
    const one = { a: [100], b: [110], paired: true, scale: 'relative', noise: [0.001] } as const;
    expect(effectOf(one).grounds).toBe('single');
    const stated = effectOf({ ...one, spread: 0.03 });
    expect(stated.grounds).toBe('spread');
    const se = Math.sqrt(2 * 0.03 ** 2 + 0.001 ** 2);
    expect(stated.high - stated.value).toBeCloseTo(1.959964 * se, 6);
  });

  it('goes by the runs where they differ far more than was stated', () => {
    const e = effectOf({
      a: [100, 100, 100],
      b: [100, 160, 220],
      paired: true,
      scale: 'relative',
      noise: [0, 0, 0],
      spread: 0.01,
    });
    expect(e).toMatchObject({ grounds: 'runs', spreadExceeded: true });
  });

  it('concludes nothing from runs that agree to the last digit', () => {
    expect(effectOf({ a: [1, 1, 1], b: [2, 2, 2], paired: true, scale: 'absolute', noise: [0, 0, 0] }).grounds).toBe(
      'single',
    );
  });
});

describe('effectOf without a stated spread', () => {
  const of = (b: number[], more: { spread?: number; assumedRuns?: number } = {}) =>
    effectOf({ a: [100, 100, 100], b, paired: true, scale: 'relative', noise: [0.01, 0.01, 0.01], ...more });
  const usual = { spread: 0.03, assumedRuns: 17 };

  it('moderates what three pairs show by what is usual: a plain shift is seen', () => {
    const shifted = [107, 110, 115];
    const alone = of(shifted);
    const moderated = of(shifted, usual);
    const stated = of(shifted, { spread: 0.03 });
    expect(moderated.grounds).toBe('runs');
    expect(moderated.method).toBe('moderated paired t over runs');
    expect(moderated.value).toBe(alone.value);
    expect(moderated.p).toBeLessThan(alone.p / 10);
    expect(moderated.p).toBeGreaterThan(stated.p);
  });

  it('takes no luck of three equal pairs for certainty', () => {
    const lucky = [103, 103.1, 102.9];
    expect(of(lucky).p).toBeLessThan(0.05);
    expect(of(lucky, usual).p).toBeGreaterThan(0.05);
  });

  it('believes runs that plainly differ more', () => {
    const wild = [85, 130, 110];
    expect(of(wild, usual)).toMatchObject({ method: 'paired t over runs', spreadExceeded: true, p: of(wild).p });
  });
});

describe('weightedHolm', () => {
  it('is Holm with equal weights', () => {
    const adjusted = weightedHolm([0.01, 0.04, 0.03].map((p) => ({ p, weight: 1 })));
    [0.03, 0.06, 0.06].forEach((p, i) => void expect(adjusted[i]).toBeCloseTo(p, 12));
  });
  it('gives a figure of more weight more of the error', () => {
    const [heavy, light] = weightedHolm([
      { p: 0.03, weight: 3 },
      { p: 0.03, weight: 1 },
    ]);
    expect(heavy).toBeCloseTo(0.04, 12);
    expect(light).toBeCloseTo(0.04, 12);
  });
});

describe('meanAndQuantiles', () => {
  it('is the mean of finite values and type-7 quantiles, whatever the ties and infinities', () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.integer({ min: 0, max: 9 }), fc.constant(Number.POSITIVE_INFINITY)), {
          minLength: 1,
          maxLength: 40,
        }),
        (values) => {
          const sorted = Float64Array.from(values).sort();
          const ps = [0, 0.5, 0.5, 0.9, 0.99, 1];
          const [mean, ...found] = meanAndQuantiles(ps)(counted(Float64Array.from(values)));
          const finite = values.filter(Number.isFinite);
          expect(found).toEqual(ps.map((p) => quantile(sorted, p)));
          if (finite.length > 0) expect(mean).toBeCloseTo(finite.reduce((a, b) => a + b, 0) / finite.length, 12);
          // The same sample as counts of its different values.
          const kinds = [...new Set(sorted)];
          const counts = Uint32Array.from(kinds, (x) => values.filter((v) => v === x).length);
          const folded = meanAndQuantiles(ps)({ sorted: Float64Array.from(kinds), counts, n: values.length });
          expect(folded.slice(1)).toEqual(found);
        },
      ),
    );
  });
});

describe('noiseOf', () => {
  it('is the standard error of a mean of independent values', () => {
    const u = keyed(3, 'noise');
    const x = Float64Array.from({ length: 2000 }, () => u());
    const [se] = noiseOf([x], meanAndQuantiles([]), {
      seed: 1,
      scale: 'absolute',
      resamples: 400,
    });
    expect(se).toBeGreaterThan(0.8 * Math.sqrt(1 / 12 / 2000));
    expect(se).toBeLessThan(1.2 * Math.sqrt(1 / 12 / 2000));
  });
});

describe('compareRuns', () => {
  it('of single runs says only that they differ', () => {
    const c = compareRuns(contract, [run(1, 1)], [run(1, 1.05)]);
    expect(c.paired).toBe(true);
    expect(figure(c, 'ttft.mean').relative).toBeCloseTo(0.05, 6);
    expect(figure(c, 'ttft.mean').verdict).toBe('differs between these runs');
    expect(c.verdict).toBe('differs between these runs');
    expect(c.notes.join()).toMatch(/--repeat 3/);
  });

  it('of three runs a side calls a clear shift worse, attainment first', () => {
    const c = compareRuns(
      contract,
      [1, 2, 3].map((s) => run(s, 1 + s / 1000)),
      [1, 2, 3].map((s) => run(s, 1.3 - s / 1000)),
    );
    expect(c.figures[0]!.name).toBe('attainment');
    expect(figure(c, 'attainment').verdict).toBe('worse');
    expect(figure(c, 'ttft.mean')).toMatchObject({ verdict: 'worse', grounds: 'runs' });
    expect(c.verdict).toBe('worse');
  });

  it('of equal systems shows nothing, and does not call that a proof', () => {
    const c = compareRuns(
      contract,
      [1, 2, 3].map((s) => run(s, 1 + (s - 2) / 100)),
      [1, 2, 3].map((s) => run(s, 1 + (2 - s) / 100)),
    );
    expect(c.verdict).toBe('not shown');
    expect(c.summary).toMatch(/not a proof/);
  });

  it('ranks what failed as +∞: survivors do not flatter', () => {
    const c = compareRuns(contract, [run(1, 1)], [run(1, 0.9, { failing: 30 })]);
    expect(figure(c, 'ttft.p95')).toMatchObject({
      b: null,
      verdict: 'undefined',
      why: expect.stringContaining('infinite'),
    });
    expect(figure(c, 'ttft.mean')).toMatchObject({
      population: 'measured',
      why: expect.stringContaining('30 operations'),
    });
    expect(figure(c, 'attainment').b).toBeLessThan(1);
  });

  it('does not call a throughput gain that costs attainment a win', () => {
    const faster = (r: ComparedRun, by: number): ComparedRun => ({ ...r, throughput: r.throughput! * by });
    const c = compareRuns(
      contract,
      [1, 2, 3].map((s) => run(s, 1 + s / 1000)),
      [1, 2, 3].map((s) => faster(run(s, 1.3 - s / 1000), 1.2 + s / 1000)),
    );
    expect(figure(c, 'throughput').verdict).toBe('costs attainment');
    expect(c.summary).toMatch(/no win/);
    expect(c.verdict).toBe('worse');
  });

  it('tests TTFA not again where it is TTFT', () => {
    expect(figure(compareRuns(contract, [run(1, 1)], [run(1, 1.1)]), 'ttfa.p50').same_as).toBe('ttft.p50');
  });

  it('pairs only what can be paired', () => {
    expect(compareRuns(contract, [run(1, 1)], [run(2, 1)]).paired).toBe(false);
    expect(compareRuns(contract, [run(1, 1, { closed: true })], [run(1, 1, { closed: true })]).paired).toBe(false);
  });

  it('judges limits moved by the stated spread for the spread of attainment', () => {
    const c = compareRuns(contract, [run(1, 1, { spread: 0.03 })], [run(1, 1.5, { spread: 0.03 })], { spread: 0.03 });
    expect(figure(c, 'attainment')).toMatchObject({ verdict: 'worse', grounds: 'spread' });
  });

  it('gives no verdict where a run proves nothing', () => {
    const c = compareRuns(
      contract,
      [1, 2, 3].map((s) => run(s, 1)),
      [1, 2, 3].map((s) => run(s, 1.5 + s / 1000)),
      { void: ['x is client-bound'] },
    );
    expect(c.verdict).toBe('void');
    expect(c.figures.some((f) => f.verdict === 'worse')).toBe(false);
  });

  it('is the same every time, and mirrors when the sides change places', () => {
    const [a, b] = [[run(1, 1)], [run(1, 1.1)]];
    expect(compareRuns(contract, a, b)).toEqual(compareRuns(contract, a, b));
    expect(figure(compareRuns(contract, b, a), 'attainment').difference).toBeCloseTo(
      -figure(compareRuns(contract, a, b), 'attainment').difference!,
      12,
    );
  });
});

describe('thresholds', () => {
  const c = compareRuns(contract, [run(1, 1)], [run(1, 1.1)]);
  const missed = (text: string, onlyShown = false): boolean =>
    checkThresholds(c, parseThresholds(text), onlyShown)[0]!.missed;

  it.each([
    ['ttft.p99>+5%', true],
    ['ttft.p99>+15%', false],
    ['ttft.mean>+5ms', true],
    ['ttft.p50>1s', false],
    ['ttft>90', true],
    ['attainment<100%', true],
    ['attainment<-1%', true],
    ['attainment<-50%', false],
    ['goodput<-1%', true],
    ['throughput<1', false],
    ['ttfa.p50>+5%', true],
  ])('%s → missed: %s', (text, expected) => {
    expect(missed(text)).toBe(expected);
  });

  it('can ask that a change is shown', () => {
    const other = compareRuns(contract, [run(1, 1)], [run(2, 1.1)]); // another seed: an interval some per cent wide
    const found = figure(other, 'ttft.mean').relative!;
    const at = parseThresholds(`ttft.mean>+${(100 * found - 0.1).toFixed(3)}%`);
    expect(checkThresholds(other, at)[0]!.missed).toBe(true);
    expect(checkThresholds(other, at, true)[0]!.missed).toBe(false);
  });

  it.each([
    ['tftt.p99>+5%', /ttft\.p99/],
    ['ttft.p98>1', /ttft\.p99|ttft\.p90|ttft\.p95/],
    ['ttft.p99', /not a threshold/],
    ['ttft.p99>5%', /\+5%/],
    ['goodput>3ms', /a time/],
    ['', /not a threshold/],
  ])('refuses %j', (text, about) => {
    expect(() => parseThresholds(text)).toThrow(about);
  });
});

describe('unlikeRuns', () => {
  const base = {
    name: 'a',
    contract,
    workload: { rate: 8, requests: { input: { kind: 'fixed', tokens: 512 } } },
    target: { kind: 'live', model: 'm' },
  };
  const refusals = (other: object): string[] =>
    unlikeRuns(base, { ...base, name: 'b', ...other } as never)
      .filter((u) => u.refused)
      .map((u) => u.text);

  it('finds nothing between equals', () => {
    expect(unlikeRuns(base, { ...base, name: 'b' })).toEqual([]);
  });
  it.each([
    [{ contract: contractOf({ ttft: 200, tpot: 50 }) }, /limit ttft is 130 in a and 200 in b/],
    [{ contract: { ...contract, boundary: 'dispatched' } }, /boundary/],
    [{ workload: { ...base.workload, rate: 9 } }, /workload: rate is 8 in a and 9 in b/],
    [{ workload: { ...base.workload, requests: { input: { kind: 'fixed', tokens: 99 } } } }, /input\.tokens is 512/],
    [{ target: { kind: 'embedded', model: 'm' } }, /target: kind/],
  ])('names %j', (other, about) => {
    expect(refusals(other).join('\n')).toMatch(about);
  });
  it('only notes another model', () => {
    expect(refusals({ target: { kind: 'live', model: 'n' } })).toEqual([]);
  });
});

describe('rendering', () => {
  const c = compareRuns(contract, [run(1, 1)], [run(1, 1.1)], { notes: ['a|b\u001b[31m'] });
  it('is text without escapes, the summary first', () => {
    const text = renderComparison(c, { color: false, columns: 100 });
    expect(text.split('\n')[0]).toMatch(/^These runs differ/);
    expect(text).not.toContain('\u001b');
    expect(text).toContain('ttft.p99');
  });
  it('is Markdown that no name breaks', () => {
    const md = comparisonMarkdown(c, checkThresholds(c, parseThresholds('ttft.p99>+5%')));
    expect(md).toContain('a\\|b');
    expect(md).toContain('**missed**: `ttft.p99>+5%`');
    for (const line of md.split('\n').filter((l) => l.startsWith('|'))) {
      expect(line.replace(/\\\|/g, '').split('|')).toHaveLength(8);
    }
  });
});
