/**
 * Comparisons of simulated systems with known truth. Each run is an engine of its own speed, so that the mean TTFT of runs of
 * one system differs by 3 % (standard deviation; `speed`: the engine's speed by 3 %, which a queue amplifies). A and B run
 * three times each, interleaved, with the same three seeds. Prints how often `goodput compare` calls B better or worse when it
 * is the same system (false), and when its mean TTFT is 10 % higher (found). `seed=N` takes other draws, `sd=P` another spread
 * than the 3 % that is stated and assumed.
 */
import { keyed } from '../../src/base/random.ts';
import { contractOf } from '../../src/core/contract.ts';
import { type Comparison, compareRuns } from '../../src/report/compare.ts';
import { type ComparedRun, CompareReducer } from '../../src/report/compare-run.ts';
import { ContinuousReplica } from '../../src/sim/continuous.ts';
import { limitsOf } from '../../src/sim/limits.ts';
import { recordOf } from '../../src/sim/record-of.ts';
import { simulate } from '../../src/sim/simulate.ts';
import { linearModel } from '../../src/sim/testing.ts';
import { openLoop, REQUEST_DEFAULTS, type RequestPlan } from '../../src/workload/index.ts';

const SPREAD = 0.03;
const SHIFT = 1.1;
const RUNS = 3;
const WARM = 300;

/** An 8B model on one accelerator, nearly: steps of 6 ms and more, 8 ms for a prompt of 256. */
function engine(speed: number, prefill: number): ContinuousReplica {
  const model = linearModel({
    base: 6 * speed,
    perSequence: 0.03 * speed,
    perPrefillToken: 0.03 * speed * prefill,
    perKv: 0.00004 * speed,
  });
  return new ContinuousReplica(model, limitsOf({ kvBlocks: 20_000, maxSeqs: 64, maxBatchedTokens: 2048 }));
}

const PLAN: RequestPlan = {
  ...REQUEST_DEFAULTS,
  prompt: 'none',
  input: { kind: 'lognormal', mean: 256, cv: 0.6 },
  output: { kind: 'lognormal', mean: 48, cv: 0.6 },
};

/** Mean TTFT and completions per second of one engine, over the requests after warm-up. */
function means(rate: number, seed: number, n: number, speed: number, prefill: number): { ttft: number; rate: number } {
  let sum = 0;
  let count = 0;
  let last = 0;
  const workload = limited(openLoop(PLAN, { process: 'poisson', rate }, seed), n);
  simulate(workload, engine(speed, prefill), (d) => {
    last = d.ended;
    if (d.spec.operation < WARM || !d.finished) return;
    sum += d.finished.firstToken - d.scheduled;
    count++;
  });
  return { ttft: sum / count, rate: (1000 * n) / last };
}

function limited(workload: ReturnType<typeof openLoop>, n: number): ReturnType<typeof openLoop> {
  let left = n;
  return { ...workload, next: () => (left-- > 0 ? workload.next() : undefined) };
}

/** How much a slower engine raises the mean TTFT: d ln TTFT / d ln step time, over a long run. */
function amplification(rate: number): number {
  const [slow, fast] = [1.02, 1 / 1.02].map((speed) => means(rate, 90_001, 40_000, speed, 1).ttft) as [number, number];
  return Math.log(slow / fast) / Math.log(1.02 * 1.02);
}

/** How much dearer prefill must be for a mean TTFT 10 % higher at this rate, by bisection over a long run. */
function prefillFor(rate: number): number {
  const before = means(rate, 90_001, 40_000, 1, 1).ttft;
  let [low, high] = [1, 1.5];
  for (let i = 0; i < 14; i++) {
    const middle = (low + high) / 2;
    if (means(rate, 90_001, 40_000, 1, middle).ttft < SHIFT * before) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

function runOf(
  name: string,
  rate: number,
  seed: number,
  n: number,
  speed: number,
  prefill: number,
  limit: number,
): ComparedRun {
  const contract = contractOf({ ttft: limit, tpot: 30 });
  const window = { start: 0, end: (1000 * n) / rate, operations: [WARM, WARM + n] as const };
  const reducer = new CompareReducer(contract, window, { name, seed, spread: SPREAD });
  // Load goes on after the cohort, so that its last requests do not decode in an emptying engine.
  simulate(limited(openLoop(PLAN, { process: 'poisson', rate }, seed), WARM + n + WARM), engine(speed, prefill), (d) =>
    reducer.add(recordOf(d)),
  );
  return reducer.finish();
}

interface Counts {
  attainment: number;
  any: number;
  ttft: number;
  rightWay: number;
}

export function main(given: readonly string[]): void {
  const bySpeed = given.includes('speed');
  const base = Number(given.find((x) => x.startsWith('seed='))?.slice(5) ?? 0);
  const spread = Number(given.find((x) => x.startsWith('sd='))?.slice(3) ?? 100 * SPREAD) / 100;
  const args = given.filter((x) => /^[\d.]+$/.test(x));
  const trials = Number(args[0] ?? 100);
  const n = Number(args[1] ?? 2000);
  const loads = args.length > 2 ? args.slice(2).map(Number) : [0.3, 0.5, 0.7, 0.85];
  const capacity = means(10_000, 90_002, 20_000, 1, 1).rate;
  console.log(
    `${trials} comparisons a line, ${RUNS} pairs of runs of ${n} requests; engine capacity ${capacity.toFixed(1)}/s`,
  );
  console.log(
    `${bySpeed ? 'step times' : 'mean TTFT'} of runs ${bySpeed ? 'differ' : 'differs'} by ${100 * spread} %; seeds ${base} on`,
  );
  console.log('                              no stated spread                stated 3 %');
  console.log(
    'load  B’s TTFT  run TTFT sd  attainment  any    TTFT right   attainment  any    TTFT right    CPU a comparison',
  );
  for (const load of loads) {
    const rate = load * capacity;
    const prefill = prefillFor(rate);
    const sd = bySpeed ? spread : spread / amplification(rate);
    // A limit that about one in ten misses.
    const limit = ttftQuantile(rate, 0.9);
    for (const shifted of [false, true]) {
      const uniform = keyed(7 + base, `compare-bench-${load}-${shifted}`);
      const tallies: [Counts, Counts] = [zero(), zero()];
      const spreads: number[] = [];
      const began = process.cpuUsage();
      for (let trial = 0; trial < trials; trial++) {
        const speed = (): number => Math.exp(sd * gauss(uniform));
        const [a, b]: [ComparedRun[], ComparedRun[]] = [[], []];
        for (let i = 0; i < RUNS; i++) {
          const seed = 1000 * (base + trial) + i;
          a.push(runOf(`a${i}`, rate, seed, n, speed(), 1, limit));
          b.push(runOf(`b${i}`, rate, seed, n, speed(), shifted ? prefill : 1, limit));
        }
        const contract = contractOf({ ttft: limit, tpot: 30 });
        const noise = new Map();
        [undefined, SPREAD].forEach((spread, k) => {
          const c = compareRuns(contract, a, b, { resamples: 20, noise, ...(spread !== undefined && { spread }) });
          tally(tallies[k]!, c);
          if (k === 0) spreads.push(c.figures.find((f) => f.name === 'ttft.mean')!.observed_spread ?? 0);
        });
      }
      const seen = Math.sqrt(spreads.reduce((s, x) => s + x * x, 0) / trials);
      const cell = (x: number): string => `${((100 * x) / trials).toFixed(0)} %`.padEnd(8);
      const row = (c: Counts): string => `${cell(c.attainment)}  ${cell(c.any)} ${cell(c.ttft)} ${cell(c.rightWay)}`;
      const used = process.cpuUsage(began);
      const each = (used.user + used.system) / 1000 / trials;
      console.log(
        `${load}   ${shifted ? '+10 %' : 'same '}     ${(100 * seen).toFixed(1)} %   ${tallies.map(row).join('   ')} ${each.toFixed(0)} ms`,
      );
    }
  }
}

const zero = (): Counts => ({ attainment: 0, any: 0, ttft: 0, rightWay: 0 });

function tally(into: Counts, c: Comparison): void {
  const claimed = c.figures.filter((f) => f.verdict === 'better' || f.verdict === 'worse');
  if (claimed.some((f) => f.name === 'attainment')) into.attainment++;
  if (claimed.length > 0) into.any++;
  if (claimed.some((f) => f.name.startsWith('ttft.'))) into.ttft++;
  if (claimed.some((f) => f.name.startsWith('ttft.') && f.verdict === 'worse')) into.rightWay++;
}

function ttftQuantile(rate: number, p: number): number {
  const ttfts: number[] = [];
  simulate(limited(openLoop(PLAN, { process: 'poisson', rate }, 90_003), 20_000), engine(1, 1), (d) => {
    if (d.finished) ttfts.push(d.finished.firstToken - d.scheduled);
  });
  return ttfts.sort((x, y) => x - y)[Math.floor(p * ttfts.length)]!;
}

/** Box–Muller. */
function gauss(uniform: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
}
