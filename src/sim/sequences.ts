/**
 * The requests of one replica and the KV each holds, through their states: waiting, prompt being computed, decoding; back
 * to waiting when preempted. Who moves when is the scheduler's.
 */
import type { Millis } from '../base/units.ts';
import type { RequestSpec } from '../core/request.ts';
import { Finished } from './cluster.ts';
import { Decoding } from './decoding.ts';
import { KvPool } from './kv-pool.ts';
import type { ReplicaLimits } from './limits.ts';
import { WaitQueue } from './queues.ts';
import { DECODE, FREE, GONE, PREFILL, Slots, WAITING } from './slots.ts';
import { TokenLog } from './token-log.ts';

export class Sequences {
  readonly slots = new Slots();
  readonly waiting = new WaitQueue();
  readonly decoding: Decoding;
  readonly kv: KvPool;
  /** When tokens came: one entry a run of steps. */
  readonly log = new TokenLog();
  /** Those with prompt left to compute, in order of admission. */
  readonly prefills: number[] = [];
  readonly #limits: ReplicaLimits;
  readonly #blockTokens: number;
  /** Requests that wait; the queue may hold cancelled ones besides. */
  waitingCount = 0;
  preemptions = 0;
  promptTokens = 0;
  generationTokens = 0;
  prefixQueries = 0;
  prefixHits = 0;
  #trimAt = 1024;

  constructor(limits: ReplicaLimits) {
    this.#limits = limits;
    this.#blockTokens = limits.blockTokens;
    this.kv = new KvPool(limits.kvBlocks, limits.prefixBlockTokens / limits.blockTokens);
    this.decoding = new Decoding(this.slots, limits.blockTokens);
  }

  /** Sequences in the batch. */
  get running(): number {
    return this.decoding.count + this.prefills.length;
  }

  blocksFor(tokens: number): number {
    return Math.ceil(tokens / this.#blockTokens);
  }

  wait(spec: RequestSpec, t: Millis): number {
    const slot = this.slots.open(spec, t);
    this.waiting.push(slot);
    this.waitingCount++;
    return slot;
  }

  /** Leading prefix blocks found in the cache; at least one token is always computed. */
  cachedPrefix(slot: number): number {
    const hashes = this.slots.spec[slot]!.prefixBlocks;
    if (!this.#limits.prefixCaching || !hashes || hashes.length === 0) return 0;
    return this.kv.match(hashes, Math.floor((this.slots.target[slot]! - 1) / this.#limits.prefixBlockTokens));
  }

  /** The queue's head begins its prompt, after the `hits` blocks `cachedPrefix` found. @param planned when that was decided. */
  admit(hits: number, planned: Millis): void {
    const s = this.slots;
    const slot = this.#next();
    s.state[slot] = PREFILL;
    s.append(slot);
    this.prefills.push(slot);
    const cached = hits * this.#limits.prefixBlockTokens;
    s.computed[slot] = cached;
    if (Number.isNaN(s.scheduled[slot]!)) {
      s.scheduled[slot] = Math.max(s.arrived[slot]!, planned);
      s.cached[slot] = cached;
      if (this.#limits.prefixCaching) {
        this.prefixQueries += s.target[slot]!;
        this.prefixHits += cached;
      }
    }
    if (hits > 0) {
      s.held[slot] = this.kv.pin();
      s.heldBlocks[slot] = hits * this.kv.perHash;
    }
  }

  /** The queue's head, whose KV came from elsewhere with its first token, decodes from the next step on. */
  join(now: Millis): void {
    const s = this.slots;
    const slot = this.#next();
    const prompt = s.target[slot]!;
    this.kv.take(this.blocksFor(prompt));
    s.ready[slot] = 0;
    s.scheduled[slot] = now;
    s.firstToken[slot] = s.arrived[slot]!;
    s.append(slot);
    s.segment[slot] = this.log.last + 1;
    s.fromStep[slot] = this.decoding.step + 1;
    this.decoding.start(slot, prompt, 1);
  }

  #next(): number {
    this.waitingCount--;
    return this.waiting.pop();
  }

  /** Cancelled ones at the head of the queue go. */
  dropGone(): void {
    const { waiting, slots } = this;
    while (waiting.size > 0 && slots.state[waiting.head] === GONE) slots.close(waiting.pop());
  }

  takeBlocks(slot: number, blocks: number): void {
    this.kv.take(blocks);
    this.slots.blocks[slot]! += blocks;
  }

  /** The prompt (after a preemption: all before) is computed, and gave a token. @returns whether that was the last. */
  prefilled(slot: number, now: Millis): boolean {
    const s = this.slots;
    this.leavePrefill(slot);
    if (this.#limits.prefixCaching) this.#keepPrefix(slot);
    const generated = s.generated[slot]! + 1;
    this.generationTokens++;
    s.generated[slot] = generated;
    s.segment[slot] = this.log.last;
    s.fromStep[slot] = this.decoding.step;
    if (generated === 1) {
      s.firstToken[slot] = now;
      this.promptTokens += s.target[slot]!;
    }
    if (generated >= s.output[slot]!) return true;
    this.decoding.start(slot, s.computed[slot]!, generated);
    return false;
  }

  /** The prompt's whole prefix blocks become cached, as far as they are not. */
  #keepPrefix(slot: number): void {
    const s = this.slots;
    const spec = s.spec[slot]!;
    const hashes = spec.prefixBlocks;
    if (!hashes) return;
    const whole = Math.min(hashes.length, Math.floor(Math.max(1, spec.inputTokens) / this.#limits.prefixBlockTokens));
    const from = s.heldBlocks[slot]! / this.kv.perHash;
    if (from >= whole) return;
    const before = s.held[slot];
    const held = this.kv.adopt(hashes, from, whole, before);
    if (!held || held === before) return;
    s.held[slot] = held;
    s.heldBlocks[slot]! += held.blocks * this.kv.perHash;
    s.blocks[slot]! -= held.blocks * this.kv.perHash;
  }

  leavePrefill(slot: number): void {
    const list = this.prefills;
    const last = list.length - 1;
    for (let i = list.indexOf(slot); i < last; i++) list[i] = list[i + 1]!;
    list.pop();
  }

  #leaveDecode(slot: number): void {
    this.slots.blocks[slot] = this.blocksFor(this.decoding.leave(slot)) - this.slots.heldBlocks[slot]!;
  }

  /** Back to the head of the queue; what it had computed is lost, its tokens are kept. */
  preempt(slot: number): void {
    const s = this.slots;
    if (s.aborted[slot] === 1) throw new Error('internal: a cancelled request was preempted');
    if (s.state[slot] === DECODE) {
      s.generated[slot] = this.decoding.generated(slot);
      this.#closeStint(slot);
      this.#leaveDecode(slot);
      s.target[slot] = Math.max(1, s.spec[slot]!.inputTokens) + s.generated[slot]!;
    } else this.leavePrefill(slot);
    this.#releaseKv(slot);
    s.remove(slot);
    s.computed[slot] = 0;
    s.preemptions[slot]!++;
    this.preemptions++;
    s.state[slot] = WAITING;
    this.waiting.pushFront(slot);
    this.waitingCount++;
  }

  /** A running one is over. */
  leave(slot: number): void {
    const s = this.slots;
    if (s.state[slot] === DECODE) this.#leaveDecode(slot);
    this.#releaseKv(slot);
    s.remove(slot);
    s.close(slot);
  }

  #releaseKv(slot: number): void {
    const s = this.slots;
    this.kv.release(s.blocks[slot]!);
    s.blocks[slot] = 0;
    const held = s.held[slot];
    if (!held) return;
    this.kv.unpin(held);
    s.held[slot] = undefined;
    s.heldBlocks[slot] = 0;
  }

  #closeStint(slot: number): void {
    const s = this.slots;
    const to = this.decoding.step;
    if (s.segment[slot] === Number.POSITIVE_INFINITY || s.fromStep[slot]! > to) return;
    (s.stints[slot] ??= []).push({ log: this.log, segment: s.segment[slot]!, from: s.fromStep[slot]!, to });
    s.segment[slot] = Number.POSITIVE_INFINITY;
  }

  /** What a request has by completed step `step`, at `t`. */
  finished(slot: number, cancelled: boolean, t: Millis, step: number): Finished {
    const s = this.slots;
    const f = new Finished(s.handle(slot), s.spec[slot] as RequestSpec, cancelled, s.arrived[slot]!, t);
    f.scheduled = s.scheduled[slot]!;
    f.firstToken = s.firstToken[slot]!;
    f.preemptions = s.preemptions[slot]!;
    f.cached = s.cached[slot]!;
    f.generated = s.state[slot] === DECODE ? this.decoding.generated(slot, step) : s.generated[slot]!;
    const segment = s.segment[slot]!;
    f.earlier = s.stints[slot];
    if (segment < Number.POSITIVE_INFINITY && s.fromStep[slot]! <= step)
      f.last = { log: this.log, segment, from: s.fromStep[slot]!, to: step };
    if (f.generated > 0) f.lastToken = cancelled ? lastTimeOf(f) : t;
    return f;
  }

  /** Forgets the log before the first token of anyone still here, now and then. */
  trimLog(): void {
    if (this.log.size <= this.#trimAt) return;
    const s = this.slots;
    let oldest = this.log.last;
    for (let slot = 0; slot < s.capacity; slot++) {
      if (s.state[slot] === FREE) continue;
      const first = s.stints[slot]?.[0]?.segment ?? s.segment[slot]!;
      if (first < oldest) oldest = first;
    }
    this.log.trim(oldest);
    this.#trimAt = Math.max(1024, 2 * this.log.size);
  }
}

/** When a cancelled request's last token came: of a handed-over one without any here, when it came here. */
function lastTimeOf(f: Finished): Millis {
  const stint = f.last ?? f.earlier?.at(-1);
  if (!stint) return f.firstToken;
  const times = new Float64Array(stint.to - stint.from + 1);
  stint.log.expand(stint.segment, stint.from, stint.to, times, 0);
  return times[times.length - 1]!;
}
