/**
 * Names of a run folder's row files. `requests-000012.parquet` is one segment; `requests-000001-000060.parquet` is the
 * compaction of those segments, and stands for them also while they have not been removed yet.
 */

const PATTERN = /^requests-(\d{6,})(?:-(\d{6,}))?\.parquet$/;

export interface Segment {
  readonly file: string;
  readonly first: number;
  readonly last: number;
}

export function segmentName(first: number, last = first): string {
  const pad = (n: number): string => String(n).padStart(6, '0');
  return first === last ? `requests-${pad(first)}.parquet` : `requests-${pad(first)}-${pad(last)}.parquet`;
}

/** The row files to read, in order, out of a folder's names: none that a wider one stands for. */
export function segmentsOf(names: readonly string[]): Segment[] {
  const all: Segment[] = [];
  for (const file of names) {
    const m = PATTERN.exec(file);
    if (m) all.push({ file, first: Number(m[1]), last: Number(m[2] ?? m[1]) });
  }
  all.sort((a, b) => a.first - b.first || b.last - a.last);
  const kept: Segment[] = [];
  let covered = 0;
  for (const segment of all) {
    if (segment.last <= covered) continue;
    kept.push(segment);
    covered = segment.last;
  }
  return kept;
}
