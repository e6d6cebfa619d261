/**
 * The stamps of operations that columns do not hold, for a page that has no server to ask. Binary, little-endian:
 *
 *   'GPSTMP01' · uint32 rows · uint32 0 · float64 operation a row · a column of uint32 each of `EXTRA_STAMPS`
 *
 * in µs since the operation was scheduled, all ones where absent.
 */
import type { STAMPS, Stamps } from '../../core/record.ts';
import type { Packed } from './form.ts';

const MAGIC = 'GPSTMP01';
const ABSENT = 0xffffffff;

/** Beside those that follow from columns. */
export const EXTRA_STAMPS = ['connected', 'sent', 'headers', 'firstEvent'] as const satisfies readonly (keyof Stamps)[];

export interface StampColumns {
  readonly operation: Float64Array;
  /** A column each of `EXTRA_STAMPS`. */
  readonly us: readonly Uint32Array[];
}

export class StampsBuilder {
  readonly #operation: number[] = [];
  readonly #us: readonly number[][] = EXTRA_STAMPS.map(() => []);

  add(operation: number, stamps: Stamps): void {
    this.#operation.push(operation);
    EXTRA_STAMPS.forEach((name, k) => {
      const t = stamps[name];
      const us = t === undefined ? ABSENT : Math.round((t - stamps.scheduled) * 1000);
      (this.#us[k] as number[]).push(us >= 0 && us < ABSENT ? us : ABSENT);
    });
  }

  finish(): StampColumns {
    return { operation: Float64Array.from(this.#operation), us: this.#us.map((c) => Uint32Array.from(c)) };
  }
}

export function encodeStamps({ operation, us }: StampColumns): Uint8Array<ArrayBuffer> {
  const rows = operation.length;
  const bytes = new Uint8Array(16 + 8 * rows + 4 * rows * us.length);
  bytes.set(new TextEncoder().encode(MAGIC));
  new DataView(bytes.buffer).setUint32(8, rows, true);
  new Float64Array(bytes.buffer, 16, rows).set(operation);
  us.forEach((column, k) => void new Uint32Array(bytes.buffer, 16 + 8 * rows + 4 * rows * k, rows).set(column));
  return bytes;
}

/** @throws when the bytes are not this form. */
export function decodeStamps(bytes: ArrayBuffer): StampColumns {
  const view = new DataView(bytes);
  if (bytes.byteLength < 16 || new TextDecoder().decode(new Uint8Array(bytes, 0, 8)) !== MAGIC) {
    throw new Error('the stamps of this run are damaged');
  }
  const rows = view.getUint32(8, true);
  return {
    operation: new Float64Array(bytes, 16, rows),
    us: EXTRA_STAMPS.map((_, k) => new Uint32Array(bytes, 16 + 8 * rows + 4 * rows * k, rows)),
  };
}

/** All stamps of row `i` that are known, ms since the run's epoch. */
export function stampsOf(p: Packed, i: number, extra: StampColumns): Stamps {
  const scheduled = p.scheduled[i]!;
  const found: Partial<Record<(typeof STAMPS)[number], number>> = {};
  const put = (name: (typeof STAMPS)[number], after: number | undefined): void => {
    if (after !== undefined && !Number.isNaN(after)) found[name] = Math.round((scheduled + after) * 1000) / 1000;
  };
  put('dispatched', p.lag[i]);
  const r = extra.operation.indexOf(p.operation[i]!);
  if (r >= 0) {
    EXTRA_STAMPS.forEach((name, k) => {
      const us = extra.us[k]![r]!;
      if (us !== ABSENT) put(name, us / 1000);
    });
  }
  put('firstOutput', p.ttft[i]);
  put('firstAnswer', p.ttfa[i]);
  put('lastOutput', p.latency[i]);
  put('ended', p.e2e[i]);
  return { ...found, scheduled };
}
