/** Plans that were kept beside the runs: files of `goodput plan --json` in the folder itself. */
import { lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { oneLine } from '../base/errors.ts';
import { readJson } from '../store/json.ts';

export interface StoredPlan {
  readonly name: string;
  /** `goodput.plan/1`, as it stands. */
  readonly plan: Readonly<Record<string, unknown>>;
}

const MOST_FILES = 200;
const MOST_PLANS = 20;
const MOST_BYTES = 4_000_000;

/** Newest first. What is no plan, no plain file or too large is passed over. */
export function storedPlans(root: string): readonly StoredPlan[] {
  const files = readdirSync(root)
    .filter((name) => name.endsWith('.json') && name !== 'run.json')
    .slice(0, MOST_FILES)
    .flatMap((name) => {
      const s = lstatSync(join(root, name), { throwIfNoEntry: false });
      return s?.isFile() && s.size <= MOST_BYTES ? [{ name, at: s.mtimeMs }] : [];
    })
    .sort((a, b) => b.at - a.at);
  const found: StoredPlan[] = [];
  for (const { name } of files) {
    if (found.length === MOST_PLANS) break;
    try {
      const plan = readJson(root, name);
      if (plan?.schema === 'goodput.plan/1') found.push({ name: oneLine(name, 120), plan });
    } catch {
      // another file of somebody's
    }
  }
  return found;
}
