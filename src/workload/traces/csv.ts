/** CSV traces: a header that names the columns, then a request a line. Quotes are taken off; a comma inside them is refused. */
import { InputError, oneLine } from '../../base/errors.ts';
import { didYouMean } from '../../base/nearest.ts';
import { type Chunks, eachLine } from '../lines.ts';

export type Row = readonly string[];

/**
 * @param columns wanted, as the header writes them, in any case; those of `optional` may be missing (index −1).
 * @param each told of each row with the place of each wanted column; `false` ends the reading.
 */
export async function eachRow<C extends string>(
  chunks: Chunks,
  what: string,
  columns: readonly C[],
  optional: readonly C[],
  each: (cell: (column: C) => string | undefined, where: string) => unknown,
): Promise<void> {
  let places: Readonly<Record<C, number>> | undefined;
  await eachLine(chunks, what, (line, number) => {
    if (line.trim() === '') return true;
    if (!places) {
      places = placesOf(split(line), what, number, columns, optional);
      return true;
    }
    const row = split(line);
    const found = places;
    return each((column) => row[found[column]], `${what}:${number}`);
  });
  if (!places) throw new InputError(`${what}: empty; expected a header with ${columns.join(', ')}`);
}

function placesOf<C extends string>(
  header: Row,
  what: string,
  line: number,
  columns: readonly C[],
  optional: readonly C[],
): Readonly<Record<C, number>> {
  const names = header.map((name) => name.trim().toLowerCase());
  const places = {} as Record<C, number>;
  for (const column of [...columns, ...optional]) {
    const at = names.indexOf(column.toLowerCase());
    if (at < 0 && !optional.includes(column)) {
      const shown = header.map((name) => oneLine(name, 40));
      throw new InputError(
        `${what}:${line}: no column '${column}'${didYouMean(column, shown)}; the header has ${oneLine(shown.join(', '), 120)}`,
      );
    }
    places[column] = at;
  }
  return places;
}

function split(line: string): string[] {
  if (!line.includes('"')) return line.split(',');
  return Array.from(line.matchAll(/("(?:[^"]|"")*"|[^,]*)(?:,|$)/g), (m) =>
    (m[1] as string).startsWith('"') ? (m[1] as string).slice(1, -1).replaceAll('""', '"') : (m[1] as string),
  );
}

/** A whole number in a cell, also written `12.0`. @throws InputError naming line and column. */
export function wholeCell(text: string | undefined, column: string, where: string): number {
  const t = text?.trim() ?? '';
  const n = t === '' ? Number.NaN : Number(t);
  if (!Number.isInteger(n)) throw new InputError(`${where}: ${column} '${oneLine(t, 40)}' is not a whole number`);
  return n;
}

/** Seconds, with any number of decimals, as whole microseconds. @throws InputError naming line and column. */
export function secondsCell(text: string | undefined, column: string, where: string): number {
  const t = text?.trim() ?? '';
  const m = /^(\d+)(?:\.(\d+))?$/.exec(t);
  if (m) return Number(m[1]) * 1e6 + fraction(m[2]);
  const n = t === '' ? Number.NaN : Number(t);
  if (!Number.isFinite(n) || n < 0)
    throw new InputError(`${where}: ${column} '${oneLine(t, 40)}' is not a time in seconds`);
  return Math.round(n * 1e6);
}

const DATE = /^(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:\.(\d+))?\s*(Z|[+-]\d\d:?\d\d)?$/;

/** A date and time (UTC unless it says otherwise) as whole microseconds since 1970: exact, as the decimals are read apart. */
export function dateCell(text: string | undefined, column: string, where: string): number {
  const t = text?.trim() ?? '';
  const m = DATE.exec(t);
  const ms = m ? Date.UTC(+m[1]!, +m[2]! - 1, +m[3]!, +m[4]!, +m[5]!, +m[6]!) : Number.NaN;
  if (!m || !Number.isFinite(ms) || +m[2]! > 12 || +m[4]! > 23 || +m[5]! > 59) {
    throw new InputError(
      `${where}: ${column} '${oneLine(t, 40)}' is not a date and time like 2023-11-16 18:17:03.9799600`,
    );
  }
  const zone = /^([+-])(\d\d):?(\d\d)$/.exec(m[8] ?? '');
  const offset = zone ? (zone[1] === '-' ? -1 : 1) * (Number(zone[2]) * 60 + Number(zone[3])) : 0;
  return ms * 1000 - offset * 60e6 + fraction(m[7]);
}

/** Decimals of a second as microseconds; beyond six they are rounded. */
function fraction(digits: string | undefined): number {
  if (digits === undefined) return 0;
  return digits.length <= 6
    ? Number(digits.padEnd(6, '0'))
    : Math.round(Number(`${digits.slice(0, 6)}.${digits.slice(6)}`));
}
