/**
 * Gated batching, as node-llama-cpp's loop makes it over one llama.cpp context. A step computes whatever is ready by then: a
 * token of each decoding sequence, and prompts, between which the token budget is shared evenly. While anything is ready the
 * next step begins at once, and the sequence sampled last misses it, for it is back a moment too late: n streams take turns in
 * steps of n − 1. A new request first clears its place in the context, which waits until the loop pauses; so requests join
 * only when one stream at most is left. Steps are taken one by one.
 */
import type { Millis } from '../base/units.ts';
import type { RequestSpec } from '../core/request.ts';
import { emptyBatch, type StepModel } from '../model/step.ts';
import { type Cluster, type Finished, type Gauges, NO_GAUGES, QUEUE_FULL, TOO_LONG } from './cluster.ts';
import { lengthOf, type ReplicaLimits } from './limits.ts';
import { finishedOf, type Stamped } from './stamped.ts';

interface Item extends Stamped {
  readonly prompt: number;
  readonly wanted: number;
  scheduled: Millis;
  /** Tokens in KV. */
  computed: number;
  /** KV for its whole length, taken when it joins. */
  blocks: number;
  /** Its tokens in the step. */
  chunk: number;
  over: boolean;
}

export class GatedReplica implements Cluster {
  readonly #model: StepModel;
  readonly #limits: ReplicaLimits;
  readonly #batch = emptyBatch();
  readonly #items = new Map<number, Item>();
  #waiting: Item[] = [];
  /** Everyone in the context. */
  readonly #running = new Set<Item>();
  /** Ready to be computed, in order; those in the step stay until it ends. */
  #ready: Item[] = [];
  /** Missed the step that begins next. */
  #late: Item | undefined;
  /** The loop has paused: whoever waits may join. */
  #open = true;
  #used = 0;
  #now: Millis = 0;
  #stepEnd: Millis = Number.POSITIVE_INFINITY;
  #nextHandle = 1;
  #promptTokens = 0;
  #generationTokens = 0;
  #steps = 0;

  constructor(model: StepModel, limits: ReplicaLimits) {
    this.#model = model;
    this.#limits = limits;
  }

  fits(spec: RequestSpec): boolean {
    const length = lengthOf(spec);
    return length <= this.#limits.maxLength && this.#blocks(length) <= this.#limits.kvBlocks;
  }

  offer(spec: RequestSpec, t: Millis): number {
    this.#now = t;
    if (!this.fits(spec)) return TOO_LONG;
    if (this.#waiting.length >= this.#limits.maxQueue) return QUEUE_FULL;
    const item: Item = {
      handle: this.#nextHandle++,
      spec,
      arrived: t,
      prompt: Math.max(1, spec.inputTokens),
      wanted: Math.max(1, spec.outputTokens),
      times: [],
      scheduled: Number.NaN,
      computed: 0,
      blocks: 0,
      chunk: 0,
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
    else if (item.chunk === 0) this.#forget(item); // the step in progress does not need it
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
    let running = 0;
    for (const item of this.#running) if (!item.over) running++;
    return {
      ...NO_GAUGES,
      running,
      waiting: this.#waiting.length,
      kvUsed: this.#used,
      kvBlocks: this.#limits.kvBlocks,
      kvUsage: this.#used / this.#limits.kvBlocks,
      promptTokens: this.#promptTokens,
      generationTokens: this.#generationTokens,
      steps: this.#steps,
    };
  }

  #plan(): boolean {
    if (this.#ready.length === 0) this.#open = true;
    if (this.#open) {
      if (this.#late) this.#ready.push(this.#late);
      this.#late = undefined;
      this.#join();
    }
    if (this.#ready.length === 0) return false;
    this.#open = false;
    share(this.#ready, this.#limits.maxBatchedTokens);
    this.#stepEnd = this.#now + this.#stepMs();
    if (this.#late) this.#ready.push(this.#late);
    this.#late = undefined;
    return true;
  }

  #join(): void {
    const { maxSeqs, kvBlocks } = this.#limits;
    while (this.#waiting.length > 0 && this.#running.size < maxSeqs) {
      const item = this.#waiting[0] as Item;
      const blocks = this.#blocks(lengthOf(item.spec));
      if (this.#used + blocks > kvBlocks) return;
      this.#waiting.shift();
      item.blocks = blocks;
      item.scheduled = this.#now;
      this.#used += blocks;
      this.#running.add(item);
      this.#ready.push(item);
    }
  }

  #stepMs(): Millis {
    const b = Object.assign(this.#batch, emptyBatch());
    for (const { chunk, computed, prompt } of this.#ready) {
      if (chunk === 0) continue;
      const to = computed + chunk;
      if (computed >= prompt) {
        b.decodeSequences++;
        b.decodeTokens++;
        b.decodeKv += to;
      } else {
        b.prefillSequences++;
        b.prefillTokens += chunk;
        b.prefillKv += to;
        b.prefillSquares += to * to - computed * computed;
        if (to === prompt) b.prefillCompletes++;
      }
    }
    return this.#model.stepMs(b);
  }

  #complete(out: Finished[]): void {
    this.#now = this.#stepEnd;
    this.#stepEnd = Number.POSITIVE_INFINITY;
    this.#steps++;
    const still: Item[] = [];
    const again: Item[] = [];
    let last: Item | undefined;
    const step = this.#ready;
    this.#ready = [];
    for (const item of step) {
      const { chunk } = item;
      item.chunk = 0;
      if (item.over) {
        this.#forget(item);
        continue;
      }
      item.computed += chunk;
      if (chunk === 0 || item.computed < item.prompt) {
        still.push(item);
        continue;
      }
      if (item.times.length === 0) this.#promptTokens += item.prompt;
      item.times.push(this.#now);
      this.#generationTokens++;
      last = item;
      if (item.times.length < item.wanted) {
        again.push(item);
        continue;
      }
      item.over = true;
      this.#items.delete(item.handle);
      this.#forget(item);
      out.push(finishedOf(item, false, this.#now));
    }
    if (last !== undefined && again.at(-1) === last) {
      again.pop();
      if (still.length + again.length === 0) this.#open = true;
      this.#late = last;
    }
    this.#ready = [...still, ...again];
  }

  /** Out of the context. */
  #forget(item: Item): void {
    if (!this.#running.delete(item)) return;
    this.#used -= item.blocks;
    item.blocks = 0;
    if (this.#late === item) this.#late = undefined;
    const i = this.#ready.indexOf(item);
    if (i >= 0 && this.#stepEnd === Number.POSITIVE_INFINITY) this.#ready.splice(i, 1);
  }

  #blocks(tokens: number): number {
    return Math.ceil(tokens / this.#limits.blockTokens);
  }
}

/** Shares a step's tokens out: as many each as are left of the evenly shared budget, until nobody wants more. */
function share(items: readonly Item[], budget: number): void {
  let left = budget;
  let wanting = items.map((item) => ({ item, want: item.computed < item.prompt ? item.prompt - item.computed : 1 }));
  while (left > 0 && wanting.length > 0) {
    const each = Math.max(1, Math.floor(left / wanting.length));
    for (const w of wanting) {
      const take = Math.min(w.want, each, left);
      w.item.chunk += take;
      w.want -= take;
      left -= take;
    }
    wanting = wanting.filter((w) => w.want > 0);
  }
}
