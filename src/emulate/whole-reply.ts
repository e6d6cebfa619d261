/** An answer in one JSON body: the engine works as for a stream, and nothing leaves before it is done. */
import type { Millis } from '../base/index.ts';
import type { Cancel, Ending, Observer, StreamEvent } from '../core/index.ts';
import type { Asked } from './body.ts';
import { type DrawnFaults, strikeAfter } from './faults.ts';
import { type AnswerName, wholeAnswer } from './frames.ts';
import type { Ledger, LedgerOutcome } from './ledger.ts';
import type { Outlet } from './outlet.ts';
import { Problem } from './problem.ts';
import type { Service } from './service.ts';
import { ENGINE_DEAD, perSpeed, problemOf, QUEUE_FULL } from './stream-reply.ts';

/** How a body is broken: cut off, or with a colon too few. */
const BROKEN: Readonly<Record<string, (body: string) => string>> = {
  'early-eof': (body) => body.slice(0, body.length >> 1),
  malformed: (body) => body.replace(':', ''),
};
const JSON_TYPE = 'application/json';

export class WholeReply implements Observer {
  readonly #service: Service;
  readonly #asked: Asked;
  readonly #faults: DrawnFaults;
  readonly #name: AnswerName;
  readonly #start: number;
  readonly #outlet: Outlet;
  readonly #ledger: Ledger;
  readonly #done: () => void;
  readonly #finishes: (string | undefined)[];
  #headers: Readonly<Record<string, string>> = {};
  #strike = Number.POSITIVE_INFINITY;
  #made = 0;
  #cancel: Cancel | undefined;
  #delayed: Cancel | undefined;
  #over = false;

  constructor(
    service: Service,
    asked: Asked,
    faults: DrawnFaults,
    name: AnswerName,
    start: number,
    outlet: Outlet,
    ledger: Ledger,
    done: () => void,
  ) {
    this.#service = service;
    this.#asked = asked;
    this.#faults = faults;
    this.#name = name;
    this.#start = start;
    this.#outlet = outlet;
    this.#ledger = ledger;
    this.#done = done;
    this.#finishes = new Array<string | undefined>(asked.choices).fill(undefined);
    if (faults.deciding === 'abort' || faults.deciding === 'reset') {
      this.#strike = strikeAfter(faults.place, asked.outputTokens);
    }
  }

  open(headers: Readonly<Record<string, string>>, submit: () => Cancel): void {
    this.#headers = headers;
    if (this.#faults.deciding === 'queue-full-in-stream') {
      this.#send(200, QUEUE_FULL, 'queue-full-in-stream');
      return;
    }
    this.#cancel = submit();
  }

  abandon(): void {
    if (this.#outlet.ended) return;
    this.#leaveEngine();
    this.#delayed?.();
    this.#ledger.close(this.#service.clock.now(), 'cancelled', []);
  }

  dispatched(): void {}
  connected(): void {}
  sent(): void {}
  headers(): void {}

  event(t: Millis, event: StreamEvent): void {
    if (this.#over) return;
    const now = this.#service.clock.now();
    if (event.server?.queue !== undefined || event.usage?.cachedInput !== undefined) {
      this.#ledger.evidence(perSpeed(event.server?.queue, this.#service.served.speed), event.usage?.cachedInput);
    }
    for (const part of event.outputs) {
      const tokens = part.tokens ?? 1;
      if (this.#made + tokens > this.#strike) {
        this.#struck();
        return;
      }
      this.#made += tokens;
      this.#ledger.made(t, now, part.choice, tokens);
    }
    for (const { choice, reason } of event.finishes ?? []) {
      this.#finishes[choice] = this.#asked.endToken && reason === 'length' ? 'stop' : reason;
    }
    if (event.error) {
      const problem = problemOf(event.error);
      this.#send(problem.status >= 400 && problem.status < 600 ? problem.status : 500, problem.json(), 'failed');
    }
  }

  ended(_t: Millis, ending: Ending): void {
    if (this.#over) return;
    this.#cancel = undefined;
    if (ending.kind === 'refused') {
      this.#send(503, new Problem(503, 'ServiceUnavailable', 'The request queue is full.').json(), 'refused');
      return;
    }
    if (ending.kind !== 'closed') {
      this.#send(500, ENGINE_DEAD.json(), 'failed');
      return;
    }
    const { deciding } = this.#faults;
    if (deciding === 'error-in-stream') {
      this.#send(200, ENGINE_DEAD.json(), deciding);
      return;
    }
    const body = this.#answer();
    this.#send(200, BROKEN[deciding ?? '']?.(body) ?? body, deciding ?? 'completed');
  }

  #answer(): string {
    const finishes = this.#finishes.map((f) => f ?? 'abort');
    const tokens = [...this.#ledger.generated];
    return wholeAnswer(this.#asked, this.#name, this.#start, tokens, finishes, !this.#faults.noUsage);
  }

  #struck(): void {
    if (this.#faults.deciding === 'abort') {
      this.#send(200, this.#answer(), 'abort');
      return;
    }
    this.#leaveEngine();
    this.#ledger.close(this.#service.clock.now(), 'reset', this.#finishes);
    this.#outlet.reset();
  }

  /** Sends the body, later where a fault says so. */
  #send(status: number, body: string, outcome: LedgerOutcome): void {
    this.#leaveEngine();
    const send = (): void => {
      const now = this.#service.clock.now();
      for (let choice = 0; choice < this.#asked.choices; choice++) {
        const tokens = this.#ledger.generated[choice]!;
        if (tokens > 0) this.#ledger.sent(now, choice, tokens, tokens > (this.#asked.endToken ? 1 : 0));
      }
      this.#ledger.close(now, outcome, this.#finishes);
      this.#outlet.whole(status, body, { ...this.#headers, 'content-type': JSON_TYPE });
    };
    const delay = (this.#faults.stall ?? 0) + (this.#faults.slowHeaders ?? 0);
    if (delay === 0) send();
    else this.#delayed = this.#service.clock.at(this.#service.clock.now() + delay, send);
  }

  #leaveEngine(): void {
    if (this.#over) return;
    this.#over = true;
    this.#cancel?.();
    this.#cancel = undefined;
    this.#done();
  }
}
