/**
 * What vLLM (V1 engine) would count and observe. As there: TTFT is observed at the first token and inter-token latency
 * once a step of a request, everything else when a request finishes, and a request its client gave up leaves no sample.
 * Seconds throughout, on the emulator's own wall clock.
 */
import type { Seconds } from '../base/index.ts';

export class Histogram {
  readonly bounds: readonly number[];
  /** One a bound and one for what lies above; not cumulative. */
  readonly counts: Float64Array;
  sum = 0;
  count = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  /** @param times how often `x` was seen. */
  observe(x: number, times = 1): void {
    let i = 0;
    while (i < this.bounds.length && x > this.bounds[i]!) i++;
    this.counts[i]! += times;
    this.sum += x * times;
    this.count += times;
  }
}

/** Layouts of vLLM V1's histograms, seconds or tokens. */
export const BUCKETS = {
  firstToken: [
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
  ],
  interToken: [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80],
  request: [0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680],
  iteration: [1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384],
  choices: [1, 2, 5, 10, 20],
} as const;

/** 1, 2, 5, 10, … up to `max`, as vLLM lays out token counts. */
export function oneTwoFive(max: number): number[] {
  const bounds: number[] = [];
  for (let decade = 1; ; decade *= 10) {
    for (const m of [1, 2, 5]) {
      if (m * decade > max) return bounds;
      bounds.push(m * decade);
    }
  }
}

/** Finish reasons vLLM counts; all are there from the start, at 0. */
export const FINISHED_REASONS = ['stop', 'length', 'abort', 'error', 'repetition'] as const;
export type FinishedReason = (typeof FINISHED_REASONS)[number];

/** What the engine says of itself at a scrape. */
export interface EngineLoad {
  readonly running: number;
  readonly waiting: number;
  /** Share of the KV pool in use. */
  readonly kvUsage: number;
  /** Counters since the start. */
  readonly preemptions: number;
  /** Tokens looked up in the prefix cache, and found. */
  readonly prefixQueries: number;
  readonly prefixHits: number;
}

/** One choice of one request, done. */
export interface FinishedChoice {
  readonly reason: FinishedReason;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly generated: number;
  readonly maxTokens: number | undefined;
  readonly choices: number;
  /** From the request's arrival to its last token. */
  readonly e2e: Seconds;
  readonly queue: Seconds;
  readonly prefill: Seconds;
  readonly decode: Seconds;
}

export class VllmMetrics {
  promptTokens = 0;
  cachedPromptTokens = 0;
  generatedTokens = 0;
  readonly success: Record<FinishedReason, number> = { stop: 0, length: 0, abort: 0, error: 0, repetition: 0 };
  readonly faults = new Map<string, number>();
  readonly firstToken = new Histogram(BUCKETS.firstToken);
  readonly interToken = new Histogram(BUCKETS.interToken);
  readonly perOutputToken = new Histogram(BUCKETS.interToken);
  readonly e2e = new Histogram(BUCKETS.request);
  readonly queue = new Histogram(BUCKETS.request);
  readonly inference = new Histogram(BUCKETS.request);
  readonly prefill = new Histogram(BUCKETS.request);
  readonly decode = new Histogram(BUCKETS.request);
  readonly iterationTokens = new Histogram(BUCKETS.iteration);
  readonly paramsN = new Histogram(BUCKETS.choices);
  readonly requestPrompt: Histogram;
  readonly requestGeneration: Histogram;
  readonly requestMaxGeneration: Histogram;
  readonly paramsMaxTokens: Histogram;
  readonly prefillComputed: Histogram;
  #step = Number.NaN;
  #stepTokens = 0;

  constructor(maxModelLen: number) {
    const tokens = oneTwoFive(maxModelLen);
    this.requestPrompt = new Histogram(tokens);
    this.requestGeneration = new Histogram(tokens);
    this.requestMaxGeneration = new Histogram(tokens);
    this.paramsMaxTokens = new Histogram(tokens);
    this.prefillComputed = new Histogram(tokens);
  }

  fault(name: string): void {
    this.faults.set(name, (this.faults.get(name) ?? 0) + 1);
  }

  /** Tokens processed in the engine step at `step` (any number that is one step's alone). A step is counted at the next. */
  iteration(step: number, tokens: number): void {
    if (step !== this.#step) {
      if (this.#stepTokens > 0) this.iterationTokens.observe(this.#stepTokens);
      this.#step = step;
      this.#stepTokens = 0;
    }
    this.#stepTokens += tokens;
  }

  finished(r: FinishedChoice): void {
    this.success[r.reason]++;
    this.e2e.observe(r.e2e);
    this.queue.observe(r.queue);
    this.prefill.observe(r.prefill);
    this.decode.observe(r.decode);
    this.inference.observe(r.prefill + r.decode);
    // As there: 0 where there is no second token.
    this.perOutputToken.observe(r.generated > 1 ? r.decode / (r.generated - 1) : 0);
    this.requestPrompt.observe(r.promptTokens);
    this.requestGeneration.observe(r.generated);
    this.requestMaxGeneration.observe(r.generated);
    this.prefillComputed.observe(r.promptTokens - r.cachedTokens);
    this.paramsN.observe(r.choices);
    if (r.maxTokens !== undefined) this.paramsMaxTokens.observe(r.maxTokens);
  }
}
