/**
 * Units. A plain number carries its unit in its type's name; arithmetic on branded numbers loses the brand at once, so
 * these are aliases and the name is the contract.
 */
import { InputError } from './errors.ts';

/** Milliseconds, float64. In memory every time and duration is one of these. */
export type Millis = number;
/** Integer microseconds, as on disk. */
export type Micros = number;
/** Seconds, as in Prometheus and OpenTelemetry. */
export type Seconds = number;
/** A share in [0, 1]. */
export type Share = number;
/** Events per second. */
export type PerSecond = number;

/** `t` rounded to whole microseconds, still in milliseconds: what a stored run would give back. */
export function toMicroGrid(t: Millis): Millis {
  return Math.round(t * 1000) / 1000;
}

/**
 * `to − from` on the microsecond grid. Two stamps on the grid differ by a whole number of microseconds; the float64
 * difference may not, and a limit of exactly 500 ms must not be missed by 6e-14.
 */
export function between(from: Millis, to: Millis): Millis {
  return Math.round((to - from) * 1000) / 1000;
}

const DURATION = /^(\d+(?:\.\d+)?|\.\d+)\s*(us|µs|ms|s|m|min|h)?$/;
const IN_MS: Readonly<Record<string, number>> = {
  us: 0.001,
  µs: 0.001,
  ms: 1,
  s: 1000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
};

/**
 * Reads `500ms`, `1.5s`, `2m`, `1h`, `250us`. A bare number takes `bare` as its unit; without one it is refused, since
 * `30` has been both seconds and milliseconds in somebody's tool.
 * @throws InputError naming `what`.
 */
export function parseDuration(text: string, what: string, bare?: 'ms' | 's'): Millis {
  const m = DURATION.exec(text.trim());
  const unit = m?.[2] ?? bare;
  if (!m || unit === undefined) {
    throw new InputError(`${what}: '${text}' is not a duration; write it with a unit, like 500ms, 30s or 2m`);
  }
  return Number(m[1]) * (IN_MS[unit] as number);
}

/** Reads `0.9` or `90%` as a share in [0, 1]. @throws InputError naming `what`. */
export function parseShare(text: string, what: string): Share {
  const m = /^(\d+(?:\.\d+)?|\.\d+)\s*(%)?$/.exec(text.trim());
  const value = m ? Number(m[1]) / (m[2] ? 100 : 1) : Number.NaN;
  if (!(value >= 0 && value <= 1)) {
    throw new InputError(`${what}: '${text}' is not a share between 0 and 1; write 0.9 or 90%`);
  }
  return value;
}

/** A duration for people: three significant figures and a fitting unit. */
export function formatDuration(ms: Millis): string {
  if (!Number.isFinite(ms)) return ms > 0 ? '∞' : String(ms);
  const abs = Math.abs(ms);
  if (abs < 1) return `${trim(ms * 1000, 3)} µs`;
  if (abs < 1000) return `${trim(ms, 3)} ms`;
  if (abs < 120_000) return `${trim(ms / 1000, 3)} s`;
  if (abs < 7_200_000) return `${trim(ms / 60_000, 3)} min`;
  return `${trim(ms / 3_600_000, 3)} h`;
}

/** `x` to `digits` significant figures, never in exponent form below 1e21. */
export function trim(x: number, digits: number): string {
  return Number(x.toPrecision(digits)).toString();
}
