/** Texts to one merged document, as `goodput merge` does it; for tests. */
import type { MergeDocument } from './document.ts';
import type { JointLimits } from './joint.ts';
import { mergeEvidence } from './merge.ts';
import { SnapshotReader } from './snapshot.ts';
import { evidenceOf } from './window.ts';

/** @param sources the scrapes of each replica by its name: one text, or several in order of time. */
export function merged(
  sources: Readonly<Record<string, string | readonly string[]>>,
  limits?: JointLimits,
): MergeDocument {
  const reader = new SnapshotReader();
  const read = Object.entries(sources).map(([name, texts]) =>
    (typeof texts === 'string' ? [texts] : texts).map((text) => reader.read(text, name)),
  );
  const last = read.map((r) => r.at(-1)!);
  const sum = (of: 'families' | 'unmapped'): number => last.reduce((n, s) => n + s[of], 0);
  return mergeEvidence(
    evidenceOf(read),
    { files: read.length, families: sum('families'), unmapped: sum('unmapped') },
    limits,
  );
}
