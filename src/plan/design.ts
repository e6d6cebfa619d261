/**
 * The designed measurement: lone prompts at several lengths, batches held from 1 to the largest at short and at long
 * contexts, prompts sent into steady decoding. Each varies what ordinary traffic leaves together. Done in rounds, so that
 * any stretch of time held out has its like elsewhere.
 */
import type { Millis } from '../base/units.ts';
import type { Offer, RequestSpec, Workload } from '../core/request.ts';

export interface DesignPlan {
  /** Shortest and longest prompt, tokens. */
  readonly shortPrompt: number;
  readonly longPrompt: number;
  /** Largest batch held. */
  readonly largestBatch: number;
  /** Tokens each held sequence generates. */
  readonly heldTokens: number;
  readonly rounds: number;
  /** While it has not lasted so long, one more round is run, up to `MOST_ROUNDS`: quick engines are the noisiest. */
  readonly fill?: Millis;
  /** No request is offered after this; what is open is finished. */
  readonly until: Millis;
}

export const DESIGN_DEFAULTS: Omit<DesignPlan, 'until'> = {
  shortPrompt: 32,
  longPrompt: 1024,
  largestBatch: 32,
  heldTokens: 48,
  rounds: 3,
};

export const MOST_ROUNDS = 12;

export type Phase =
  | { readonly kind: 'lone'; readonly prompt: number }
  | { readonly kind: 'hold'; readonly batch: number; readonly prompt: number }
  | { readonly kind: 'inject'; readonly batch: number; readonly prompts: readonly number[] }
  | { readonly kind: 'mix'; readonly slots: number; readonly requests: number };

/** Prompt lengths spread evenly in the logarithm, both ends included. */
export function promptLengths(plan: DesignPlan, count = 6): number[] {
  const ratio = plan.longPrompt / plan.shortPrompt;
  return Array.from({ length: count }, (_, i) => Math.round(plan.shortPrompt * ratio ** (i / (count - 1))));
}

/** 1, 2, 4, … and the largest. */
export function batchSizes(largest: number): number[] {
  const sizes: number[] = [];
  for (let b = 1; b < largest; b *= 2) sizes.push(b);
  return [...sizes, largest];
}

/** One round of the design. Long and short alternate, so that a drift of the machine is no effect of length. */
export function phases(plan: DesignPlan): Phase[] {
  const lengths = promptLengths(plan);
  const out: Phase[] = [];
  for (const prompt of lengths) out.push({ kind: 'lone', prompt });
  for (const batch of batchSizes(plan.largestBatch)) {
    out.push({ kind: 'hold', batch, prompt: plan.shortPrompt });
    out.push({ kind: 'hold', batch, prompt: plan.longPrompt });
  }
  const half = Math.max(1, Math.floor(plan.largestBatch / 2));
  for (const batch of new Set([1, half])) out.push({ kind: 'inject', batch, prompts: lengths });
  // As in service, prompts of all lengths among decodes: whether reading and computing add up or overlap shows here most.
  for (const slots of new Set([half, plan.largestBatch])) out.push({ kind: 'mix', slots, requests: 3 * slots });
  for (const prompt of [...lengths].reverse()) out.push({ kind: 'lone', prompt });
  return out;
}

/** Tokens a lone prompt generates: enough that one decode step is seen after its first. */
const LONE_TOKENS = 4;
/** Tokens of a prompt sent into decoding. */
const INJECTED_TOKENS = 2;

/** What a plan puts on the engine: requests and tokens. */
export function designCost(plan: DesignPlan): { readonly requests: number; readonly tokens: number } {
  let requests = 0;
  let tokens = 0;
  for (const phase of phases(plan)) {
    if (phase.kind === 'lone') {
      requests++;
      tokens += phase.prompt + LONE_TOKENS;
    } else if (phase.kind === 'hold') {
      requests += phase.batch;
      tokens += phase.batch * (phase.prompt + plan.heldTokens);
    } else if (phase.kind === 'mix') {
      requests += phase.requests;
      for (let i = 0; i < phase.requests; i++) tokens += mixPrompt(plan, i) + mixTokens(plan, i);
    } else {
      requests += phase.batch + phase.prompts.length;
      tokens += phase.batch * (plan.shortPrompt + injectTokens(plan));
      for (const p of phase.prompts) tokens += p + INJECTED_TOKENS;
    }
  }
  return { requests: requests * plan.rounds, tokens: tokens * plan.rounds };
}

/** Prompts and outputs of a mix: spread evenly over their ranges by the golden ratio, prompts in the logarithm. */
const GOLDEN = 0.6180339887498949;
function mixPrompt(plan: DesignPlan, i: number): number {
  return Math.round(plan.shortPrompt * (plan.longPrompt / plan.shortPrompt) ** ((i * GOLDEN) % 1));
}
function mixTokens(plan: DesignPlan, i: number): number {
  return Math.max(2, Math.round(plan.heldTokens * (0.25 + ((i * GOLDEN * GOLDEN) % 1))));
}

const injectTokens = (plan: DesignPlan): number => 3 * plan.heldTokens;

/** Writes a prompt of so many tokens, another for each operation. */
export type PromptFor = (operation: number, tokens: number) => RequestSpec['prompt'];

/** Runs phase after phase, each when the one before has ended entirely. */
export class DesignWorkload implements Workload {
  readonly #plan: DesignPlan;
  readonly #prompt: PromptFor;
  readonly #todo: Phase[] = [];
  readonly #open = new Set<number>();
  #total: number;
  #rounds: number;
  #operation = 0;
  #started: Millis = 0;
  #current: Phase | undefined;
  #first: Offer[] | undefined;
  /** Time a token took in held batches, by their size, and a lone prompt's: where to put the prompts among decodes. */
  readonly #tokenMs = new Map<number, Millis>();
  #loneMs = 20;
  /** Requests of the mix that were offered. */
  #mixed = 0;

  constructor(plan: DesignPlan, prompt: PromptFor) {
    this.#plan = plan;
    this.#prompt = prompt;
    for (let r = 0; r < plan.rounds; r++) this.#todo.push(...phases(plan));
    this.#rounds = plan.rounds;
    this.#total = this.#todo.length;
    this.#first = this.#begin(0);
  }

  /** Phases, as far as is known by now. */
  get total(): number {
    return this.#total;
  }

  get rounds(): number {
    return this.#rounds;
  }

  /** Phases not begun. */
  get left(): number {
    return this.#todo.length;
  }

  get phase(): Phase | undefined {
    return this.#current;
  }

  next(): Offer | undefined {
    const offer = this.#first?.shift();
    if (!offer) this.#first = undefined;
    return offer;
  }

  ended(operation: number, t: Millis, ok: boolean): readonly Offer[] {
    this.#open.delete(operation);
    const phase = this.#current;
    if (phase?.kind === 'mix' && this.#mixed < phase.requests) return [this.#mix(t)];
    if (this.#open.size > 0) return [];
    if (ok) this.#learn(t - this.#started);
    return this.#begin(t + 5);
  }

  #learn(ms: Millis): void {
    const phase = this.#current;
    if (phase?.kind === 'lone') this.#loneMs = Math.max(this.#loneMs * 0.7, ms);
    if (phase?.kind === 'hold' && phase.prompt === this.#plan.shortPrompt)
      this.#tokenMs.set(phase.batch, ms / this.#plan.heldTokens);
  }

  #begin(at: Millis): Offer[] {
    if (this.#todo.length === 0 && at < (this.#plan.fill ?? 0) && this.#rounds < MOST_ROUNDS) {
      this.#todo.push(...phases(this.#plan));
      this.#rounds++;
      this.#total += this.#todo.length;
    }
    const phase = at < this.#plan.until ? this.#todo.shift() : undefined;
    this.#current = phase;
    this.#started = at;
    if (!phase) {
      this.#todo.length = 0;
      return [];
    }
    const { shortPrompt, heldTokens } = this.#plan;
    if (phase.kind === 'lone') return [this.#offer(at, phase.prompt, LONE_TOKENS)];
    if (phase.kind === 'hold') {
      return Array.from({ length: phase.batch }, () => this.#offer(at, phase.prompt, heldTokens));
    }
    if (phase.kind === 'mix') {
      this.#mixed = 0;
      return Array.from({ length: phase.slots }, () => this.#mix(at));
    }
    const tokens = injectTokens(this.#plan);
    const offers = Array.from({ length: phase.batch }, () => this.#offer(at, shortPrompt, tokens));
    // Spread over the middle of the decodes, with quiet between them.
    const whole = tokens * this.#tokenMsOf(phase.batch);
    const gap = Math.max(0.7 * (whole / phase.prompts.length), Math.min(1.3 * this.#loneMs, whole / 2));
    phase.prompts.forEach((prompt, i) => {
      offers.push(this.#offer(at + 0.15 * whole + i * gap, prompt, INJECTED_TOKENS));
    });
    return offers;
  }

  /** Of the held batch nearest in size, from below where there is one. */
  #tokenMsOf(batch: number): Millis {
    let best = 10;
    for (const [size, ms] of [...this.#tokenMs].sort((a, b) => b[0] - a[0])) {
      best = ms;
      if (size <= batch) break;
    }
    return best;
  }

  #mix(at: Millis): Offer {
    const i = this.#mixed++;
    return this.#offer(at, mixPrompt(this.#plan, i), mixTokens(this.#plan, i));
  }

  #offer(at: Millis, input: number, output: number): Offer {
    const operation = this.#operation++;
    this.#open.add(operation);
    return {
      at,
      spec: {
        operation,
        attempt: 0,
        class: 'default',
        inputTokens: input,
        outputTokens: output,
        choices: 1,
        stream: true,
        ignoreEos: true,
        ...promptOf(this.#prompt(operation, input)),
      },
    };
  }
}

function promptOf(prompt: RequestSpec['prompt']): { prompt?: NonNullable<RequestSpec['prompt']> } {
  return prompt === undefined ? {} : { prompt };
}
