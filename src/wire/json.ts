/** Reading JSON from outside: every accessor answers undefined for what is not there or not of the kind. */

export type Json = Readonly<Record<string, unknown>>;

export function isObject(x: unknown): x is Json {
  return typeof x === 'object' && x !== null && !Array.isArray(x);
}

export function objectOf(x: unknown): Json | undefined {
  return isObject(x) ? x : undefined;
}

export function listOf(x: unknown): readonly unknown[] {
  return Array.isArray(x) ? x : NOTHING;
}
const NOTHING: readonly unknown[] = [];

/** A non-empty string. */
export function textOf(x: unknown): string | undefined {
  return typeof x === 'string' && x !== '' ? x : undefined;
}

/** A finite number that is not negative. */
export function countOf(x: unknown): number | undefined {
  return typeof x === 'number' && x >= 0 && Number.isFinite(x) ? x : undefined;
}

/** The index of a choice: a small whole number, else 0. */
export function indexOf(x: unknown): number {
  return typeof x === 'number' && Number.isInteger(x) && x >= 0 && x < 65_536 ? x : 0;
}

/** True when anything in `x`, at any depth, is a non-empty string or a number. */
export function hasSubstance(x: unknown, depth = 0): boolean {
  if (typeof x === 'string') return x !== '';
  if (typeof x === 'number') return true;
  if (typeof x !== 'object' || x === null || depth > 8) return false;
  for (const value of Array.isArray(x) ? x : Object.values(x)) {
    if (hasSubstance(value, depth + 1)) return true;
  }
  return false;
}

/** `x` with its undefined fields left out, as `exactOptionalPropertyTypes` wants it; undefined when none is left. */
export function present<T extends object>(x: { [K in keyof T]: T[K] | undefined }): T | undefined {
  const entries = Object.entries(x).filter(([, value]) => value !== undefined);
  return entries.length === 0 ? undefined : (Object.fromEntries(entries) as T);
}
