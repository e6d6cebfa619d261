/**
 * An answer as a stream of server-sent events. The observer's calls come from the engine; a token without a fault costs
 * one string, one stamp and one write.
 */
import type { Millis } from '../base/index.ts';
import type { Cancel, Ending, Observer, StreamEvent } from '../core/index.ts';
import type { Asked } from './body.ts';
import { type DrawnFaults, type FaultName, strikeAfter } from './faults.ts';
import { DONE, type Frames } from './frames.ts';
import { Gate, type Held } from './gate.ts';
import type { Ledger, LedgerOutcome } from './ledger.ts';
import type { Outlet } from './outlet.ts';
import { Problem } from './problem.ts';
import type { Service } from './service.ts';

/** Faults that strike at a token. */
const MIDSTREAM: readonly FaultName[] = ['early-eof', 'reset', 'error-in-stream', 'malformed', 'abort'];
const NEVER = Number.POSITIVE_INFINITY;
/** Where in a chunk's JSON a malformed frame is cut: inside the first key or value. */
const CUT = 0.6;

export const QUEUE_FULL =
  '{"error":{"object":"error","message":"The request queue is full.","type":"SERVICE_UNAVAILABLE","param":null,"code":503}}';
export const ENGINE_DEAD = new Problem(
  500,
  'InternalServerError',
  'EngineCore encountered an issue. See stack trace (above) for the root cause.',
);

export class StreamReply implements Observer {
  readonly #service: Service;
  readonly #asked: Asked;
  readonly #faults: DrawnFaults;
  readonly #frames: Frames;
  readonly #outlet: Outlet;
  readonly #ledger: Ledger;
  readonly #done: () => void;
  readonly #gate: Gate | undefined;
  /** Tokens of a choice that a chunk has been made of, and whether its role chunk is out. */
  readonly #chunked: Int32Array;
  readonly #greeted: boolean[];
  readonly #finishes: (string | undefined)[];
  #made = 0;
  #strike = NEVER;
  #stall = NEVER;
  #cancel: Cancel | undefined;
  #over = false;

  /** @param done runs once, when the request has left the engine. */
  constructor(
    service: Service,
    asked: Asked,
    faults: DrawnFaults,
    frames: Frames,
    outlet: Outlet,
    ledger: Ledger,
    done: () => void,
  ) {
    this.#service = service;
    this.#asked = asked;
    this.#faults = faults;
    this.#frames = frames;
    this.#outlet = outlet;
    this.#ledger = ledger;
    this.#done = done;
    this.#chunked = new Int32Array(asked.choices);
    this.#greeted = new Array<boolean>(asked.choices).fill(asked.api !== 'chat');
    this.#finishes = new Array<string | undefined>(asked.choices).fill(undefined);
    const { deciding, stall, buffer, slowHeaders } = faults;
    if (deciding && MIDSTREAM.includes(deciding)) this.#strike = strikeAfter(faults.place, asked.outputTokens);
    if (stall !== undefined) this.#stall = strikeAfter(faults.stallPlace, asked.outputTokens);
    if (stall !== undefined || buffer !== undefined || slowHeaders !== undefined) {
      this.#gate = new Gate(service.clock, buffer, this.#flush);
    }
  }

  /** Sends the head; the engine may then be asked. @param cancel takes the request back from the engine. */
  open(headers: Readonly<Record<string, string>>, submit: () => Cancel): void {
    const { slowHeaders, deciding, roleFirst } = this.#faults;
    if (slowHeaders !== undefined) {
      this.#gate?.shut(this.#service.clock.now() + slowHeaders, () => this.#outlet.head(headers));
    } else {
      this.#outlet.head(headers);
    }
    if (deciding === 'queue-full-in-stream') {
      this.#end(`data: ${QUEUE_FULL}\n\n${this.#faults.noDone ? '' : DONE}`, deciding);
      return;
    }
    if (roleFirst) {
      for (let choice = 0; choice < this.#asked.choices; choice++) this.#greet(choice);
    }
    this.#cancel = submit();
  }

  /** The client went away. */
  abandon(): void {
    if (!this.#outlet.ended) this.#drop('cancelled');
  }

  dispatched(): void {}
  connected(): void {}
  sent(): void {}
  headers(): void {}

  event(t: Millis, event: StreamEvent): void {
    if (this.#over) return;
    const now = this.#service.clock.now();
    const planned = this.#service.served.plannedAt;
    if (planned) this.#service.lateness.add(now - planned(t));
    if (event.server?.queue !== undefined || event.usage?.cachedInput !== undefined) {
      this.#ledger.evidence(perSpeed(event.server?.queue, this.#service.served.speed), event.usage?.cachedInput);
    }
    for (const part of event.outputs) {
      const tokens = part.tokens ?? 1;
      if (this.#made + tokens > this.#strike && this.#struck()) return;
      this.#ledger.made(t, now, part.choice, tokens);
      this.#made += tokens;
      const finish = event.finishes?.find((f) => f.choice === part.choice)?.reason;
      if (finish !== undefined) this.#finishes[part.choice] = this.#reason(finish);
      const from = this.#chunked[part.choice]!;
      const to = this.#ledger.generated[part.choice]!;
      if (finish !== undefined || to - from >= this.#faults.tokensPerChunk) this.#chunk(now, part.choice, from, to);
    }
    if (event.finishes) {
      for (const { choice, reason } of event.finishes) {
        if (this.#finishes[choice] !== undefined) continue;
        // The finish came in an event of its own: so does its chunk.
        this.#finishes[choice] = this.#reason(reason);
        this.#chunk(now, choice, this.#chunked[choice]!, this.#ledger.generated[choice]!);
      }
    }
    if (event.error) this.#end(`data: ${problemOf(event.error).json()}\n\n${DONE}`, 'failed');
  }

  ended(_t: Millis, ending: Ending): void {
    if (this.#over) return;
    this.#cancel = undefined;
    switch (ending.kind) {
      case 'closed':
        this.#end(this.#tail(), this.#faults.deciding ?? 'completed');
        return;
      case 'refused':
        this.#end(`data: ${QUEUE_FULL}\n\n${DONE}`, 'refused');
        return;
      case 'http-error':
      case 'failed':
        this.#end(`data: ${ENGINE_DEAD.json()}\n\n${DONE}`, 'failed');
    }
  }

  #reason(engines: string): string {
    return this.#asked.endToken && engines === 'length' ? 'stop' : engines;
  }

  #tail(): string {
    const usage = this.#asked.includeUsage ? this.#frames.usage(this.#made) : '';
    return usage + (this.#faults.noDone ? '' : DONE);
  }

  /** One chunk of a choice: its tokens since the last, and its finish reason when it has one. */
  #chunk(now: Millis, choice: number, from: number, to: number): void {
    const finish = this.#finishes[choice];
    this.#chunked[choice] = to;
    const frame = this.#frames.tokens(choice, from, to, finish, this.#made);
    const greeting = this.#greeted[choice] ? '' : this.#frames.role(choice);
    this.#greeted[choice] = true;
    const shown = to - from > (this.#asked.endToken && to === this.#asked.outputTokens ? 1 : 0);
    if (this.#made > this.#stall) {
      this.#stall = NEVER;
      this.#gate?.shut(now + (this.#faults.stall ?? 0));
    }
    if (this.#gate) {
      if (greeting !== '') this.#gate.push({ text: greeting, choice, tokens: 0, shown: false });
      this.#gate.push({ text: frame, choice, tokens: to - from, shown });
      return;
    }
    // Stamped again, just before the write: making the chunk, and those of other choices before it, took time.
    if (to > from && this.#service.stamps) this.#ledger.sent(this.#service.clock.now(), choice, to - from, shown);
    if (greeting === '') this.#outlet.write(frame);
    else this.#outlet.writeTogether([greeting, frame]);
  }

  #greet(choice: number): void {
    const text = this.#greeted[choice] ? '' : this.#frames.role(choice);
    this.#greeted[choice] = true;
    if (text === '') return;
    if (this.#gate) this.#gate.push({ text, choice, tokens: 0, shown: false });
    else this.#outlet.write(text);
  }

  #flush = (held: readonly Held[], together: boolean): void => {
    if (together) {
      const now = this.#service.clock.now();
      for (const h of held) if (h.tokens > 0) this.#ledger.sent(now, h.choice, h.tokens, h.shown);
      this.#outlet.write(held.map((h) => h.text).join(''));
      return;
    }
    for (const h of held) {
      if (h.tokens > 0) this.#ledger.sent(this.#service.clock.now(), h.choice, h.tokens, h.shown);
      this.#outlet.write(h.text);
    }
  };

  /** The fault that decides strikes. True when the stream is over. */
  #struck(): boolean {
    this.#strike = NEVER;
    const fault = this.#faults.deciding as FaultName;
    switch (fault) {
      case 'malformed': {
        const frame = this.#frames.tokens(0, this.#chunked[0]!, this.#chunked[0]! + 1, undefined, this.#made);
        const text = `${frame.slice(0, Math.floor(frame.length * CUT))}\n\n`;
        if (this.#gate) this.#gate.push({ text, choice: 0, tokens: 0, shown: false });
        else this.#outlet.write(text);
        return false; // and the stream goes on
      }
      case 'reset':
        this.#drop(fault);
        this.#outlet.reset();
        return true;
      case 'error-in-stream':
        this.#end(`data: ${ENGINE_DEAD.json()}\n\n${this.#faults.noDone ? '' : DONE}`, fault);
        return true;
      case 'abort': {
        let frames = '';
        for (let choice = 0; choice < this.#asked.choices; choice++) {
          if (this.#finishes[choice] !== undefined) continue;
          const at = this.#chunked[choice]!;
          this.#finishes[choice] = 'abort';
          if (!this.#greeted[choice]) frames += this.#frames.role(choice);
          frames += this.#frames.tokens(choice, at, at, 'abort', this.#made);
        }
        this.#end(frames + this.#tail(), fault);
        return true;
      }
      default:
        this.#end('', fault); // early-eof
        return true;
    }
  }

  /** Ends the stream cleanly, `text` last, once the gate has let everything before it out. */
  #end(text: string, outcome: LedgerOutcome): void {
    this.#leaveEngine();
    const end = (): void => {
      this.#ledger.close(this.#service.clock.now(), outcome, this.#finishes);
      this.#outlet.end(text);
    };
    if (this.#gate) this.#gate.finish(end);
    else end();
  }

  /** Ends the books at once: the connection is gone, or about to be. */
  #drop(outcome: LedgerOutcome): void {
    this.#leaveEngine();
    this.#gate?.close();
    this.#ledger.close(this.#service.clock.now(), outcome, outcome === 'cancelled' ? [] : this.#finishes);
  }

  #leaveEngine(): void {
    if (this.#over) return;
    this.#over = true;
    this.#cancel?.();
    this.#cancel = undefined;
    this.#done();
  }
}

export function perSpeed(t: Millis | undefined, speed: number): Millis | undefined {
  return t === undefined ? undefined : t / speed;
}

export function problemOf(error: { message: string; type?: string; code?: number }): Problem {
  return new Problem(error.code ?? 500, error.type ?? 'InternalServerError', error.message);
}
