/**
 * A run's operations as columns: what a page needs to judge and draw them, in a few dozen bytes each. Rows stand in order
 * of arrival (then of operation). The binary form is
 *
 *   'GPCOLS01' · uint32 length of the header · the header as JSON, padded with spaces to 8 bytes · the columns
 *
 * little-endian, each column at an offset that is a multiple of 8. Pure: the server writes it, the page reads it.
 */
import type { Millis } from '../../base/units.ts';
import type { Window } from '../../core/cohort.ts';
import { type Contract, LIMIT_NAMES, type LimitName } from '../../core/contract.ts';
import type { Absence } from '../../core/measure.ts';

export const PACKED_SCHEMA = 'goodput.packed/1';
export const MAGIC = 'GPCOLS01';

/** Codes of `absent`, 4 bits a limit: 0 is present (or absent without a reason), else 1 + the index here. Only appended to. */
export const ABSENCES: readonly Absence[] = [
  'no-output',
  'no-answer',
  'not-ended',
  'not-streamed',
  'one-token',
  'one-chunk',
  'one-receipt',
  'unknown-tokens',
  'no-limit',
];

/** Bits of `flags`. */
export const IN_COHORT = 1;
export const STREAMED = 2;
export const RETRIED = 4;

/** Durations and stamps, in µs on the wire and ms in memory; NaN where absent. `scheduled` is since the run's epoch. */
export const TIMES = ['scheduled', 'lag', 'ttft', 'ttfa', 'gap', 'latency', 'e2e'] as const;
export type TimeName = (typeof TIMES)[number];
/** Whole numbers. */
export const COUNTS = ['operation', 'produced', 'chunks', 'asked'] as const;
export type CountName = (typeof COUNTS)[number];
/** Codes and bit sets. */
export const CODES = { outcome: 'u8', finish: 'u8', flags: 'u8', class: 'u16', reason: 'u16', absent: 'u32' } as const;

/** No reason, no finish told. */
export const NONE16 = 0xffff;
export const NONE8 = 0xff;
const ABSENT32 = 0xffffffff;

/** The operations of a run. All from `scheduled`; what the boundary `dispatched` makes of them is a subtraction of `lag`. */
export interface Packed extends Readonly<Record<TimeName, Float64Array>>, Readonly<Record<CountName, Float64Array>> {
  readonly rows: number;
  /** The cohort's window; undefined where none is defined, and then all rows are the cohort. */
  readonly window: Window | undefined;
  /** Mean time of the tokens after the first, ms; NaN where undefined. */
  readonly tpot: Float64Array;
  /** Streamed tokens; NaN where unknown. */
  readonly tokens: Float64Array;
  /** Under the schedule of the contracts below; empty where no class has one. */
  readonly smoothness: Float64Array;
  /** Index into `OUTCOMES`. */
  readonly outcome: Uint8Array;
  /** Index into `FINISH_CLASSES`, `NONE8` where none was told. */
  readonly finish: Uint8Array;
  readonly flags: Uint8Array;
  /** Index into `classes`. */
  readonly class: Uint16Array;
  /** Index into `reasons`, `NONE16` where completed. */
  readonly reason: Uint16Array;
  /** 4 bits a limit, in the order of `LIMIT_NAMES`. */
  readonly absent: Uint32Array;
  readonly classes: readonly string[];
  readonly reasons: readonly string[];
  /** What the run was measured and judged under, and the classes that had their own. */
  readonly contract: Contract;
  readonly contracts: Readonly<Record<string, Contract>>;
  /** Autocorrelation time of the series behind the outcomes, under those contracts; undefined where it is not known. */
  readonly latentTime: number | undefined;
}

export type Mutable<T> = { -readonly [K in keyof T]: T[K] };

type Kind = 'u8' | 'u16' | 'u32' | 'f64';
const BYTES: Readonly<Record<Kind, number>> = { u8: 1, u16: 2, u32: 4, f64: 8 };

interface Header {
  readonly schema: string;
  readonly rows: number;
  readonly window: Window | null;
  readonly classes: readonly string[];
  readonly reasons: readonly string[];
  readonly contract: ContractOnWire;
  readonly contracts: Readonly<Record<string, ContractOnWire>>;
  readonly latentTime: number | 'infinite' | null;
  /** A `u32` is all ones where absent. */
  readonly columns: readonly { readonly name: string; readonly kind: Kind; readonly offset: number }[];
}

type ContractOnWire = Omit<Contract, 'deadline'> & { readonly deadline: Millis | null };
const contractToWire = (c: Contract): ContractOnWire => ({
  ...c,
  deadline: Number.isFinite(c.deadline) ? c.deadline : null,
});
const contractFromWire = (c: ContractOnWire): Contract => ({ ...c, deadline: c.deadline ?? Number.POSITIVE_INFINITY });

interface Column {
  readonly name: string;
  readonly kind: Kind;
  readonly values: ArrayLike<number> & ArrayBufferView;
}

export function encodePacked(p: Packed): Uint8Array<ArrayBuffer> {
  const columns: Column[] = [];
  const put = (name: string, kind: Kind, values: Column['values']): void => void columns.push({ name, kind, values });
  for (const name of TIMES) putWhole(name, p[name], 1000);
  for (const name of COUNTS) putWhole(name, p[name], 1);
  putWhole('tokens', p.tokens, 1);
  const spans = spansOf(p.tpot, p.tokens);
  if (spans) putWhole('span', spans, 1000);
  else put('tpot', 'f64', p.tpot);
  if (p.smoothness.length > 0) put('smoothness', 'f64', p.smoothness);
  for (const [name, kind] of Object.entries(CODES)) put(name, kind, p[name as keyof typeof CODES]);

  /** As `u32` where all values are whole and fit, else as they are. */
  function putWhole(name: string, values: Float64Array, scale: number): void {
    const whole = new Uint32Array(values.length);
    for (let i = 0; i < values.length; i++) {
      const x = values[i]!;
      if (Number.isNaN(x)) {
        whole[i] = ABSENT32;
        continue;
      }
      const w = Math.round(x * scale);
      if (!(w >= 0 && w < ABSENT32) || w / scale !== x) {
        put(name, 'f64', values);
        return;
      }
      whole[i] = w;
    }
    put(name, 'u32', whole);
  }

  let offset = 0;
  const placed = columns.map((c) => {
    const at = offset;
    offset += align(c.values.length * BYTES[c.kind]);
    return { name: c.name, kind: c.kind, offset: at };
  });
  const header: Header = {
    schema: PACKED_SCHEMA,
    rows: p.rows,
    window: p.window ?? null,
    classes: p.classes,
    reasons: p.reasons,
    contract: contractToWire(p.contract),
    contracts: Object.fromEntries(Object.entries(p.contracts).map(([k, c]) => [k, contractToWire(c)])),
    latentTime: p.latentTime === Number.POSITIVE_INFINITY ? 'infinite' : (p.latentTime ?? null),
    columns: placed,
  };
  const json = new TextEncoder().encode(JSON.stringify(header));
  const start = align(12 + json.length);
  const bytes = new Uint8Array(start + offset);
  bytes.set(new TextEncoder().encode(MAGIC));
  bytes.fill(0x20, 12, start);
  bytes.set(json, 12);
  new DataView(bytes.buffer).setUint32(8, start - 12, true);
  columns.forEach((c, i) => {
    const { values } = c;
    bytes.set(
      new Uint8Array(values.buffer, values.byteOffset, values.byteLength),
      start + (placed[i] as { offset: number }).offset,
    );
  });
  return bytes;
}

/** @throws when the bytes are not this form, or of a later one. */
export function decodePacked(bytes: ArrayBuffer): Packed {
  const view = new DataView(bytes);
  if (bytes.byteLength < 12 || new TextDecoder().decode(new Uint8Array(bytes, 0, 8)) !== MAGIC) {
    throw new Error('the columns of this run are damaged');
  }
  const length = view.getUint32(8, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 12, length))) as Header;
  if (header.schema !== PACKED_SCHEMA) throw new Error(`the columns are of schema '${String(header.schema)}'`);
  const start = 12 + length;
  const { rows } = header;
  const found = new Map(header.columns.map((c) => [c.name, c]));
  const of = <T>(name: string, make: (buffer: ArrayBuffer, offset: number, length: number) => T): T => {
    const column = found.get(name);
    if (!column) throw new Error(`the columns of this run lack '${name}'`);
    return make(bytes, start + column.offset, rows);
  };
  const numbers = (name: string, scale: number): Float64Array => {
    if (found.get(name)?.kind === 'f64') return of(name, (b, o, n) => new Float64Array(b, o, n));
    const whole = of(name, (b, o, n) => new Uint32Array(b, o, n));
    const values = new Float64Array(rows);
    for (let i = 0; i < rows; i++) {
      const w = whole[i]!;
      values[i] = w === ABSENT32 ? Number.NaN : w / scale;
    }
    return values;
  };
  const tokens = numbers('tokens', 1);
  return {
    rows,
    window: header.window ?? undefined,
    ...(Object.fromEntries(TIMES.map((n) => [n, numbers(n, 1000)])) as Record<TimeName, Float64Array>),
    ...(Object.fromEntries(COUNTS.map((n) => [n, numbers(n, 1)])) as Record<CountName, Float64Array>),
    tokens,
    tpot: found.has('span') ? tpotOf(numbers('span', 1000), tokens) : numbers('tpot', 1),
    smoothness: found.has('smoothness') ? numbers('smoothness', 1) : new Float64Array(0),
    outcome: of('outcome', (b, o, n) => new Uint8Array(b, o, n)),
    finish: of('finish', (b, o, n) => new Uint8Array(b, o, n)),
    flags: of('flags', (b, o, n) => new Uint8Array(b, o, n)),
    class: of('class', (b, o, n) => new Uint16Array(b, o, n)),
    reason: of('reason', (b, o, n) => new Uint16Array(b, o, n)),
    absent: of('absent', (b, o, n) => new Uint32Array(b, o, n)),
    classes: header.classes,
    reasons: header.reasons,
    contract: contractFromWire(header.contract),
    contracts: Object.fromEntries(Object.entries(header.contracts).map(([k, c]) => [k, contractFromWire(c)])),
    latentTime: header.latentTime === 'infinite' ? Number.POSITIVE_INFINITY : (header.latentTime ?? undefined),
  };
}

/** TPOT as its span, which is shorter and compresses; undefined where that would not give the same numbers back. */
function spansOf(tpot: Float64Array, tokens: Float64Array): Float64Array | undefined {
  const spans = new Float64Array(tpot.length);
  for (let i = 0; i < tpot.length; i++) {
    const t = tpot[i]!;
    const span = Math.round(t * (tokens[i]! - 1) * 1000) / 1000;
    if (!Number.isNaN(t) && span / (tokens[i]! - 1) !== t) return undefined;
    spans[i] = Number.isNaN(t) ? Number.NaN : span;
  }
  return spans;
}

function tpotOf(spans: Float64Array, tokens: Float64Array): Float64Array {
  return spans.map((span, i) => span / (tokens[i]! - 1));
}

const align = (n: number): number => (n + 7) & ~7;

/** The code of a limit's absence in a row's `absent`. */
export function absenceCode(absent: Readonly<Partial<Record<LimitName, Absence>>>): number {
  let code = 0;
  LIMIT_NAMES.forEach((name, k) => {
    const why = absent[name];
    if (why !== undefined) code |= (ABSENCES.indexOf(why) + 1) << (4 * k);
  });
  return code >>> 0;
}
