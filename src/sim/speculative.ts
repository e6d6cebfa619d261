/**
 * Continuous batching with speculative decoding: each step verifies k drafted tokens a sequence and keeps those up to the
 * first refused, and one more (Leviathan, Kalman, Matias 2023, arXiv 2211.17192). Steps are taken one by one, for how
 * many tokens each yields is drawn.
 */

import { InputError } from '../base/errors.ts';
import { keyed, type Uniform } from '../base/random.ts';
import type { Millis } from '../base/units.ts';
import type { RequestSpec } from '../core/request.ts';
import { type DecodePiece, emptyBatch, type StepModel } from '../model/step.ts';
import { type Cluster, type Finished, type Gauges, NO_GAUGES, QUEUE_FULL, TOO_LONG } from './cluster.ts';
import { lengthOf, type ReplicaLimits } from './limits.ts';
import { finishedOf, type Stamped } from './stamped.ts';

export interface Speculation {
  /** Tokens drafted a step. */
  readonly draftTokens: number;
  /** Chance that a drafted token is kept, given that those before it were. */
  readonly acceptance: number;
  /** The model that drafts, one token at a time; absent: drafting is free (n-gram lookup). */
  readonly draft?: StepModel;
  readonly seed: number;
}

/** Tokens a step yields on average: (1 − a^(k+1)) / (1 − a). */
export function expectedTokens(s: Pick<Speculation, 'draftTokens' | 'acceptance'>): number {
  return s.acceptance === 1 ? s.draftTokens + 1 : (1 - s.acceptance ** (s.draftTokens + 1)) / (1 - s.acceptance);
}

interface Item extends Stamped {
  readonly wanted: number;
  readonly accept: Uniform;
  scheduled: Millis;
  target: number;
  /** Tokens in KV. */
  computed: number;
  blocks: number;
  chunk: number;
  preemptions: number;
  over: boolean;
}

export class SpeculativeReplica implements Cluster {
  readonly #model: StepModel;
  readonly #limits: ReplicaLimits;
  readonly #s: Speculation;
  readonly #batch = emptyBatch();
  readonly #piece: DecodePiece = { ms: 0, slope: 0, untilKv: 0 };
  readonly #items = new Map<number, Item>();
  #waiting: Item[] = [];
  #running: Item[] = [];
  #used = 0;
  #now: Millis = 0;
  #stepEnd: Millis = Number.POSITIVE_INFINITY;
  #nextHandle = 1;
  #preemptions = 0;
  #promptTokens = 0;
  #generationTokens = 0;
  #steps = 0;

  /** @throws InputError for an acceptance outside [0, 1], or a draft that is not a whole number of tokens. */
  constructor(model: StepModel, limits: ReplicaLimits, speculation: Speculation) {
    const { draftTokens, acceptance } = speculation;
    if (!(acceptance >= 0 && acceptance <= 1))
      throw new InputError(`acceptance ${acceptance} is not a share between 0 and 1`);
    if (!Number.isInteger(draftTokens) || draftTokens < 0)
      throw new InputError(`draft of ${draftTokens} tokens must be a whole number of 0 or more`);
    if (limits.maxBatchedTokens < limits.maxSeqs * (draftTokens + 1)) {
      throw new InputError(
        `the token budget ${limits.maxBatchedTokens} is below ${limits.maxSeqs} sequences × ${draftTokens + 1} tokens to verify; raise the budget or lower the batch`,
      );
    }
    this.#model = model;
    this.#limits = limits;
    this.#s = speculation;
  }

  fits(spec: RequestSpec): boolean {
    const length = lengthOf(spec);
    return length <= this.#limits.maxLength && this.#blocksFor(length + this.#s.draftTokens) <= this.#limits.kvBlocks;
  }

  offer(spec: RequestSpec, t: Millis): number {
    this.#now = t;
    if (!this.fits(spec)) return TOO_LONG;
    if (this.#waiting.length >= this.#limits.maxQueue) return QUEUE_FULL;
    const item: Item = {
      handle: this.#nextHandle++,
      spec,
      arrived: t,
      wanted: Math.max(1, spec.outputTokens),
      accept: keyed(this.#s.seed, 'accept', spec.operation),
      times: [],
      scheduled: Number.NaN,
      target: Math.max(1, spec.inputTokens),
      computed: 0,
      blocks: 0,
      chunk: 0,
      preemptions: 0,
      over: false,
    };
    this.#items.set(item.handle, item);
    this.#waiting.push(item);
    return item.handle;
  }

  cancel(handle: number, t: Millis): Finished | undefined {
    this.#now = t;
    const item = this.#items.get(handle);
    if (!item) return undefined;
    this.#items.delete(handle);
    item.over = true;
    const i = this.#waiting.indexOf(item);
    if (i >= 0) this.#waiting.splice(i, 1);
    else if (this.#stepEnd === Number.POSITIVE_INFINITY) this.#leave(item);
    return finishedOf(item, true, t);
  }

  nextAt(): Millis {
    if (this.#stepEnd === Number.POSITIVE_INFINITY) this.#plan();
    return this.#stepEnd;
  }

  nextStepAt(): Millis {
    return this.nextAt();
  }

  advance(to: Millis, out: Finished[]): void {
    for (;;) {
      if (this.#stepEnd === Number.POSITIVE_INFINITY && (this.#now >= to || !this.#plan())) break;
      if (this.#stepEnd > to) break;
      this.#complete(out);
    }
    if (to > this.#now) this.#now = to;
  }

  forEachDecoding(visit: (handle: number, generated: number) => void): void {
    for (const item of this.#running) if (!item.over && item.times.length > 0) visit(item.handle, item.times.length);
  }

  gauges(): Gauges {
    return {
      ...NO_GAUGES,
      running: this.#running.filter((i) => !i.over).length,
      waiting: this.#waiting.length,
      kvUsed: this.#used,
      kvBlocks: this.#limits.kvBlocks,
      kvUsage: this.#used / this.#limits.kvBlocks,
      preemptions: this.#preemptions,
      promptTokens: this.#promptTokens,
      generationTokens: this.#generationTokens,
      steps: this.#steps,
    };
  }

  #plan(): boolean {
    const width = this.#s.draftTokens + 1;
    let budget = this.#limits.maxBatchedTokens;
    let preempted = false;
    // Running first, in order of admission: decodes with room for all that a step may keep, then what prompts are left.
    for (let i = 0; i < this.#running.length; i++) {
      const item = this.#running[i] as Item;
      const decoding = item.computed >= item.target;
      item.chunk = decoding ? 0 : Math.min(item.target - item.computed, budget);
      const need = this.#blocksFor(item.computed + (decoding ? width : item.chunk)) - item.blocks;
      while (need > this.#limits.kvBlocks - this.#used) {
        preempted = true;
        const victim = this.#running.pop() as Item;
        if (victim.chunk > 0) budget += victim.chunk;
        this.#preempt(victim);
        if (victim === item) break;
      }
      if (this.#running[i] !== item) break;
      this.#take(item, need);
      budget -= decoding ? width : item.chunk;
    }
    while (!preempted && this.#waiting.length > 0 && budget > 0 && this.#running.length < this.#limits.maxSeqs) {
      const item = this.#waiting[0] as Item;
      const chunk = Math.min(item.target, budget);
      const need = this.#blocksFor(chunk);
      const room = this.#limits.reservePrompt ? this.#blocksFor(item.target) : need;
      if (room > this.#limits.kvBlocks - this.#used) break;
      this.#waiting.shift();
      this.#running.push(item);
      this.#take(item, need);
      item.chunk = chunk;
      if (Number.isNaN(item.scheduled)) item.scheduled = this.#now;
      budget -= chunk;
    }
    if (this.#running.length === 0) return false;
    this.#stepEnd = this.#now + this.#stepMs(width);
    return true;
  }

  #stepMs(width: number): Millis {
    const b = Object.assign(this.#batch, emptyBatch());
    for (const item of this.#running) {
      if (item.computed >= item.target) {
        b.decodeSequences++;
        b.decodeTokens += width;
        b.decodeKv += item.computed + 1;
      } else if (item.chunk > 0) {
        const to = item.computed + item.chunk;
        b.prefillSequences++;
        b.prefillTokens += item.chunk;
        b.prefillKv += to;
        b.prefillSquares += to * to - item.computed * item.computed;
        if (to === item.target) b.prefillCompletes++;
      }
    }
    let ms = this.#model.stepMs(b);
    if (this.#s.draft && b.decodeSequences > 0) {
      this.#s.draft.decode(b.decodeSequences, b.decodeKv, this.#piece);
      ms += this.#s.draftTokens * this.#piece.ms;
    }
    return ms;
  }

  #complete(out: Finished[]): void {
    this.#now = this.#stepEnd;
    this.#stepEnd = Number.POSITIVE_INFINITY;
    this.#steps++;
    for (const item of [...this.#running]) {
      if (item.over) {
        this.#leave(item);
        continue;
      }
      let tokens = 0;
      if (item.computed >= item.target) {
        tokens = 1;
        while (tokens <= this.#s.draftTokens && item.accept() < this.#s.acceptance) tokens++;
        tokens = Math.min(tokens, item.wanted - item.times.length);
        item.computed += tokens;
        item.target = item.computed;
      } else {
        item.computed += item.chunk;
        item.chunk = 0;
        if (item.computed < item.target) continue;
        if (item.times.length === 0) this.#promptTokens += item.target;
        tokens = 1;
      }
      for (let i = 0; i < tokens; i++) item.times.push(this.#now);
      this.#generationTokens += tokens;
      if (item.times.length < item.wanted) continue;
      item.over = true;
      this.#items.delete(item.handle);
      this.#leave(item);
      out.push(finishedOf(item, false, this.#now));
    }
  }

  #take(item: Item, blocks: number): void {
    if (blocks <= 0) return; // room left over from drafts that were refused
    item.blocks += blocks;
    this.#used += blocks;
  }

  #preempt(item: Item): void {
    this.#used -= item.blocks;
    item.blocks = 0;
    item.chunk = 0;
    item.target = Math.max(1, item.spec.inputTokens) + item.times.length;
    item.computed = 0;
    item.preemptions++;
    this.#preemptions++;
    this.#waiting.unshift(item);
  }

  #leave(item: Item): void {
    this.#used -= item.blocks;
    item.blocks = 0;
    this.#running.splice(this.#running.indexOf(item), 1);
  }

  #blocksFor(tokens: number): number {
    return Math.ceil(tokens / this.#limits.blockTokens);
  }
}
