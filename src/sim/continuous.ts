/**
 * Continuous batching with iteration-level scheduling. What goes into a step is the scheduler's; here is when: a step with
 * prompt chunks is taken alone, steps of pure decode run until something changes, as one entry. An arrival cuts the run
 * at the end of the step it falls in.
 */
import type { Millis } from '../base/units.ts';
import type { RequestSpec } from '../core/request.ts';
import type { DecodePiece, StepModel } from '../model/step.ts';
import { type DecodeCluster, type Finished, type Gauges, QUEUE_FULL, TOO_LONG } from './cluster.ts';
import { lengthOf, type ReplicaLimits } from './limits.ts';
import { Scheduler } from './scheduler.ts';
import { Sequences } from './sequences.ts';
import { DECODE, GONE, WAITING } from './slots.ts';
import { StepRun } from './step-run.ts';

/**
 * Told how many tokens went through the model in each of so many alike steps (vLLM's `iteration_tokens_total`), of them
 * how many decoded, and when the steps began and ended.
 */
export type StepObserver = (tokens: number, steps: number, decodes: number, from: Millis, to: Millis) => void;

export class ContinuousReplica implements DecodeCluster {
  readonly #model: StepModel;
  readonly #limits: ReplicaLimits;
  readonly #observe: StepObserver | undefined;
  readonly #q: Sequences;
  readonly #scheduler: Scheduler;
  readonly #piece: DecodePiece = { ms: 0, slope: 0, untilKv: 0 };
  readonly #run = new StepRun();
  /** Prompt tokens of the run, which is then one step; 0: pure decode. */
  #chunkTokens = 0;
  /** Cancelled while running: they leave when the step in progress ends. */
  readonly #zombies: number[] = [];
  #now: Millis = 0;

  constructor(model: StepModel, limits: ReplicaLimits, observe?: StepObserver) {
    this.#model = model;
    this.#limits = limits;
    this.#observe = observe;
    this.#q = new Sequences(limits);
    this.#scheduler = new Scheduler(this.#q, limits);
  }

  fits(spec: RequestSpec): boolean {
    const length = lengthOf(spec);
    return length <= this.#limits.maxLength && this.#q.blocksFor(length) <= this.#limits.kvBlocks;
  }

  offer(spec: RequestSpec, t: Millis): number {
    return this.#take(spec, t, false);
  }

  offerReady(spec: RequestSpec, t: Millis): number {
    return this.#take(spec, t, true);
  }

  #take(spec: RequestSpec, t: Millis, ready: boolean): number {
    const q = this.#q;
    this.#at(t);
    if (!this.fits(spec)) return TOO_LONG;
    if (q.waitingCount >= this.#limits.maxQueue) return QUEUE_FULL;
    const slot = q.wait(spec, t);
    if (ready) {
      q.slots.ready[slot] = 1;
      q.slots.generated[slot] = 1;
    }
    if (!this.#scheduler.blocked && q.running < this.#limits.maxSeqs) this.#cut(t);
    return q.slots.handle(slot);
  }

  cancel(handle: number, t: Millis): Finished | undefined {
    this.#at(t);
    const q = this.#q;
    const s = q.slots;
    const slot = s.find(handle);
    if (slot < 0 || s.aborted[slot] === 1 || s.state[slot] === GONE) return undefined;
    const finished = q.finished(slot, true, t, q.decoding.step + this.#run.by(t));
    if (s.state[slot] === WAITING) {
      s.state[slot] = GONE;
      q.waitingCount--;
      if (q.waiting.head === slot) {
        this.#scheduler.blocked = false;
        this.#cut(t);
      }
      return finished;
    }
    s.aborted[slot] = 1;
    this.#zombies.push(slot);
    this.#cut(t);
    if (this.#run.steps === 0) this.#bury();
    return finished;
  }

  nextAt(): Millis {
    return this.#run.steps > 0 || this.#plan() ? this.#run.end : Number.POSITIVE_INFINITY;
  }

  nextStepAt(): Millis {
    if (this.#run.steps === 0 && !this.#plan()) return Number.POSITIVE_INFINITY;
    return this.#run.endOf(this.#run.by(this.#now) + 1);
  }

  advance(to: Millis, out: Finished[]): void {
    this.#q.trimLog();
    for (;;) {
      if (this.#run.steps === 0 && (this.#now >= to || !this.#plan())) break;
      if (this.#run.end > to) break;
      this.#completeRun(out);
    }
    if (to > this.#now) this.#now = to;
  }

  forEachDecoding(visit: (handle: number, generated: number) => void): void {
    const { slots, decoding } = this.#q;
    const step = decoding.step + this.#run.by(this.#now);
    for (let slot = slots.first; slot >= 0; slot = slots.after[slot]!) {
      if (slots.state[slot] === DECODE && slots.aborted[slot] === 0)
        visit(slots.handle(slot), decoding.generated(slot, step));
    }
  }

  gauges(): Gauges {
    const q = this.#q;
    const done = this.#run.by(this.#now);
    const kvUsed = q.kv.used + q.decoding.blocksOf(done);
    return {
      running: q.running - this.#zombies.length,
      waiting: q.waitingCount,
      kvUsed,
      kvBlocks: q.kv.blocks,
      kvUsage: kvUsed / q.kv.blocks,
      preemptions: q.preemptions,
      promptTokens: q.promptTokens,
      generationTokens: q.generationTokens + done * q.decoding.count,
      steps: q.decoding.step + done,
      prefixQueries: q.prefixQueries,
      prefixHits: q.prefixHits,
    };
  }

  #at(t: Millis): void {
    if (!(t >= this.#now)) throw new Error(`internal: simulated time went back from ${this.#now} to ${t}`);
    if (t > this.#now && this.#run.steps > 0 && this.#run.end <= t) {
      throw new Error('internal: the cluster was not advanced before it was told of something later');
    }
    this.#now = t;
  }

  /** Ends the run at the end of the step that `t` falls in, so that what changed is seen there. */
  #cut(t: Millis): void {
    const run = this.#run;
    if (run.steps === 0) return;
    const done = run.by(t);
    const atBoundary = done === 0 ? t === run.start : run.endOf(done) === t;
    if (!atBoundary) {
      if (done + 1 < run.steps) run.until(done + 1);
      return;
    }
    if (this.#chunkTokens > 0) return; // its one step has begun
    if (done === 0) this.#q.log.pop();
    else this.#commit(done);
    run.steps = 0;
  }

  /** Plans what runs from now on. @returns false when there is nothing to run. */
  #plan(): boolean {
    const scheduler = this.#scheduler;
    scheduler.again = false;
    if (scheduler.isNeeded) {
      scheduler.schedule(this.#now);
      if (scheduler.chunks > 0) {
        const batch = scheduler.batch();
        this.#chunkTokens = batch.prefillTokens;
        this.#begin(this.#model.stepMs(batch), 0, 1);
        return true;
      }
    }
    if (this.#q.decoding.count === 0) return false;
    this.#chunkTokens = 0;
    this.#planDecode();
    return true;
  }

  #planDecode(): void {
    const { decoding, kv: pool } = this.#q;
    const n = decoding.count;
    const kv = decoding.kv + n;
    this.#model.decode(n, kv, this.#piece);
    const { ms, slope, untilKv } = this.#piece;
    let steps = decoding.nextFinish() - decoding.step;
    if (untilKv < kv + (steps - 1) * n) steps = Math.max(1, Math.floor((untilKv - kv) / n) + 1);
    // At least one: the scheduler has made room for it.
    steps = this.#scheduler.again ? 1 : decoding.stepsWithin(pool.free, steps);
    this.#begin(ms, slope * n, steps);
  }

  #begin(a: Millis, b: Millis, steps: number): void {
    this.#run.begin(this.#now, a, b, steps);
    this.#q.log.push(this.#q.decoding.step, this.#now, a, b);
  }

  /** The first `steps` of the run are done. */
  #commit(steps: number): void {
    const q = this.#q;
    const n = q.decoding.count;
    if (n > 0) {
      q.kv.take(q.decoding.blocksOf(steps));
      q.generationTokens += n * steps;
    }
    if (this.#observe) this.#observe(n + this.#chunkTokens, steps, n, this.#run.start, this.#run.endOf(steps));
    q.decoding.completed(steps);
    this.#scheduler.began(this.#run.endOf(steps - 1));
  }

  #completeRun(out: Finished[]): void {
    const q = this.#q;
    this.#now = this.#run.end;
    this.#commit(this.#run.steps);
    this.#run.steps = 0;
    if (this.#zombies.length > 0) this.#bury();
    for (let slot = q.decoding.popFinished(); slot >= 0; slot = q.decoding.popFinished()) this.#end(slot, out);
    if (this.#chunkTokens === 0) return;
    this.#scheduler.completeChunks((slot) => {
      if (q.prefilled(slot, this.#now)) this.#end(slot, out);
    });
  }

  #end(slot: number, out: Finished[]): void {
    out.push(this.#q.finished(slot, false, this.#now, this.#q.decoding.step));
    this.#leave(slot);
  }

  #leave(slot: number): void {
    this.#q.leave(slot);
    this.#scheduler.blocked = false;
  }

  /** Takes cancelled requests out of the batch, between steps. */
  #bury(): void {
    for (const slot of this.#zombies) {
      if (this.#q.slots.state[slot] !== DECODE) {
        this.#q.leavePrefill(slot);
        this.#scheduler.dropChunk(slot);
      }
      this.#leave(slot);
    }
    this.#zombies.length = 0;
  }
}
