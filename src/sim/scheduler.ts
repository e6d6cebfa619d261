/**
 * What goes into a step, as vLLM v1 decides it: running requests first, then the queue in order, within a token budget, a
 * batch size and a KV pool; prompts in chunks; the latest admitted preempted by recomputation when KV runs out.
 */
import type { Millis } from '../base/units.ts';
import { emptyBatch, type StepBatch } from '../model/step.ts';
import type { ReplicaLimits } from './limits.ts';
import type { Sequences } from './sequences.ts';
import { GONE, PREFILL } from './slots.ts';

export class Scheduler {
  readonly #limits: ReplicaLimits;
  readonly #q: Sequences;
  readonly #batch = emptyBatch();
  /** This step's prompt chunks: how many, whose, and of how many tokens. The arrays only grow: emptying them would free them. */
  chunks = 0;
  readonly #chunkSlots: number[] = [];
  readonly #chunkTokens: number[] = [];
  /** The queue's head could not be admitted: later arrivals cannot either until something ends. */
  blocked = false;
  /** The state the next step sees may differ though nothing ended: it preempted, or someone waits whom it has not seen. */
  again = false;
  /** When the last completed step began: under asynchronous scheduling the next one was planned then. */
  #lastBegan: Millis = 0;
  #preempted = false;

  constructor(sequences: Sequences, limits: ReplicaLimits) {
    this.#q = sequences;
    this.#limits = limits;
  }

  /** Steps completed, the last of which began at `t`. */
  began(t: Millis): void {
    this.#lastBegan = t;
  }

  /** Whether a plan from here on needs more than the decodes going on. */
  get isNeeded(): boolean {
    const q = this.#q;
    return q.waitingCount > 0 || q.prefills.length > 0 || q.decoding.blocksNow > q.kv.free;
  }

  /** Chooses the chunks of the step that starts now, preempting for running requests and admitting from the queue. */
  schedule(now: Millis): void {
    this.again = false;
    this.#preempted = false;
    this.#preemptFor(0, -1);
    const budget = this.#continuePrefills();
    this.blocked = this.#preempted;
    this.again = this.#preempted; // it admits nobody: the next one tries again
    if (!this.blocked) this.#admit(budget, now);
  }

  /** Chunks for those whose prompt has begun. @returns the tokens left. */
  #continuePrefills(): number {
    const { maxBatchedTokens, longPrefill } = this.#limits;
    const q = this.#q;
    const s = q.slots;
    let budget = maxBatchedTokens - q.decoding.count;
    for (let i = 0; i < q.prefills.length && budget > 0; i++) {
      const slot = q.prefills[i]!;
      const left = s.target[slot]! - s.computed[slot]!;
      let chunk = longPrefill > 0 && left > longPrefill ? longPrefill : left;
      if (chunk > budget) chunk = budget;
      const need = q.blocksFor(s.computed[slot]! + chunk) - s.blocks[slot]! - s.heldBlocks[slot]!;
      if (need > this.#free) {
        const before = q.decoding.count;
        this.#preemptFor(need, slot);
        if (s.state[slot] !== PREFILL) break; // it was the latest itself
        budget += before - q.decoding.count;
      }
      this.#chunk(slot, chunk, need);
      budget -= chunk;
    }
    return budget;
  }

  #admit(tokens: number, now: Millis): void {
    const { maxSeqs, asyncScheduling } = this.#limits;
    const q = this.#q;
    const s = q.slots;
    let budget = tokens;
    while (q.waitingCount > 0) {
      const slot = q.waiting.head;
      if (s.state[slot] === GONE) {
        q.dropGone();
        continue;
      }
      if (budget <= 0 || q.running >= maxSeqs) {
        this.blocked = true;
        return;
      }
      const planned = this.#plannedAt(now);
      if (asyncScheduling && s.arrived[slot]! > planned) {
        this.again = true; // the planner, a step ahead, has not seen it
        return;
      }
      const taken = s.ready[slot] === 1 ? this.#join(slot, now) : this.#begin(slot, budget, planned);
      if (taken === 0) {
        this.blocked = true;
        return;
      }
      budget -= taken;
    }
    q.dropGone();
  }

  /** Lets the queue's head, whose KV came from elsewhere, decode from this step on. @returns its tokens, 0 if it does not fit. */
  #join(slot: number, now: Millis): number {
    const prompt = this.#q.slots.target[slot]!;
    const next = prompt % this.#limits.blockTokens === 0 ? 1 : 0;
    if (this.#q.blocksFor(prompt) + next > this.#free) return 0;
    this.#q.join(now);
    return 1;
  }

  /** Begins the prompt of the queue's head. @returns the tokens of its first chunk, 0 if it does not fit. */
  #begin(slot: number, budget: number, planned: Millis): number {
    const { longPrefill, chunkedPrefill, prefixBlockTokens, blockTokens, reservePrompt } = this.#limits;
    const q = this.#q;
    const target = q.slots.target[slot]!;
    const hits = q.cachedPrefix(slot);
    const cached = hits * prefixBlockTokens;
    const left = target - cached;
    let chunk = longPrefill > 0 && chunkedPrefill && left > longPrefill ? longPrefill : left;
    if (chunk > budget) {
      if (chunkedPrefill) chunk = budget;
      else if (this.chunks > 0) return 0;
    }
    const need = q.blocksFor(cached + chunk) - cached / blockTokens;
    const room = reservePrompt ? q.blocksFor(target) - cached / blockTokens : need;
    const pinning = hits > 0 ? q.kv.costOfPinning() : 0;
    if (room + pinning > this.#free) return 0;
    q.admit(hits, planned);
    this.#chunk(slot, chunk, need);
    return chunk;
  }

  #chunk(slot: number, tokens: number, blocks: number): void {
    this.#q.takeBlocks(slot, blocks);
    this.#chunkSlots[this.chunks] = slot;
    this.#chunkTokens[this.chunks++] = tokens;
  }

  /** Blocks free once this step's decodes have theirs. */
  get #free(): number {
    return this.#q.kv.free - this.#q.decoding.blocksNow;
  }

  /** Preempts the latest admitted until `need` blocks are free beside the decodes', or `until` itself went. */
  #preemptFor(need: number, until: number): void {
    while (this.#free < need) {
      const victim = this.#q.slots.last;
      this.dropChunk(victim);
      this.#q.preempt(victim);
      this.#preempted = true;
      if (victim === until) break;
    }
  }

  /** When the step that starts now was planned. */
  #plannedAt(now: Millis): Millis {
    return this.#limits.asyncScheduling && this.#q.running > 0 ? this.#lastBegan : now;
  }

  /** Takes a request's chunk out of the step, if it has one. */
  dropChunk(slot: number): void {
    let kept = 0;
    for (let i = 0; i < this.chunks; i++) {
      if (this.#chunkSlots[i] === slot) continue;
      this.#chunkSlots[kept] = this.#chunkSlots[i]!;
      this.#chunkTokens[kept++] = this.#chunkTokens[i]!;
    }
    this.chunks = kept;
  }

  /** The step chosen, for the step model. Valid until the next call. */
  batch(): StepBatch {
    const batch = this.#batch;
    const { slots, decoding } = this.#q;
    let tokens = 0;
    let kv = 0;
    let squares = 0;
    let completes = 0;
    for (let i = 0; i < this.chunks; i++) {
      const slot = this.#chunkSlots[i]!;
      const from = slots.computed[slot]!;
      const to = from + this.#chunkTokens[i]!;
      tokens += to - from;
      kv += to;
      squares += to * to - from * from;
      if (to === slots.target[slot]) completes++;
    }
    batch.decodeSequences = decoding.count;
    batch.decodeTokens = decoding.count;
    batch.decodeKv = decoding.kv + decoding.count;
    batch.prefillSequences = this.chunks;
    batch.prefillTokens = tokens;
    batch.prefillCompletes = completes;
    batch.prefillKv = kv;
    batch.prefillSquares = squares;
    return batch;
  }

  /** The chunks' tokens are computed. Calls `whole` for each prompt that is complete, in order. */
  completeChunks(whole: (slot: number) => void): void {
    const s = this.#q.slots;
    for (let i = 0; i < this.chunks; i++) {
      const slot = this.#chunkSlots[i]!;
      s.computed[slot]! += this.#chunkTokens[i]!;
      if (s.computed[slot]! >= s.target[slot]!) whole(slot);
    }
    this.chunks = 0;
  }
}
