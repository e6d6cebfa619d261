/**
 * Static batching: requests wait until the batch before them is through, start together, and leave their places empty
 * when they are done before the longest. What servers did before continuous batching; here to show what that costs.
 */
import type { Millis } from '../base/units.ts';
import type { RequestSpec } from '../core/request.ts';
import { type DecodePiece, emptyBatch, type StepModel } from '../model/step.ts';
import { type Cluster, Finished, type Gauges, NO_GAUGES, QUEUE_FULL, TOO_LONG } from './cluster.ts';
import { lengthOf, type ReplicaLimits } from './limits.ts';
import { StepHeap } from './queues.ts';
import { StepRun } from './step-run.ts';
import { TokenLog } from './token-log.ts';

interface Item {
  readonly handle: number;
  readonly spec: RequestSpec;
  readonly arrived: Millis;
  over: boolean;
}

export class StaticReplica implements Cluster {
  readonly #model: StepModel;
  readonly #limits: ReplicaLimits;
  readonly #log = new TokenLog();
  readonly #piece: DecodePiece = { ms: 0, slope: 0, untilKv: 0 };
  readonly #ending = new StepHeap();
  readonly #items = new Map<number, Item>();
  #waiting: Item[] = [];
  #batch: Item[] = [];
  #batchKv = 0;
  #batchBlocks = 0;
  #live = 0;
  #scheduled: Millis = 0;
  #firstToken: Millis = 0;
  #firstStep = 0;
  #firstSegment = 0;
  #lastStep = 0;

  #now: Millis = 0;
  #step = 0;
  readonly #run = new StepRun();
  #prefilling = false;
  #nextHandle = 1;
  #promptTokens = 0;
  #generationTokens = 0;

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
    const item: Item = { handle: this.#nextHandle++, spec, arrived: t, over: false };
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
    const waiting = this.#waiting.indexOf(item);
    if (waiting >= 0) {
      this.#waiting.splice(waiting, 1);
      return new Finished(handle, item.spec, true, item.arrived, t);
    }
    this.#live--;
    const f = this.#finished(item, true, t, this.#step + this.#run.by(t));
    // Its place stays; a batch of which nobody is left ends with the step.
    if (this.#live === 0 && this.#run.steps > 0) this.#run.until(Math.min(this.#run.steps, this.#run.by(t) + 1));
    return f;
  }

  nextAt(): Millis {
    return this.#run.steps > 0 || this.#plan() ? this.#run.end : Number.POSITIVE_INFINITY;
  }

  nextStepAt(): Millis {
    if (this.#run.steps === 0 && !this.#plan()) return Number.POSITIVE_INFINITY;
    return this.#run.endOf(this.#run.by(this.#now) + 1);
  }

  advance(to: Millis, out: Finished[]): void {
    for (;;) {
      if (this.#run.steps === 0 && (this.#now >= to || !this.#plan())) break;
      if (this.#run.end > to) break;
      this.#completeRun(out);
    }
    if (to > this.#now) this.#now = to;
  }

  forEachDecoding(visit: (handle: number, generated: number) => void): void {
    if (this.#batch.length === 0 || this.#prefilling) return;
    const generated = this.#step + this.#run.by(this.#now) - this.#firstStep + 1;
    for (const item of this.#batch) if (!item.over) visit(item.handle, Math.min(generated, wanted(item.spec)));
  }

  gauges(): Gauges {
    const done = this.#prefilling ? 0 : this.#run.by(this.#now);
    return {
      ...NO_GAUGES,
      running: this.#live,
      waiting: this.#waiting.length,
      kvUsed: this.#batchBlocks,
      kvBlocks: this.#limits.kvBlocks,
      kvUsage: this.#batchBlocks / this.#limits.kvBlocks,
      promptTokens: this.#promptTokens,
      generationTokens: this.#generationTokens + done * this.#live,
      steps: this.#step + done,
    };
  }

  #begin(a: Millis, b: Millis, steps: number): void {
    this.#run.begin(this.#now, a, b, steps);
    this.#log.push(this.#step, this.#now, a, b);
  }

  #plan(): boolean {
    if (this.#live === 0) this.#batch = [];
    if (this.#batch.length === 0) return this.#startBatch();
    const n = this.#batch.length;
    const kv = this.#batchKv + n;
    this.#model.decode(n, kv, this.#piece);
    const { ms, slope, untilKv } = this.#piece;
    let steps = Math.min(this.#ending.minStep, this.#lastStep) - this.#step;
    if (untilKv < kv + (steps - 1) * n) steps = Math.max(1, Math.floor((untilKv - kv) / n) + 1);
    this.#begin(ms, slope * n, steps);
    return true;
  }

  /** The batch is what waits, in order, as far as places and KV for whole lengths go. All prompts run in one step. */
  #startBatch(): boolean {
    this.#batchBlocks = 0;
    const batch = emptyBatch();
    let longest = 0;
    for (const item of this.#waiting) {
      const blocks = this.#blocks(lengthOf(item.spec));
      if (this.#batch.length >= this.#limits.maxSeqs || this.#batchBlocks + blocks > this.#limits.kvBlocks) break;
      this.#batchBlocks += blocks;
      this.#batch.push(item);
      const prompt = Math.max(1, item.spec.inputTokens);
      batch.prefillSequences++;
      batch.prefillCompletes++;
      batch.prefillTokens += prompt;
      batch.prefillKv += prompt;
      batch.prefillSquares += prompt * prompt;
      longest = Math.max(longest, wanted(item.spec));
    }
    if (this.#batch.length === 0) return false;
    this.#waiting = this.#waiting.slice(this.#batch.length);
    this.#live = this.#batch.length;
    this.#batchKv = batch.prefillTokens;
    this.#scheduled = this.#now;
    this.#prefilling = true;
    this.#firstStep = this.#step + 1;
    this.#lastStep = this.#step + longest;
    for (let i = 0; i < this.#batch.length; i++) this.#ending.push(this.#step + wanted(this.#batch[i]!.spec), i);
    this.#log.trim(this.#log.last + 1);
    this.#begin(this.#model.stepMs(batch), 0, 1);
    this.#firstSegment = this.#log.last;
    return true;
  }

  #completeRun(out: Finished[]): void {
    this.#now = this.#run.end;
    const steps = this.#run.steps;
    this.#step += steps;
    this.#run.steps = 0;
    if (this.#prefilling) {
      this.#prefilling = false;
      this.#firstToken = this.#now;
      this.#promptTokens += this.#batchKv;
      this.#generationTokens += this.#live;
    } else {
      this.#batchKv += steps * this.#batch.length;
      this.#generationTokens += steps * this.#live;
    }
    while (this.#ending.minStep <= this.#step) {
      const item = this.#batch[this.#ending.minSlot] as Item;
      this.#ending.pop();
      if (item.over) continue;
      item.over = true;
      this.#live--;
      this.#items.delete(item.handle);
      out.push(this.#finished(item, false, this.#now, this.#step));
    }
    if (this.#live === 0) {
      while (this.#ending.size > 0) this.#ending.pop();
      this.#batch = [];
      this.#batchBlocks = 0;
    }
  }

  #finished(item: Item, cancelled: boolean, t: Millis, step: number): Finished {
    const f = new Finished(item.handle, item.spec, cancelled, item.arrived, t);
    f.scheduled = this.#scheduled;
    const to = Math.min(step, this.#firstStep - 1 + wanted(item.spec));
    if (to < this.#firstStep) return f;
    f.generated = to - this.#firstStep + 1;
    f.firstToken = this.#prefilling ? this.#run.end : this.#firstToken;
    f.last = { log: this.#log, segment: this.#firstSegment, from: this.#firstStep, to };
    f.lastToken = f.tokenTimes()[f.generated - 1] as number;
    return f;
  }

  #blocks(tokens: number): number {
    return Math.ceil(tokens / this.#limits.blockTokens);
  }
}

function wanted(spec: RequestSpec): number {
  return Math.max(1, spec.outputTokens);
}
