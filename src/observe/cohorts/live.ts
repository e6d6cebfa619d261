/**
 * Live cohorts: operations by the window of their arrival, final at completion or deadline. What a window says changes
 * until it is final and never afterwards.
 */
import type { Millis, Seconds } from '../../base/units.ts';
import type { Contract, ContractFor } from '../../core/contract.ts';
import { CohortFolder } from './cohort.ts';
import type { Arrival, FinalOperation, InFlight, OperationListener } from './operation.ts';
import type { LiveCohort, LiveContract, LiveRecords, LiveSnapshot, LiveUpstream, LiveWindow } from './snapshot.ts';

export interface LiveOptions {
  readonly boundary: LiveSnapshot['boundary'];
  readonly instance: string;
  /** Wall time of the clock's epoch, ms since 1970. */
  readonly epochWall: Millis;
  readonly contractFor: ContractFor;
  /** Length of a window, default 10 s. */
  readonly window?: Millis;
  /** Windows kept beyond those that are not final, default 90. */
  readonly keep?: number;
}

/** What a snapshot is given beside the cohorts. */
export interface LivePresent {
  readonly now: Millis;
  readonly inFlight: Iterable<InFlight>;
  readonly queued: number;
  readonly upstreams: readonly LiveUpstream[];
  readonly records: LiveRecords;
}

export interface SnapshotOptions {
  /** The last so many windows; all kept when absent. */
  readonly windows?: number;
  /** With the sketches, so that several proxies can be merged. */
  readonly sketches?: boolean;
}

class Span {
  readonly start: Millis;
  readonly classes = new Map<string, CohortFolder>();
  constructor(start: Millis) {
    this.start = start;
  }
  get pending(): number {
    let sum = 0;
    for (const folder of this.classes.values()) sum += folder.pending;
    return sum;
  }
}

export class LiveCohorts implements OperationListener {
  readonly #options: LiveOptions;
  readonly #length: Millis;
  readonly #keep: number;
  /** By their number, ascending. */
  readonly #spans = new Map<number, Span>();
  readonly #total = new Map<string, CohortFolder>();

  constructor(options: LiveOptions) {
    this.#options = options;
    this.#length = options.window ?? 10_000;
    this.#keep = options.keep ?? 90;
  }

  arrived(arrival: Arrival): void {
    folderOf(this.#total, arrival.class).arrived();
    folderOf(this.#spanAt(arrival.at).classes, arrival.class).arrived();
  }

  final(operation: FinalOperation): void {
    folderOf(this.#total, operation.class).final(operation);
    folderOf(this.#spanAt(operation.at).classes, operation.class).final(operation);
  }

  snapshot(present: LivePresent, options: SnapshotOptions = {}): LiveSnapshot {
    const { now } = present;
    const sketches = options.sketches ?? false;
    const wall = (t: Millis): Seconds => Math.round(this.#options.epochWall + t) / 1000;
    this.#spanAt(now); // the window of now is there also when nothing arrived in it
    this.#forget();
    const waits = waitsOf(present.inFlight, now, this.#length);
    const elapsed = now / 1000;
    const all = [...this.#spans.values()].sort((a, b) => a.start - b.start);
    const chosen = all.slice(Math.max(0, all.length - (options.windows ?? all.length)));
    return {
      schema: 'goodput.live/1',
      boundary: this.#options.boundary,
      instance: this.#options.instance,
      time_s: wall(now),
      started_s: wall(0),
      window_s: this.#length / 1000,
      contracts: this.#contracts(),
      now: {
        in_flight: waits.inFlight,
        waiting: waits.waiting,
        queued: present.queued,
        oldest_waiting_ms: waits.oldest.get('') ?? null,
      },
      total: sumOf(this.#total).read(elapsed, waits.oldest.get(''), sketches),
      classes: sorted(this.#total).map((f) => f.read(elapsed, waits.oldest.get(f.class), sketches)),
      windows: chosen.map((span) => this.#window(span, now, waits, sketches, wall)),
      upstreams: present.upstreams,
      records: present.records,
    };
  }

  #window(span: Span, now: Millis, waits: Waits, sketches: boolean, wall: (t: Millis) => Seconds): LiveWindow {
    const end = span.start + this.#length;
    const seconds = (Math.min(now, end) - Math.max(0, span.start)) / 1000;
    const oldest = waits.byWindow.get(this.#number(span.start));
    const read = (folder: CohortFolder): LiveCohort => folder.read(seconds, oldest?.get(folder.class), sketches);
    return {
      start_s: wall(span.start),
      end_s: wall(end),
      state: now < end ? 'open' : span.pending > 0 ? 'settling' : 'final',
      all: read(sumOf(span.classes)),
      classes: sorted(span.classes).map(read),
    };
  }

  #contracts(): Record<string, LiveContract> {
    const names = [...this.#total.keys()].sort();
    const of = (name: string): [string, LiveContract] => [name, contractText(this.#options.contractFor(name))];
    return Object.fromEntries((names.length > 0 ? names : ['default']).map(of));
  }

  #number(t: Millis): number {
    return Math.floor(t / this.#length);
  }

  #spanAt(t: Millis): Span {
    const number = this.#number(t);
    let span = this.#spans.get(number);
    if (span === undefined) {
      span = new Span(number * this.#length);
      this.#spans.set(number, span);
      this.#forget();
    }
    return span;
  }

  /** Windows beyond those kept go, once they are final. */
  #forget(): void {
    let over = this.#spans.size - this.#keep;
    for (const [number, span] of this.#spans) {
      if (over <= 0) return;
      if (span.pending > 0) continue;
      this.#spans.delete(number);
      over--;
    }
  }
}

interface Waits {
  readonly inFlight: number;
  readonly waiting: number;
  /** Age of the oldest by class; '' of all. */
  readonly oldest: Map<string, Millis>;
  readonly byWindow: Map<number, Map<string, Millis>>;
}

function waitsOf(all: Iterable<InFlight>, now: Millis, length: Millis): Waits {
  const oldest = new Map<string, Millis>();
  const byWindow = new Map<number, Map<string, Millis>>();
  let inFlight = 0;
  let waiting = 0;
  const raise = (map: Map<string, Millis>, name: string, age: Millis): void => {
    if (age > (map.get(name) ?? -1)) map.set(name, age);
  };
  for (const operation of all) {
    inFlight++;
    if (operation.hasOutput) continue;
    waiting++;
    const age = Math.round((now - operation.at) * 1000) / 1000;
    const number = Math.floor(operation.at / length);
    let own = byWindow.get(number);
    if (own === undefined) byWindow.set(number, (own = new Map()));
    for (const name of ['', operation.class]) {
      raise(oldest, name, age);
      raise(own, name, age);
    }
  }
  return { inFlight, waiting, oldest, byWindow };
}

function folderOf(map: Map<string, CohortFolder>, name: string): CohortFolder {
  let folder = map.get(name);
  if (folder === undefined) map.set(name, (folder = new CohortFolder(name)));
  return folder;
}

function sumOf(map: ReadonlyMap<string, CohortFolder>): CohortFolder {
  const sum = new CohortFolder('');
  for (const folder of map.values()) sum.merge(folder);
  return sum;
}

function sorted(map: ReadonlyMap<string, CohortFolder>): CohortFolder[] {
  return [...map.values()].sort((a, b) => (a.class < b.class ? -1 : 1));
}

function contractText(contract: Contract): LiveContract {
  return {
    name: contract.name,
    limits: contract.limits,
    deadline_ms: Number.isFinite(contract.deadline) ? contract.deadline : null,
    attainment: contract.attainment,
  };
}
