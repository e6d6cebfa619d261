/** Public incidents (samples/incidents): the settled ones right, the unsettled `unknown`, the negative no regression. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { diagnose, readChanges, readTold, type Side } from '../../src/diagnose/index.ts';

const ROOT = new URL('../../samples/incidents/', import.meta.url).pathname;

interface Expected {
  readonly verdict: string;
  readonly top2?: readonly string[];
  readonly tell?: readonly string[];
  readonly regression: readonly string[];
}

const read = (file: string): unknown => parse(readFileSync(file, 'utf8'));

describe('public incidents', () => {
  const folders = readdirSync(ROOT, { withFileTypes: true }).filter((e) => e.isDirectory() && /^\d/.test(e.name));
  it('are all there', () => expect(folders.length).toBeGreaterThanOrEqual(23));

  for (const { name } of folders) {
    it(name, () => {
      const folder = join(ROOT, name);
      const side = (file: string): Side => ({
        name: file,
        told: readTold(read(join(folder, `${file}.yaml`)), file),
        notes: [],
      });
      const changed = join(folder, 'changes.yaml');
      const found = diagnose(side('before'), side('after'), {
        changes: existsSync(changed) ? readChanges(read(changed), changed) : undefined,
      });
      const expected = read(join(folder, 'expected.yaml')) as Expected;
      const top = found.causes.slice(0, 2);
      const shown = `${found.verdict}, none ${found.none.toFixed(2)}: ${found.causes
        .slice(0, 4)
        .map((c) => `${c.cause.id} ${c.confidence.toFixed(2)}`)
        .join(', ')}`;
      if (expected.verdict !== 'any') expect(found.verdict, shown).toBe(expected.verdict);
      expect(expected.regression, shown).toContain(found.regression);
      if (!expected.top2) return;
      const hit = top.find((c) => expected.top2!.includes(c.cause.id));
      expect(hit?.cause.id, shown).toBeDefined();
      const evidence = hit!.evidence.map((e) => e.fact.id);
      for (const tell of expected.tell ?? []) expect(evidence, `${shown}; tell ${tell}`).toContain(tell);
    });
  }
});
