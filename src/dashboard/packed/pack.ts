/** Records to columns. */
import type { Window } from '../../core/cohort.ts';
import { inCohort } from '../../core/cohort.ts';
import { type Contract, type ContractFor, contractFor } from '../../core/contract.ts';
import { measureOptions } from '../../core/judge.ts';
import { type MeasureOptions, type Metrics, measure } from '../../core/measure.ts';
import { type FinishClass, OUTCOMES } from '../../core/outcome.ts';
import type { RequestRecord } from '../../core/record.ts';
import {
  absenceCode,
  COUNTS,
  IN_COHORT,
  type Mutable,
  NONE8,
  NONE16,
  type Packed,
  RETRIED,
  STREAMED,
  TIMES,
} from './form.ts';

/** Codes of `finish`. Only appended to. */
export const FINISH_CLASSES: readonly FinishClass[] = ['stop', 'length', 'tool', 'filtered', 'aborted', 'other'];

const FLOATS = [...TIMES, ...COUNTS, 'tpot', 'tokens', 'smoothness'] as const;
type FloatName = (typeof FLOATS)[number];
/** Texts kept apart from their rows: a class or reason beyond these is called by the last. */
const MOST_WORDS = 65_000;

/** Collects operations, attempts already folded, in any order. */
export class Packer {
  readonly #window: Window | undefined;
  readonly #contract: Contract;
  readonly #contracts: Readonly<Record<string, Contract>>;
  readonly #of: ContractFor;
  readonly #options = new Map<string, MeasureOptions>();
  readonly #classes = new Words();
  readonly #reasons = new Words();
  #rows = 0;
  #room = 1024;
  #floats = new Map<FloatName, Float64Array>(FLOATS.map((name) => [name, new Float64Array(1024)]));
  #bytes = { outcome: new Uint8Array(1024), finish: new Uint8Array(1024), flags: new Uint8Array(1024) };
  #words = { class: new Uint16Array(1024), reason: new Uint16Array(1024) };
  #absent = new Uint32Array(1024);
  #smooth = false;

  constructor(window: Window | undefined, contract: Contract, contracts: Readonly<Record<string, Contract>> = {}) {
    this.#window = window;
    this.#contract = contract;
    this.#contracts = contracts;
    this.#of = contractFor(contract, contracts);
  }

  add(record: RequestRecord): Metrics {
    const { smoothness } = this.#optionsOf(record.class);
    const m = measure(record, { boundary: 'scheduled', ...(smoothness && { smoothness }) });
    const i = this.#rows++;
    if (i === this.#room) this.#grow();
    const put = (name: FloatName, value: number | undefined): void => {
      (this.#floats.get(name) as Float64Array)[i] = value ?? Number.NaN;
    };
    put('operation', record.operation);
    put('scheduled', record.stamps.scheduled);
    put('lag', m.sendLag);
    put('ttft', m.ttft);
    put('ttfa', m.ttfa);
    put('gap', m.gap);
    put('latency', m.latency);
    put('e2e', m.e2e);
    put('tpot', m.tpot);
    put('tokens', m.n);
    put('produced', m.fewest ?? m.n ?? m.chunks);
    put('chunks', m.chunks);
    put('asked', record.asked.output);
    put('smoothness', m.smoothness);
    this.#smooth ||= m.smoothness !== undefined;
    this.#bytes.outcome[i] = OUTCOMES.indexOf(record.outcome);
    this.#bytes.finish[i] = record.finish === undefined ? NONE8 : FINISH_CLASSES.indexOf(record.finish);
    const inside =
      this.#window === undefined || inCohort(this.#window, record.operation, record.stamps.scheduled, record.session);
    this.#bytes.flags[i] =
      (inside ? IN_COHORT : 0) | (record.streamed ? STREAMED : 0) | (record.attempts > 1 ? RETRIED : 0);
    this.#words.class[i] = this.#classes.of(record.class);
    this.#words.reason[i] = record.reason === '' ? NONE16 : this.#reasons.of(record.reason);
    this.#absent[i] = absenceCode(m.absent);
    return m;
  }

  /** The columns, in order of arrival. */
  finish(latentTime?: (packed: Packed) => number | undefined): Packed {
    const n = this.#rows;
    const at = this.#floats.get('scheduled') as Float64Array;
    const operation = this.#floats.get('operation') as Float64Array;
    const order = Uint32Array.from({ length: n }, (_, i) => i).sort(
      (a, b) => at[a]! - at[b]! || operation[a]! - operation[b]!,
    );
    const sorted = <T extends Float64Array | Uint8Array | Uint16Array | Uint32Array>(from: T): T => {
      const to = new (from.constructor as new (n: number) => T)(n);
      for (let i = 0; i < n; i++) to[i] = from[order[i]!]!;
      return to;
    };
    const floats = Object.fromEntries(
      FLOATS.map((name) => [
        name,
        name === 'smoothness' && !this.#smooth ? new Float64Array(0) : sorted(this.#floats.get(name) as Float64Array),
      ]),
    ) as Record<FloatName, Float64Array>;
    const packed: Mutable<Packed> = {
      rows: n,
      window: this.#window,
      ...floats,
      outcome: sorted(this.#bytes.outcome),
      finish: sorted(this.#bytes.finish),
      flags: sorted(this.#bytes.flags),
      class: sorted(this.#words.class),
      reason: sorted(this.#words.reason),
      absent: sorted(this.#absent),
      classes: this.#classes.list,
      reasons: this.#reasons.list,
      contract: this.#contract,
      contracts: this.#contracts,
      latentTime: undefined,
    };
    packed.latentTime = latentTime?.(packed);
    return packed;
  }

  #optionsOf(name: string): MeasureOptions {
    let options = this.#options.get(name);
    if (!options) {
      options = measureOptions(this.#of(name));
      if (this.#options.size < 1000) this.#options.set(name, options);
    }
    return options;
  }

  #grow(): void {
    this.#room *= 2;
    const grown = <T extends { set(a: T): void; length: number }>(old: T): T => {
      const next = new (old.constructor as new (n: number) => T)(this.#room);
      next.set(old);
      return next;
    };
    for (const name of FLOATS) this.#floats.set(name, grown(this.#floats.get(name) as Float64Array));
    const { outcome, finish, flags } = this.#bytes;
    this.#bytes = { outcome: grown(outcome), finish: grown(finish), flags: grown(flags) };
    this.#words = { class: grown(this.#words.class), reason: grown(this.#words.reason) };
    this.#absent = grown(this.#absent);
  }
}

class Words {
  readonly list: string[] = [];
  readonly #index = new Map<string, number>();
  of(word: string): number {
    let i = this.#index.get(word);
    if (i === undefined) {
      if (this.list.length >= MOST_WORDS) return this.list.length - 1;
      i = this.list.push(word) - 1;
      this.#index.set(word, i);
    }
    return i;
  }
}
