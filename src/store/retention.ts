/** What a run that never ends keeps of itself: row files are rolled into larger ones, and the oldest go. */
import type { Millis } from '../base/units.ts';

/** Bounds on what is kept; a run without any keeps everything. */
export interface Keep {
  /** Rows older than this go, a file at a time: so nothing younger does. */
  readonly age?: Millis;
  /** Bytes of row files in all. */
  readonly bytes?: number;
}

/** A row file as its writer knows it. Times are those of the run's clock. */
export interface RowFile {
  readonly first: number;
  readonly last: number;
  readonly rows: number;
  readonly bytes: number;
  /** When its first and its last segment were written. */
  readonly born: Millis;
  readonly newest: Millis;
}

/** Segments that are rolled into one file at a time. */
const ROLL = 60;
/** A file that has grown to this, or covers this share of what is kept, is left as it is. */
const FULL = 32 * 2 ** 20;
const SHARES = 8;

/** The last files, where they are small and many enough to be rolled into one; empty otherwise. In order. */
export function toRoll(files: readonly RowFile[], keep: Keep, now: Millis): readonly RowFile[] {
  const full = Math.min(FULL, (keep.bytes ?? Number.POSITIVE_INFINITY) / SHARES);
  const old = (keep.age ?? Number.POSITIVE_INFINITY) / SHARES;
  let from = files.length;
  let bytes = 0;
  while (from > 0) {
    const file = files[from - 1] as RowFile;
    bytes += file.bytes;
    if (bytes > full || now - file.born > old) break;
    from--;
  }
  const chosen = files.slice(from);
  return chosen.length >= ROLL ? chosen : [];
}

/** The oldest files, that must go for the rest to be within bounds. The last file stays. */
export function toForget(files: readonly RowFile[], keep: Keep, now: Millis): readonly RowFile[] {
  let bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  let n = 0;
  for (; n < files.length - 1; n++) {
    const file = files[n] as RowFile;
    const isOld = keep.age !== undefined && now - file.newest > keep.age;
    const isMuch = keep.bytes !== undefined && bytes > keep.bytes;
    if (!isOld && !isMuch) break;
    bytes -= file.bytes;
  }
  return files.slice(0, n);
}
