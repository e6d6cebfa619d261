/**
 * Prefill and decode on pools of their own: a prompt is computed in the one, its KV travels over a shared link, and the
 * other decodes it. The first token comes from the prefill pool.
 */
import type { Millis } from '../base/units.ts';
import type { RequestSpec } from '../core/request.ts';
import { type Cluster, type DecodeCluster, Finished, type Gauges, TOO_LONG } from './cluster.ts';
import { SharedLink } from './link.ts';
import { addGauges } from './router.ts';

export interface Transfer {
  /** KV bytes a prompt token. */
  readonly bytesPerToken: number;
  /** Bytes a second, shared by all hand-offs under way. */
  readonly bandwidth: number;
  /** Before the first byte of a hand-off, ms. */
  readonly latency: Millis;
}

/** A request on its way through. */
interface Passage {
  readonly spec: RequestSpec;
  readonly arrived: Millis;
  stage: 'prefill' | 'transfer' | 'decode';
  /** Its handle in the pool it is in. */
  handle: number;
  prefill: Finished | undefined;
}

/**
 * A prefill replica frees a prompt's KV when it is computed (engines hold it until it was fetched; the difference is a
 * transfer's length of occupancy).
 */
export class DisaggregatedCluster implements Cluster {
  readonly #prefill: Cluster;
  readonly #decode: DecodeCluster;
  readonly #transfer: Transfer;
  readonly #link: SharedLink;
  readonly #open = new Map<number, Passage>();
  readonly #inPrefill = new Map<number, number>();
  readonly #inDecode = new Map<number, number>();
  readonly #out: Finished[] = [];
  #next = 1;

  constructor(prefill: Cluster, decode: DecodeCluster, transfer: Transfer) {
    this.#prefill = prefill;
    this.#decode = decode;
    this.#transfer = transfer;
    this.#link = new SharedLink(transfer.bandwidth, transfer.latency);
  }

  fits(spec: RequestSpec): boolean {
    return this.#prefill.fits(onlyPrompt(spec)) && this.#decode.fits(spec);
  }

  offer(spec: RequestSpec, t: Millis): number {
    if (!this.fits(spec)) return TOO_LONG;
    const handle = this.#prefill.offer(onlyPrompt(spec), t);
    if (handle < 0) return handle;
    const id = this.#next++;
    this.#open.set(id, { spec, arrived: t, stage: 'prefill', handle, prefill: undefined });
    this.#inPrefill.set(handle, id);
    return id;
  }

  cancel(id: number, t: Millis): Finished | undefined {
    const p = this.#open.get(id);
    if (!p) return undefined;
    this.#open.delete(id);
    if (p.stage === 'prefill') {
      this.#inPrefill.delete(p.handle);
      return this.#whole(id, p, this.#prefill.cancel(p.handle, t), undefined, t, true);
    }
    if (p.stage === 'transfer') {
      this.#link.drop(id, t);
      return this.#whole(id, p, p.prefill, undefined, t, true);
    }
    this.#inDecode.delete(p.handle);
    return this.#whole(id, p, p.prefill, this.#decode.cancel(p.handle, t), t, true);
  }

  nextAt(): Millis {
    return Math.min(this.#prefill.nextAt(), this.#decode.nextAt(), this.#link.nextAt());
  }

  nextStepAt(): Millis {
    return Math.min(this.#prefill.nextStepAt(), this.#decode.nextStepAt(), this.#link.nextAt());
  }

  advance(to: Millis, out: Finished[]): void {
    // One event at a time, so that what the one pool hands over is known to the other when it plans.
    for (let t = this.nextAt(); t < to; t = this.nextAt()) this.#to(t, out);
    this.#to(to, out);
  }

  #to(t: Millis, out: Finished[]): void {
    const done = this.#out;
    this.#prefill.advance(t, done);
    for (const f of done.splice(0)) {
      const id = this.#inPrefill.get(f.handle) as number;
      const p = this.#open.get(id) as Passage;
      this.#inPrefill.delete(f.handle);
      if (p.spec.outputTokens <= 1) {
        this.#open.delete(id);
        out.push(this.#whole(id, p, f, undefined, f.ended, false));
        continue;
      }
      p.prefill = f;
      p.stage = 'transfer';
      this.#link.begin(id, p.spec.inputTokens * this.#transfer.bytesPerToken, t);
    }
    this.#decode.advance(t, done);
    for (const f of done.splice(0)) {
      const id = this.#inDecode.get(f.handle) as number;
      const p = this.#open.get(id) as Passage;
      this.#inDecode.delete(f.handle);
      this.#open.delete(id);
      out.push(this.#whole(id, p, p.prefill, f, f.ended, false));
    }
    this.#link.advance(t, (id) => {
      const p = this.#open.get(id) as Passage;
      p.stage = 'decode';
      p.handle = this.#decode.offerReady(p.spec, t);
      if (p.handle < 0) throw new Error('internal: the decode pool refused a request it could hold');
      this.#inDecode.set(p.handle, id);
    });
  }

  forEachDecoding(visit: (handle: number, generated: number) => void): void {
    for (const [id, p] of this.#open) if (p.stage !== 'prefill') visit(id, 1);
    this.#decode.forEachDecoding((handle, generated) => {
      const id = this.#inDecode.get(handle);
      if (id !== undefined) visit(id, generated);
    });
  }

  gauges(): Gauges {
    const g = addGauges(this.#prefill.gauges(), this.#decode.gauges());
    let handed = 0;
    for (const p of this.#open.values()) if (p.stage === 'transfer') handed++;
    return { ...g, running: g.running + handed }; // in neither pool, and being served
  }

  /** One request out of what both pools saw of it. */
  #whole(
    id: number,
    p: Passage,
    prefill: Finished | undefined,
    decode: Finished | undefined,
    ended: Millis,
    cancelled: boolean,
  ): Finished {
    const f = new Finished(id, p.spec, cancelled, p.arrived, ended);
    if (prefill) {
      f.scheduled = prefill.scheduled;
      f.firstToken = prefill.firstToken;
      f.preemptions = prefill.preemptions + (decode?.preemptions ?? 0);
      f.cached = prefill.cached;
      f.generated = Math.max(prefill.generated, decode?.generated ?? 0);
      f.lastToken = decode && decode.generated > 1 ? decode.lastToken : prefill.lastToken;
      if (prefill.generated > 0) f.lead = [prefill.firstToken];
    }
    if (decode) {
      f.last = decode.last;
      f.earlier = decode.earlier;
    }
    return f;
  }
}

/** The part of a request a prefill replica sees: its prompt and one token. */
function onlyPrompt(spec: RequestSpec): RequestSpec {
  return spec.outputTokens === 1 ? spec : { ...spec, outputTokens: 1 };
}
