/** The books of one request: what the engine made and when (metrics), what was sent and when (stamps). */
import type { Millis } from '../base/index.ts';
import type { Asked } from './body.ts';
import type { DrawnFaults } from './faults.ts';
import { FINISHED_REASONS, type FinishedReason } from './metrics.ts';
import type { Service } from './service.ts';

/** How a request ended, for the stamps file. */
export type LedgerOutcome = 'completed' | 'cancelled' | 'failed' | 'refused' | DrawnFaults['names'][number];

export class Ledger {
  readonly #service: Service;
  readonly #asked: Asked;
  readonly #request: number;
  readonly #id: string;
  readonly #faults: DrawnFaults;
  readonly #received: Millis;
  /** By choice. */
  readonly generated: Int32Array;
  readonly #first: Float64Array;
  readonly #last: Float64Array;
  #queued: Millis = 0;
  #cached = 0;
  #at: Float64Array;
  #tokens: Uint16Array;
  #shown: Uint8Array;
  #choice: Uint16Array;
  #chunks = 0;
  #closed = false;

  constructor(service: Service, asked: Asked, request: number, id: string, received: Millis, faults: DrawnFaults) {
    this.#service = service;
    this.#asked = asked;
    this.#request = request;
    this.#id = id;
    this.#received = received;
    this.#faults = faults;
    this.generated = new Int32Array(asked.choices);
    this.#first = new Float64Array(asked.choices).fill(Number.NaN);
    this.#last = new Float64Array(asked.choices).fill(Number.NaN);
    const room = service.stamps ? 64 : 0;
    this.#at = new Float64Array(room);
    this.#tokens = new Uint16Array(room);
    this.#shown = new Uint8Array(room);
    this.#choice = new Uint16Array(room);
  }

  /** All choices together. */
  get total(): number {
    let sum = 0;
    for (const n of this.generated) sum += n;
    return sum;
  }

  /** The engine made `tokens` of a choice in the step it stamps `step`; it is `now` on the wall. */
  made(step: Millis, now: Millis, choice: number, tokens: number): void {
    const { metrics, served } = this.#service;
    const last = this.#last[choice]!;
    if (Number.isNaN(last)) {
      this.#first[choice] = now;
      metrics.firstToken.observe((now - this.#received) / 1000);
      if (choice === 0) {
        metrics.promptTokens += this.#asked.promptTokens;
        if (!served.tellsSteps) metrics.iteration(step, this.#asked.promptTokens);
      }
    } else {
      metrics.interToken.observe((now - last) / 1000);
    }
    this.#last[choice] = now;
    this.generated[choice]! += tokens;
    metrics.generatedTokens += tokens;
    if (!served.tellsSteps) metrics.iteration(step, tokens);
  }

  /** The engine says how long the request waited for its first schedule, in wall time, and what it found in a cache. */
  evidence(queued: Millis | undefined, cachedTokens: number | undefined): void {
    this.#queued = queued ?? this.#queued;
    if (cachedTokens !== undefined) {
      this.#service.metrics.cachedPromptTokens += cachedTokens - this.#cached;
      this.#cached = cachedTokens;
    }
  }

  /** A chunk with `tokens` was handed to the socket. */
  sent(now: Millis, choice: number, tokens: number, shown: boolean): void {
    if (!this.#service.stamps) return;
    const i = this.#chunks++;
    if (i === this.#at.length) this.#grow();
    this.#at[i] = now;
    this.#tokens[i] = tokens;
    this.#shown[i] = shown ? 1 : 0;
    this.#choice[i] = choice;
  }

  /** The request is over. Only one that the engine finished leaves samples. @param finishes by choice. */
  close(now: Millis, outcome: LedgerOutcome, finishes: readonly (string | undefined)[]): void {
    if (this.#closed) return;
    this.#closed = true;
    for (let choice = 0; choice < finishes.length; choice++) {
      const reason = finishes[choice];
      const first = this.#first[choice] ?? Number.NaN;
      if (reason === undefined || Number.isNaN(first)) continue;
      const last = this.#last[choice]!;
      const queue = Math.min(this.#queued, first - this.#received);
      this.#service.metrics.finished({
        reason: (FINISHED_REASONS as readonly string[]).includes(reason) ? (reason as FinishedReason) : 'stop',
        promptTokens: this.#asked.promptTokens,
        cachedTokens: this.#cached,
        generated: this.generated[choice]!,
        maxTokens: this.#asked.maxTokens,
        choices: this.#asked.choices,
        e2e: (last - this.#received) / 1000,
        queue: queue / 1000,
        prefill: (first - this.#received - queue) / 1000,
        decode: (last - first) / 1000,
      });
    }
    const n = this.#chunks;
    this.#service.stamps?.add({
      id: this.#id,
      request: this.#request,
      received: this.#received,
      ended: now,
      at: this.#at.subarray(0, n),
      tokens: this.#tokens.subarray(0, n),
      shown: this.#shown.subarray(0, n),
      choice: this.#choice.subarray(0, n),
      choices: this.#asked.choices,
      faults: this.#faults.names,
      outcome,
      promptTokens: this.#asked.promptTokens,
    });
  }

  #grow(): void {
    const size = 2 * this.#at.length;
    const grown = <T extends { set(a: T): void }>(next: T, old: T): T => {
      next.set(old);
      return next;
    };
    this.#at = grown(new Float64Array(size), this.#at);
    this.#tokens = grown(new Uint16Array(size), this.#tokens);
    this.#shown = grown(new Uint8Array(size), this.#shown);
    this.#choice = grown(new Uint16Array(size), this.#choice);
  }
}
