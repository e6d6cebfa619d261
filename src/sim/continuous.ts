/**
 * Continuous batching with iteration-level scheduling as vLLM v1 does it: running requests first, then the queue in
 * order, within a token budget, a batch size and a KV pool; prompts in chunks; the latest admitted preempted by
 * recomputation when KV runs out.
 *
 * Between two changes of the batch every step is pure decode and the step time is linear in ΣKV, so a run of k steps is
 * one entry: the m-th step ends at `t0 + m·a + b·m(m−1)/2`. An arrival cuts the run at the end of the step it falls in.
 */
import type { Millis } from '../base/units.ts';
import type { RequestSpec } from '../core/request.ts';
import { type DecodePiece, emptyBatch, type StepModel } from '../model/step.ts';
import { type DecodeCluster, Finished, type Gauges, QUEUE_FULL, TOO_LONG } from './cluster.ts';
import { KvPool } from './kv-pool.ts';
import type { ReplicaLimits } from './limits.ts';
import { StepHeap, WaitQueue } from './queues.ts';
import { DECODE, GONE, PREFILL, Slots, WAITING } from './slots.ts';
import { TokenLog } from './token-log.ts';

/**
 * Told how many tokens went through the model in each of so many alike steps (vLLM's `iteration_tokens_total`), of them
 * how many decoded, and when the steps began and ended.
 */
export type StepObserver = (tokens: number, steps: number, decodes: number, from: Millis, to: Millis) => void;

export class ContinuousReplica implements DecodeCluster {
  readonly #model: StepModel;
  readonly #limits: ReplicaLimits;
  readonly #observe: StepObserver | undefined;
  readonly #slots = new Slots();
  readonly #waiting = new WaitQueue();
  readonly #finishing = new StepHeap();
  readonly #log = new TokenLog();
  readonly #kv: KvPool;
  readonly #batch = emptyBatch();
  readonly #piece: DecodePiece = { ms: 0, slope: 0, untilKv: 0 };
  /** Decoding sequences by when they need a block: those that do at a step ≡ r (mod block) after `step` completed. */
  readonly #phase: Int32Array;
  /** Requests with prompt left to compute, in order of admission. */
  #prefills: number[] = [];
  /** This step's chunks. */
  #chunkSlots: number[] = [];
  #chunkTokens: number[] = [];
  #zombies: number[] = [];

  #now: Millis = 0;
  /** Completed steps. */
  #step = 0;
  #decoding = 0;
  /** Tokens in KV of the decoding sequences. */
  #kvSum = 0;
  #waitingCount = 0;
  /** The queue's head could not be admitted: later arrivals cannot either until something ends. */
  #blocked = false;

  /** The run in progress: 0 steps when none. */
  #runSteps = 0;
  #runStart: Millis = 0;
  #runEnd: Millis = 0;
  #a: Millis = 0;
  #b: Millis = 0;
  #mixed = false;
  /** This step had to preempt: it admits nobody, and the next one tries again. */
  #preemptedNow = false;
  /** Someone waits whom the planner, a step ahead, has not seen: the next step tries again. */
  #unseen = false;
  /** When the last completed step began: under asynchronous scheduling the next one was planned then. */
  #lastBegan: Millis = 0;

  #preemptions = 0;
  #promptTokens = 0;
  #generationTokens = 0;
  #prefixQueries = 0;
  #prefixHits = 0;
  #trimAt = 1024;

  constructor(model: StepModel, limits: ReplicaLimits, observe?: StepObserver) {
    this.#model = model;
    this.#limits = limits;
    this.#observe = observe;
    this.#kv = new KvPool(limits.kvBlocks, limits.prefixBlockTokens / limits.blockTokens);
    this.#phase = new Int32Array(limits.blockTokens);
  }

  fits(spec: RequestSpec): boolean {
    const length = Math.max(1, spec.inputTokens) + Math.max(1, spec.outputTokens);
    return length <= this.#limits.maxLength && this.#blocksFor(length) <= this.#limits.kvBlocks;
  }

  offer(spec: RequestSpec, t: Millis): number {
    return this.#take(spec, t, false);
  }

  offerReady(spec: RequestSpec, t: Millis): number {
    return this.#take(spec, t, true);
  }

  #take(spec: RequestSpec, t: Millis, ready: boolean): number {
    this.#at(t);
    if (!this.fits(spec)) return TOO_LONG;
    if (this.#waitingCount >= this.#limits.maxQueue) return QUEUE_FULL;
    const slot = this.#slots.open(spec, t);
    if (ready) {
      this.#slots.ready[slot] = 1;
      this.#slots.generated[slot] = 1;
    }
    this.#waiting.push(slot);
    this.#waitingCount++;
    if (!this.#blocked && this.#decoding + this.#prefills.length < this.#limits.maxSeqs) this.#cut(t);
    return this.#slots.handle(slot);
  }

  cancel(handle: number, t: Millis): Finished | undefined {
    this.#at(t);
    const s = this.#slots;
    const slot = s.find(handle);
    if (slot < 0 || s.aborted[slot] === 1 || s.state[slot] === GONE) return undefined;
    const done = this.#stepsBy(t);
    const finished = this.#finished(slot, true, t, this.#step + done);
    if (s.state[slot] === WAITING) {
      s.state[slot] = GONE;
      this.#waitingCount--;
      if (this.#waiting.head === slot) {
        this.#blocked = false;
        this.#cut(t);
      }
      return finished;
    }
    s.aborted[slot] = 1;
    this.#zombies.push(slot);
    this.#cut(t);
    if (this.#runSteps === 0) this.#bury();
    return finished;
  }

  nextAt(): Millis {
    return this.#runSteps > 0 || this.#plan() ? this.#runEnd : Number.POSITIVE_INFINITY;
  }

  nextStepAt(): Millis {
    if (this.#runSteps === 0 && !this.#plan()) return Number.POSITIVE_INFINITY;
    return this.#endOf(this.#stepsBy(this.#now) + 1);
  }

  advance(to: Millis, out: Finished[]): void {
    if (this.#log.size > this.#trimAt) this.#trim();
    for (;;) {
      if (this.#runSteps === 0 && (this.#now >= to || !this.#plan())) break;
      if (this.#runEnd > to) break;
      this.#completeRun(out);
    }
    if (to > this.#now) this.#now = to;
  }

  forEachDecoding(visit: (handle: number, generated: number) => void): void {
    const s = this.#slots;
    const step = this.#step + this.#stepsBy(this.#now);
    for (let slot = s.first; slot >= 0; slot = s.after[slot]!) {
      if (s.state[slot] === DECODE && s.aborted[slot] === 0) visit(s.handle(slot), s.genBase[slot]! + step);
    }
  }

  gauges(): Gauges {
    const done = this.#stepsBy(this.#now);
    const kvUsed = this.#kv.used + this.#blocksNeeded(done);
    return {
      running: this.#decoding + this.#prefills.length - this.#zombies.length,
      waiting: this.#waitingCount,
      kvUsed,
      kvBlocks: this.#kv.blocks,
      kvUsage: kvUsed / this.#kv.blocks,
      preemptions: this.#preemptions,
      promptTokens: this.#promptTokens,
      generationTokens: this.#generationTokens + done * this.#decoding,
      steps: this.#step + done,
      prefixQueries: this.#prefixQueries,
      prefixHits: this.#prefixHits,
    };
  }

  // ---- time ----

  #at(t: Millis): void {
    if (!(t >= this.#now)) throw new Error(`internal: simulated time went back from ${this.#now} to ${t}`);
    if (t > this.#now && this.#runSteps > 0 && this.#runEnd <= t) {
      throw new Error('internal: the cluster was not advanced before it was told of something later');
    }
    this.#now = t;
  }

  #endOf(steps: number): Millis {
    return this.#runStart + steps * this.#a + (this.#b / 2) * steps * (steps - 1);
  }

  /** Steps of the current run that end at or before `t`. */
  #stepsBy(t: Millis): number {
    const n = this.#runSteps;
    if (n === 0) return 0;
    if (t >= this.#runEnd) return n;
    if (t < this.#endOf(1)) return 0;
    const dt = t - this.#runStart;
    const p = this.#a - this.#b / 2;
    let i = Math.floor((2 * dt) / (p + Math.sqrt(p * p + 2 * this.#b * dt)));
    while (i > 0 && this.#endOf(i) > t) i--;
    while (i < n && this.#endOf(i + 1) <= t) i++;
    return i;
  }

  /** Ends the run at the end of the step that `t` falls in, so that what changed is seen there. */
  #cut(t: Millis): void {
    if (this.#runSteps === 0) return;
    const done = this.#stepsBy(t);
    const atBoundary = done === 0 ? t === this.#runStart : this.#endOf(done) === t;
    if (!atBoundary) {
      if (done + 1 < this.#runSteps) this.#runUntil(done + 1);
      return;
    }
    if (this.#mixed) return; // its one step has begun
    if (done === 0) {
      this.#log.pop();
      this.#runSteps = 0;
    } else {
      this.#commit(done);
      this.#runSteps = 0;
    }
  }

  #runUntil(steps: number): void {
    this.#runSteps = steps;
    this.#runEnd = this.#endOf(steps);
  }

  // ---- scheduling ----

  /** Plans what runs from now on. @returns false when there is nothing to run. */
  #plan(): boolean {
    if (
      this.#waitingCount > 0 ||
      this.#prefills.length > 0 ||
      this.#phase[this.#step % this.#phase.length]! > this.#kv.free
    ) {
      this.#schedule();
      if (this.#chunkSlots.length > 0) return this.#planMixed();
    }
    return this.#decoding > 0 && this.#planDecode();
  }

  /** Chooses this step's prefill chunks, preempting for running requests and admitting from the queue. */
  #schedule(): void {
    const { maxBatchedTokens, maxSeqs, longPrefill, chunkedPrefill, asyncScheduling } = this.#limits;
    const s = this.#slots;
    this.#preemptedNow = false;
    this.#unseen = false;
    this.#preemptFor(0, -1);
    let budget = maxBatchedTokens - this.#decoding;
    for (let i = 0; i < this.#prefills.length && budget > 0; i++) {
      const slot = this.#prefills[i]!;
      const left = s.target[slot]! - s.computed[slot]!;
      let chunk = longPrefill > 0 && left > longPrefill ? longPrefill : left;
      if (chunk > budget) chunk = budget;
      const need = this.#blocksFor(s.computed[slot]! + chunk) - s.blocks[slot]! - s.pinnedBlocks[slot]!;
      if (need > this.#freeForPrefill()) {
        const decoding = this.#decoding;
        this.#preemptFor(need, slot);
        if (s.state[slot] !== PREFILL) break; // it was the latest itself
        budget += decoding - this.#decoding;
      }
      this.#chunk(slot, chunk, need);
      budget -= chunk;
    }
    this.#blocked = this.#preemptedNow;
    if (this.#blocked) return;
    while (this.#waitingCount > 0) {
      const slot = this.#waiting.head;
      if (s.state[slot] === GONE) {
        this.#waiting.pop();
        s.close(slot);
        continue;
      }
      if (budget <= 0 || this.#decoding + this.#prefills.length >= maxSeqs) {
        this.#blocked = true;
        return;
      }
      if (asyncScheduling && s.arrived[slot]! > this.#plannedAt() && this.#decoding + this.#prefills.length > 0) {
        this.#unseen = true;
        return;
      }
      if (s.ready[slot] === 1) {
        if (!this.#join(slot)) {
          this.#blocked = true;
          return;
        }
        budget--;
        continue;
      }
      const hits = this.#prefixHitsOf(slot);
      const cached = hits * this.#limits.prefixBlockTokens;
      const left = s.target[slot]! - cached;
      let chunk = longPrefill > 0 && chunkedPrefill && left > longPrefill ? longPrefill : left;
      if (chunk > budget) {
        if (chunkedPrefill) chunk = budget;
        else if (this.#chunkSlots.length > 0) {
          this.#blocked = true;
          return;
        }
      }
      const hashes = hits > 0 ? (s.spec[slot]?.prefixBlocks as readonly number[]) : [];
      const need = this.#blocksFor(cached + chunk) - cached / this.#limits.blockTokens;
      const room = this.#limits.reservePrompt
        ? this.#blocksFor(s.target[slot]!) - cached / this.#limits.blockTokens
        : need;
      if (room + this.#kv.costOfPinning(hits) > this.#freeForPrefill()) {
        this.#blocked = true;
        return;
      }
      this.#waiting.pop();
      this.#waitingCount--;
      this.#admit(slot, hashes, hits, cached);
      this.#chunk(slot, chunk, need);
      budget -= chunk;
    }
    // Cancelled ones behind the last live one.
    while (this.#waiting.size > 0 && s.state[this.#waiting.head] === GONE) s.close(this.#waiting.pop());
  }

  /** Lets the queue's head, whose KV came from elsewhere, decode from this step on. @returns false when it does not fit. */
  #join(slot: number): boolean {
    const s = this.#slots;
    const prompt = s.target[slot]!;
    const blocks = this.#blocksFor(prompt);
    if (blocks + (prompt % this.#limits.blockTokens === 0 ? 1 : 0) > this.#freeForPrefill()) return false;
    this.#waiting.pop();
    this.#waitingCount--;
    this.#kv.take(blocks);
    s.ready[slot] = 0;
    s.scheduled[slot] = this.#now;
    s.firstToken[slot] = s.arrived[slot]!;
    s.append(slot);
    s.segment[slot] = this.#log.last + 1;
    s.fromStep[slot] = this.#step + 1;
    this.#startDecode(slot, prompt, 1);
    return true;
  }

  #admit(slot: number, hashes: readonly number[], hits: number, cached: number): void {
    const s = this.#slots;
    const planned = this.#plannedAt();
    s.state[slot] = PREFILL;
    s.append(slot);
    this.#prefills.push(slot);
    s.computed[slot] = cached;
    if (Number.isNaN(s.scheduled[slot]!)) {
      s.scheduled[slot] = Math.max(s.arrived[slot]!, planned);
      s.cached[slot] = cached;
      if (this.#limits.prefixCaching) {
        this.#prefixQueries += s.target[slot]!;
        this.#prefixHits += cached;
      }
    }
    if (hits > 0) {
      this.#kv.pin(hits);
      s.pinned[slot] = hashes.slice(0, hits);
      s.pinnedBlocks[slot] = cached / this.#limits.blockTokens;
    }
  }

  #chunk(slot: number, tokens: number, blocks: number): void {
    this.#kv.take(blocks);
    this.#slots.blocks[slot]! += blocks;
    this.#chunkSlots.push(slot);
    this.#chunkTokens.push(tokens);
  }

  /** Leading prefix blocks found in the cache; at least one token is always computed. */
  #prefixHitsOf(slot: number): number {
    const hashes = this.#slots.spec[slot]!.prefixBlocks;
    if (!hashes || hashes.length === 0 || !this.#limits.prefixCaching) return 0;
    return this.#kv.hits(hashes, Math.floor((this.#slots.target[slot]! - 1) / this.#limits.prefixBlockTokens));
  }

  /** Blocks free once this step's decodes have theirs. */
  #freeForPrefill(): number {
    return this.#kv.free - this.#phase[this.#step % this.#phase.length]!;
  }

  /** Preempts the latest admitted until `need` blocks are free beside the decodes', or `until` itself went. */
  #preemptFor(need: number, until: number): void {
    while (this.#freeForPrefill() < need) {
      const victim = this.#slots.last;
      this.#preempt(victim);
      this.#preemptedNow = true;
      if (victim === until) break;
    }
  }

  #preempt(slot: number): void {
    const s = this.#slots;
    if (s.state[slot] === DECODE) {
      s.generated[slot] = s.genBase[slot]! + this.#step;
      this.#closeStint(slot, this.#step);
      this.#leaveDecode(slot);
      s.target[slot] = Math.max(1, s.spec[slot]!.inputTokens) + s.generated[slot]!;
    } else {
      this.#prefills.splice(this.#prefills.indexOf(slot), 1);
      const i = this.#chunkSlots.indexOf(slot);
      if (i >= 0) {
        this.#chunkSlots.splice(i, 1);
        this.#chunkTokens.splice(i, 1);
      }
    }
    this.#releaseKv(slot);
    s.remove(slot);
    s.computed[slot] = 0;
    s.preemptions[slot]!++;
    this.#preemptions++;
    if (s.aborted[slot] === 1) throw new Error('internal: a cancelled request was preempted');
    s.state[slot] = WAITING;
    this.#waiting.pushFront(slot);
    this.#waitingCount++;
  }

  #planMixed(): boolean {
    const batch = this.#batch;
    const s = this.#slots;
    batch.decodeSequences = this.#decoding;
    batch.decodeTokens = this.#decoding;
    batch.decodeKv = this.#kvSum + this.#decoding;
    batch.prefillSequences = this.#chunkSlots.length;
    batch.prefillTokens = 0;
    batch.prefillCompletes = 0;
    batch.prefillKv = 0;
    batch.prefillSquares = 0;
    for (let i = 0; i < this.#chunkSlots.length; i++) {
      const slot = this.#chunkSlots[i]!;
      const from = s.computed[slot]!;
      const to = from + this.#chunkTokens[i]!;
      batch.prefillTokens += to - from;
      batch.prefillKv += to;
      batch.prefillSquares += to * to - from * from;
      if (to === s.target[slot]) batch.prefillCompletes++;
    }
    this.#begin(this.#model.stepMs(batch), 0, 1, true);
    return true;
  }

  #planDecode(): boolean {
    while (this.#finishing.size > 0 && !this.#isDue(this.#finishing.minSlot, this.#finishing.minStep))
      this.#finishing.pop();
    const n = this.#decoding;
    const kv = this.#kvSum + n;
    this.#model.decode(n, kv, this.#piece);
    const { ms, slope, untilKv } = this.#piece;
    let steps = this.#finishing.minStep - this.#step;
    if (untilKv < kv + (steps - 1) * n) steps = Math.max(1, Math.floor((untilKv - kv) / n) + 1);
    steps = this.#preemptedNow || this.#unseen ? 1 : this.#stepsOfKv(steps);
    this.#preemptedNow = false;
    this.#unseen = false;
    this.#begin(ms, slope * n, steps, false);
    return true;
  }

  #begin(a: Millis, b: Millis, steps: number, mixed: boolean): void {
    if (!(a > 0)) throw new Error(`internal: a step of ${a} ms`);
    this.#runStart = this.#now;
    this.#a = a;
    this.#b = b;
    this.#mixed = mixed;
    this.#runUntil(steps);
    this.#log.push(this.#step, this.#now, a, b);
  }

  /** Of `steps` decode steps, how many the free KV blocks allow. At least one: the planner has made room for it. */
  #stepsOfKv(steps: number): number {
    const { free } = this.#kv;
    const period = this.#phase.length;
    const whole = Math.floor(free / this.#decoding); // a period needs one block a sequence
    if (whole * period >= steps) return steps;
    let left = free - whole * this.#decoding;
    let i = 0;
    while (i < period && (left -= this.#phase[(this.#step + i) % period]!) >= 0) i++;
    return Math.min(steps, whole * period + i);
  }

  /** Blocks that the next `steps` decode steps take. */
  #blocksNeeded(steps: number): number {
    const period = this.#phase.length;
    const whole = Math.floor(steps / period);
    let need = whole * this.#decoding;
    for (let i = whole * period; i < steps; i++) need += this.#phase[(this.#step + i) % period]!;
    return need;
  }

  // ---- what a step brings about ----

  #commit(steps: number): void {
    const n = this.#decoding;
    if (n > 0) {
      this.#kv.take(this.#blocksNeeded(steps));
      this.#kvSum += n * steps;
      this.#generationTokens += n * steps;
    }
    if (this.#observe) {
      const tokens = this.#mixed ? n + this.#batch.prefillTokens : n;
      this.#observe(tokens, steps, n, this.#runStart, this.#endOf(steps));
    }
    this.#step += steps;
    this.#lastBegan = this.#endOf(steps - 1);
  }

  /** When the step that starts now was planned. */
  #plannedAt(): Millis {
    return this.#limits.asyncScheduling && this.#decoding + this.#prefills.length > 0 ? this.#lastBegan : this.#now;
  }

  #completeRun(out: Finished[]): void {
    this.#now = this.#runEnd;
    this.#commit(this.#runSteps);
    this.#runSteps = 0;
    if (this.#zombies.length > 0) this.#bury();
    while (this.#finishing.minStep <= this.#step) {
      const slot = this.#finishing.minSlot;
      const due = this.#isDue(slot, this.#finishing.minStep);
      this.#finishing.pop();
      if (!due) continue;
      out.push(this.#finished(slot, false, this.#now, this.#step));
      this.#leaveDecode(slot);
      this.#leave(slot);
    }
    if (this.#mixed) this.#completeChunks(out);
  }

  #completeChunks(out: Finished[]): void {
    const s = this.#slots;
    for (let i = 0; i < this.#chunkSlots.length; i++) {
      const slot = this.#chunkSlots[i]!;
      s.computed[slot]! += this.#chunkTokens[i]!;
      const prompt = s.computed[slot]!;
      if (prompt < s.target[slot]!) continue;
      this.#prefills.splice(this.#prefills.indexOf(slot), 1);
      if (this.#limits.prefixCaching) this.#keepPrefix(slot);
      const generated = s.generated[slot]! + 1;
      this.#generationTokens++;
      s.generated[slot] = generated;
      s.segment[slot] = this.#log.last;
      s.fromStep[slot] = this.#step;
      if (generated === 1) {
        s.firstToken[slot] = this.#now;
        this.#promptTokens += s.target[slot]!;
      }
      if (generated >= s.output[slot]!) {
        out.push(this.#finished(slot, false, this.#now, this.#step));
        this.#leave(slot);
        continue;
      }
      this.#startDecode(slot, prompt, generated);
    }
    this.#chunkSlots.length = 0;
    this.#chunkTokens.length = 0;
  }

  #startDecode(slot: number, kv: number, generated: number): void {
    const s = this.#slots;
    s.state[slot] = DECODE;
    s.genBase[slot] = generated - this.#step;
    s.kvBase[slot] = kv - this.#step;
    s.finishStep[slot] = this.#step + s.output[slot]! - generated;
    this.#finishing.push(s.finishStep[slot]!, slot);
    this.#decoding++;
    this.#kvSum += kv;
    this.#phase[this.#residue(slot)]!++;
  }

  /** The prompt's whole prefix blocks become cached, as far as nobody else's already are. */
  #keepPrefix(slot: number): void {
    const s = this.#slots;
    const hashes = s.spec[slot]!.prefixBlocks;
    if (!hashes) return;
    const { prefixBlockTokens, blockTokens } = this.#limits;
    const whole = Math.min(hashes.length, Math.floor(Math.max(1, s.spec[slot]!.inputTokens) / prefixBlockTokens));
    const held = s.pinned[slot]?.length ?? 0;
    for (let i = held; i < whole; i++) {
      if (!this.#kv.adopt(hashes[i]!)) continue;
      (s.pinned[slot] ??= []).push(hashes[i]!);
      s.pinnedBlocks[slot]! += prefixBlockTokens / blockTokens;
      s.blocks[slot]! -= prefixBlockTokens / blockTokens;
    }
  }

  #isDue(slot: number, step: number): boolean {
    const s = this.#slots;
    return s.state[slot] === DECODE && s.finishStep[slot] === step && s.aborted[slot] === 0;
  }

  /** Takes cancelled requests out of the batch, between steps. */
  #bury(): void {
    const s = this.#slots;
    for (const slot of this.#zombies) {
      if (s.state[slot] === DECODE) this.#leaveDecode(slot);
      else {
        this.#prefills.splice(this.#prefills.indexOf(slot), 1);
        const i = this.#chunkSlots.indexOf(slot);
        if (i >= 0) {
          this.#chunkSlots.splice(i, 1);
          this.#chunkTokens.splice(i, 1);
        }
      }
      this.#leave(slot);
    }
    this.#zombies.length = 0;
  }

  #leaveDecode(slot: number): void {
    const s = this.#slots;
    const kv = s.kvBase[slot]! + this.#step;
    this.#decoding--;
    this.#kvSum -= kv;
    this.#phase[this.#residue(slot)]!--;
    s.blocks[slot] = this.#blocksFor(kv) - s.pinnedBlocks[slot]!;
  }

  #leave(slot: number): void {
    this.#releaseKv(slot);
    this.#slots.remove(slot);
    this.#slots.close(slot);
    this.#blocked = false;
  }

  #releaseKv(slot: number): void {
    const s = this.#slots;
    this.#kv.release(s.blocks[slot]!);
    s.blocks[slot] = 0;
    const pinned = s.pinned[slot];
    if (!pinned) return;
    for (let i = pinned.length - 1; i >= 0; i--) this.#kv.unpin(pinned[i]!); // the tail becomes the oldest
    s.pinned[slot] = undefined;
    s.pinnedBlocks[slot] = 0;
  }

  /** The step count, modulo the block size, before which a decoding sequence needs a new block. */
  #residue(slot: number): number {
    const period = this.#phase.length;
    const r = -this.#slots.kvBase[slot]! % period;
    return r < 0 ? r + period : r + 0;
  }

  #blocksFor(tokens: number): number {
    return Math.ceil(tokens / this.#limits.blockTokens);
  }

  #closeStint(slot: number, to: number): void {
    const s = this.#slots;
    if (s.segment[slot] === Number.POSITIVE_INFINITY || s.fromStep[slot]! > to) return;
    (s.stints[slot] ??= []).push({ log: this.#log, segment: s.segment[slot]!, from: s.fromStep[slot]!, to });
    s.segment[slot] = Number.POSITIVE_INFINITY;
  }

  /** What a request has by completed step `step`. */
  #finished(slot: number, cancelled: boolean, t: Millis, step: number): Finished {
    const s = this.#slots;
    const f = new Finished(s.handle(slot), s.spec[slot] as RequestSpec, cancelled, s.arrived[slot]!, t);
    f.scheduled = s.scheduled[slot]!;
    f.firstToken = s.firstToken[slot]!;
    f.preemptions = s.preemptions[slot]!;
    f.cached = s.cached[slot]!;
    f.generated = s.state[slot] === DECODE ? s.genBase[slot]! + step : s.generated[slot]!;
    const segment = s.segment[slot]!;
    f.earlier = s.stints[slot];
    if (segment < Number.POSITIVE_INFINITY && s.fromStep[slot]! <= step)
      f.last = { log: this.#log, segment, from: s.fromStep[slot]!, to: step };
    if (f.generated > 0) f.lastToken = cancelled ? lastTimeOf(f) : t;
    return f;
  }

  /** Forgets the log before the first token of anyone still here. */
  #trim(): void {
    const s = this.#slots;
    let oldest = this.#log.last;
    for (let slot = 0; slot < s.capacity; slot++) {
      if (s.state[slot] === 0) continue;
      const first = s.stints[slot]?.[0]?.segment ?? s.segment[slot]!;
      if (first < oldest) oldest = first;
    }
    this.#log.trim(oldest);
    this.#trimAt = Math.max(1024, 2 * this.#log.size);
  }
}

/** When a cancelled request's last token came: of a handed-over one without any here, when it came here. */
function lastTimeOf(f: Finished): Millis {
  const stint = f.last ?? f.earlier?.at(-1);
  if (!stint) return f.firstToken;
  const one = new Float64Array(stint.to - stint.from + 1);
  stint.log.expand(stint.segment, stint.from, stint.to, one, 0);
  return one[one.length - 1]!;
}
