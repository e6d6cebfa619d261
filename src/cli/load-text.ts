/** What a load plan will put on a server, and the plan in words. */
import { formatDuration, type Millis } from '../base/units.ts';
import type { Contract } from '../core/contract.ts';
import {
  type ClassPlan,
  hasSessions,
  lengthText,
  type MixPlan,
  meanLength,
  meanTokens,
  meanTurns,
  pauseText,
  prefixLeaves,
  prefixTokens,
  traceArrivals,
} from '../workload/index.ts';
import { type LoadPlan, mixOf } from './load-plan.ts';

/** What a plan will put on a server. */
export interface LoadEstimate {
  /** Requests in all, warm-up included; a lower bound in a closed loop. */
  readonly requests: number;
  readonly tokens: number;
  /** Operations that can be open at once: each leaves by its deadline. */
  readonly peak: number;
  readonly time: Millis;
}

/** Warm-up is not known beforehand; this is what is counted for it. */
const WARMUP_GUESS: Millis = 5000;

export function estimate(plan: LoadPlan, contract: Contract, maxInFlight?: number): LoadEstimate {
  const { window, arrivals, concurrency, trace } = plan;
  const warmup = window.warmup === 'auto' ? WARMUP_GUESS : window.warmup;
  const rate = trace ? window.rate : arrivals?.rate;
  const length = window.duration ?? (rate === undefined ? 0 : (1000 * (window.requests as number)) / rate);
  const mix = mixOf(plan);
  const each = mix ? meanTokens(mix) : undefined;
  // Of sessions each arrival is several requests.
  const arriving =
    rate === undefined
      ? Math.max(window.requests ?? 0, concurrency as number)
      : Math.ceil((rate * (warmup + length)) / 1000);
  const turns = trace?.sessions ? trace.length / traceArrivals(trace).length : (each?.requests ?? 1);
  const requests = trace ? Math.min(trace.length, Math.ceil(arriving * turns)) : Math.ceil(arriving * turns);
  const tokens = trace
    ? (requests * (sum(trace.input) + sum(trace.output) * plan.requests.choices)) / trace.length
    : each
      ? arriving * (each.input + each.output)
      : requests * (meanLength(plan.requests.input) + meanLength(plan.requests.output) * plan.requests.choices);
  const deadline = Math.max(contract.deadline, ...Object.values(plan.contracts ?? {}).map((c) => c.deadline));
  const open = rate === undefined ? (concurrency as number) : Math.ceil((rate * turns * deadline) / 1000);
  return {
    requests,
    tokens: Math.round(tokens),
    peak: Math.min(requests, open, maxInFlight ?? Number.POSITIVE_INFINITY),
    time: warmup + length,
  };
}

function sum(x: Int32Array): number {
  let total = 0;
  for (const n of x) total += n;
  return total;
}

/** The plan in a sentence or two, before anything is sent. */
export function planText(plan: LoadPlan, contract: Contract, maxInFlight?: number): string {
  const e = estimate(plan, contract, maxInFlight);
  const { arrivals, window, requests, trace } = plan;
  const mix = mixOf(plan);
  const sessions = trace?.sessions !== undefined || (mix !== undefined && hasSessions(mix));
  const load = trace
    ? `${trace.length.toLocaleString('en')} requests of ${trace.name} (${trace.format})${trace.sessions ? ` in ${traceArrivals(trace).length.toLocaleString('en')} sessions` : ''} as they arrived${trace.notes.length > 0 ? `, ${trace.notes.join(', ')}` : ''}`
    : arrivals
      ? `${arrivals.rate} ${sessions ? 'sessions' : 'requests'}/s (${arrivals.process}${arrivals.process === 'gamma' ? ` ${arrivals.burstiness}` : ''}, open loop)`
      : `a closed loop of ${plan.concurrency} slots (it slows down with the server, so it cannot show capacity)`;
  const warmup =
    window.warmup === 'auto'
      ? 'a warm-up of at least one p95 E2E'
      : window.warmup === 0 && trace
        ? 'no warm-up'
        : `a warm-up of ${formatDuration(window.warmup)}`;
  const measured =
    window.requests !== undefined
      ? `${window.requests} ${sessions ? 'sessions' : 'requests'}`
      : formatDuration(window.duration as number);
  const asked = trace
    ? ''
    : mix
      ? `, ${mix.classes.map((c) => classText(c, mix)).join('; ')}`
      : `, input ${lengthText(requests.input)}, output ${lengthText(requests.output)} tokens${requests.choices > 1 ? `, n ${requests.choices}` : ''}`;
  return [
    `${load}${asked};`,
    `${warmup}, then ${measured} measured.`,
    `About ${e.requests.toLocaleString('en')} requests, ${e.tokens.toLocaleString('en')} tokens, at most ${e.peak} in flight, ${formatDuration(e.time)} and the last deadlines.`,
  ].join(' ');
}

function classText(c: ClassPlan, { classes }: MixPlan): string {
  const total = classes.reduce((all, one) => all + one.share, 0);
  const parts = [
    c.dataset
      ? `${c.session ? 'conversations' : 'prompts'} of ${c.dataset.name} (${[`${c.dataset.entries.length.toLocaleString('en')} of ${c.dataset.available.toLocaleString('en')}, then again`, ...c.dataset.notes].join('; ')})`
      : `input ${lengthText(c.input)}`,
    `output ${c.dataset?.entries.some((entry) => entry.outputTokens !== undefined) ? 'of the file' : lengthText(c.output)} tokens`,
    c.prefix &&
      `a prefix of ${prefixTokens(c.prefix)} tokens shared by ${prefixLeaves(c.prefix) === 1 ? 'all' : `${prefixLeaves(c.prefix)} groups`}`,
    c.session &&
      `${c.session.turns && !c.dataset ? lengthText(c.session.turns) : meanTurns(c).toFixed(1)} turns with ${pauseText(c.session.think)} between (earlier answers ${c.dataset ? 'of the file' : 'synthetic'})`,
    c.images && `${c.images.count} images of ${c.images.width}×${c.images.height}`,
    c.tools && `${c.tools.length} tools`,
    c.choices > 1 && `n ${c.choices}`,
  ].filter(Boolean);
  return `${((100 * c.share) / total).toFixed(0)} % ${c.name}: ${parts.join(', ')}`;
}

/** The workload in words for `run.json` and the report. */
export function workloadText(plan: LoadPlan, seed: number): string {
  const { arrivals, trace, classes } = plan;
  const unit = classes?.some((c) => c.session) ? ' sessions' : '';
  const arriving = trace
    ? `replay of ${trace.name}`
    : arrivals
      ? `${arrivals.process} ${arrivals.rate}${unit}/s`
      : `closed loop of ${plan.concurrency}`;
  return [
    arriving,
    plan.name && `workload ${plan.name}`,
    plan.cache && plan.cache !== 'cold' && `cache ${plan.cache}`,
    `seed ${seed}`,
  ]
    .filter(Boolean)
    .join(', ');
}
