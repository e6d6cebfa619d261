/** What people add to runs: tags, and contracts they tried. One small file beside the runs, replaced whole. */
import { InputError, oneLine } from '../base/errors.ts';
import { type Contract, LIMIT_NAMES } from '../core/contract.ts';
import { readJson, writeJson } from '../store/json.ts';

export const SAVED_FILE = 'dashboard.json';

export interface Saved {
  readonly schema: 'goodput.dashboard/1';
  /** Run id → tags. */
  readonly tags: Readonly<Record<string, readonly string[]>>;
  /** Contracts that were tried, newest last; deadline null: none. */
  readonly contracts: readonly (Omit<Contract, 'deadline'> & { readonly deadline: number | null })[];
}

const NOTHING: Saved = { schema: 'goodput.dashboard/1', tags: {}, contracts: [] };

/** @throws InputError when the file is damaged. */
export function readSaved(root: string): Saved {
  const found = readJson(root, SAVED_FILE);
  return found ? checkSaved(found) : NOTHING;
}

export function writeSaved(root: string, value: unknown): Saved {
  const saved = checkSaved(value);
  writeJson(root, SAVED_FILE, saved);
  return saved;
}

/** Keeps what has the right shape, cut to sensible lengths. @throws InputError for anything else. */
export function checkSaved(value: unknown): Saved {
  const bad = (what: string): InputError => new InputError(`${SAVED_FILE}: ${what}`);
  const object = (x: unknown, what: string): Record<string, unknown> => {
    if (typeof x !== 'object' || x === null || Array.isArray(x)) throw bad(`${what} is not an object`);
    return x as Record<string, unknown>;
  };
  const found = object(value, 'it');
  if (found.schema !== NOTHING.schema) throw bad(`schema is not '${NOTHING.schema}'`);
  const tags = Object.entries(object(found.tags ?? {}, 'tags')).map(([id, list]) => {
    if (!Array.isArray(list)) throw bad('tags of a run are not a list');
    const words = list.map((t) => oneLine(String(t), 40)).filter((t) => t !== '');
    return [oneLine(id, 300), [...new Set(words)].slice(0, 20)] as const;
  });
  if (!Array.isArray(found.contracts ?? [])) throw bad('contracts is not a list');
  const contracts = ((found.contracts ?? []) as unknown[]).map((c) => contractShape(object(c, 'a contract'), bad));
  if (tags.length > 10_000 || contracts.length > 200) throw bad('more than it may hold');
  return {
    schema: NOTHING.schema,
    tags: Object.fromEntries(tags.filter(([id, list]) => list.length > 0 && id !== '__proto__')),
    contracts,
  };
}

function contractShape(c: Record<string, unknown>, bad: (what: string) => Error): Saved['contracts'][number] {
  const limits: Record<string, number> = {};
  for (const [name, x] of Object.entries((c.limits ?? {}) as Record<string, unknown>)) {
    if (!(LIMIT_NAMES as readonly string[]).includes(name) || typeof x !== 'number' || !(x >= 0)) {
      throw bad(`limit '${oneLine(name, 20)}' of a contract`);
    }
    limits[name] = x;
  }
  const one = <T extends string>(x: unknown, of: readonly T[], what: string): T => {
    if (!of.includes(x as T)) throw bad(`'${what}' of a contract`);
    return x as T;
  };
  const number = (x: unknown, what: string): number => {
    if (typeof x !== 'number' || !(x >= 0)) throw bad(`'${what}' of a contract`);
    return x;
  };
  const valid = (c.valid ?? {}) as Record<string, unknown>;
  const cases = (c.cases ?? {}) as Record<string, unknown>;
  return {
    name: oneLine(String(c.name), 100),
    boundary: one(c.boundary, ['scheduled', 'dispatched'] as const, 'boundary'),
    limits,
    deadline: c.deadline === null ? null : number(c.deadline, 'deadline'),
    valid: {
      minTokens: number(valid.minTokens, 'minTokens'),
      minShareOfAsked: number(valid.minShareOfAsked, 'minShareOfAsked'),
      finish: (Array.isArray(valid.finish) ? valid.finish : []).map((f) =>
        one(f, ['stop', 'length', 'tool', 'filtered', 'aborted', 'other'] as const, 'finish'),
      ),
    },
    cases: {
      cancelled: one(cases.cancelled, ['not-good', 'observed', 'exclude'] as const, 'cancelled'),
      nonStreamed: one(cases.nonStreamed, ['unmeasurable', 'skip', 'exclude'] as const, 'nonStreamed'),
      oneToken: one(cases.oneToken, ['vacuous', 'late'] as const, 'oneToken'),
      unmeasurable: one(cases.unmeasurable, ['late', 'skip', 'exclude'] as const, 'unmeasurable'),
    },
    attainment: number(c.attainment, 'attainment'),
  };
}
