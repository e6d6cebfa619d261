/**
 * A contract's limits as people type them: `ttft=500ms,tpot=50ms,e2e=30s`, and vLLM's `ttft:500 tpot:50 e2el:30000`,
 * which are milliseconds. A limit that is misread is a wrong verdict on every request, so nothing is guessed.
 */
import { InputError } from '../base/errors.ts';
import { didYouMean } from '../base/nearest.ts';
import { formatDuration, type Millis, parseDuration, parseShare } from '../base/units.ts';
import { CONTRACT_DEFAULTS, type Contract, LIMIT_NAMES, type LimitName, type Limits } from './contract.ts';

/** What a list of limits said: the limits, and the deadline where it named one. */
export interface SloTerms {
  readonly limits: Limits;
  readonly deadline?: Millis;
}

/** Every name that may be written, and what it means. Aliases are other tools' words for the same quantity. */
export const SLO_NAMES: Readonly<Record<string, LimitName | 'deadline'>> = {
  ttft: 'ttft',
  ttfa: 'ttfa',
  tpot: 'tpot',
  gap: 'gap',
  max_gap: 'gap',
  'max-gap': 'gap',
  smoothness: 'smoothness',
  latency: 'latency',
  last: 'latency',
  e2e: 'e2e',
  e2el: 'e2e',
  deadline: 'deadline',
};

/** The limit a name stands for. @throws InputError naming `what` and the nearest name. */
export function sloName(name: string, what: string): LimitName | 'deadline' {
  const key = name.trim().toLowerCase();
  const found = Object.hasOwn(SLO_NAMES, key) ? SLO_NAMES[key] : undefined;
  if (found !== undefined) return found;
  const known = [...LIMIT_NAMES, 'deadline'].join(', ');
  throw new InputError(
    `${what}: '${name}' is not a limit${didYouMean(key, Object.keys(SLO_NAMES))}; the limits are ${known}`,
  );
}

/**
 * Reads one or more `--slo` values, each a comma-separated list of `name=value`. Times take a unit (`500ms`),
 * smoothness is a share (`0.99` or `99%`).
 * @throws InputError on an unknown or repeated name, and on a value that is zero, negative or not a quantity.
 */
export function parseSlo(texts: readonly string[], what = '--slo'): SloTerms {
  return readTerms(texts.flatMap((text) => text.split(',')).filter(notBlank), '=', what);
}

/** Reads vLLM's `--goodput` values: `ttft:500 tpot:50 e2el:30000`, bare numbers in milliseconds. @throws InputError */
export function parseGoodput(texts: readonly string[], what = '--goodput'): SloTerms {
  return readTerms(texts.flatMap((text) => text.split(/[\s,]+/)).filter(notBlank), ':', what);
}

/** Limits of several flags together. @throws InputError when two name the same limit. */
export function mergeTerms(a: SloTerms, b: SloTerms, what: string): SloTerms {
  for (const name of LIMIT_NAMES) {
    if (a.limits[name] !== undefined && b.limits[name] !== undefined) throw repeated(name, what);
  }
  if (a.deadline !== undefined && b.deadline !== undefined) throw repeated('deadline', what);
  const deadline = a.deadline ?? b.deadline;
  return { limits: { ...a.limits, ...b.limits }, ...(deadline !== undefined && { deadline }) };
}

/** One limit's value. Bare numbers are milliseconds only where `bare` says so. @throws InputError */
export function parseLimit(name: LimitName | 'deadline', text: string, where: string, bare?: 'ms'): number {
  if (/^-/.test(text.trim())) throw new InputError(`${where}: '${text}' is negative; a limit is above 0`);
  const value = name === 'smoothness' ? parseShare(text, where) : parseDuration(text, where, bare);
  if (value === 0)
    throw new InputError(`${where}: '${text}' is zero, which nothing can meet; leave the limit out instead`);
  if (!Number.isFinite(value)) throw new InputError(`${where}: '${text}' is too large to be a limit`);
  return value;
}

/**
 * The deadline of a contract that names none: 30 s, or the longest of its limits when that is longer, since a limit
 * beyond the deadline could never be met late.
 */
export function defaultDeadline(limits: Limits): Millis {
  const { ttft = 0, ttfa = 0, latency = 0, e2e = 0 } = limits;
  return Math.max(CONTRACT_DEFAULTS.deadline, ttft, ttfa, latency, e2e);
}

/** A contract whose parts contradict one another. @throws InputError saying which and what to change. */
export function checkContract(contract: Contract, what: string): Contract {
  const { limits, deadline, attainment } = contract;
  for (const name of ['ttft', 'ttfa', 'latency', 'e2e'] as const) {
    const limit = limits[name];
    if (limit !== undefined && limit > deadline) {
      throw new InputError(
        `${what}: the ${name} limit of ${formatDuration(limit)} lies beyond the deadline of ${formatDuration(deadline)}, ` +
          'where the operation has already timed out; raise the deadline or lower the limit',
      );
    }
  }
  if (limits.smoothness !== undefined && (limits.ttft === undefined || limits.tpot === undefined)) {
    throw new InputError(`${what}: smoothness is held against the ttft and tpot limits; set both of them too`);
  }
  if (!(attainment > 0 && attainment <= 1)) {
    throw new InputError(
      `${what}: an attainment target of ${attainment} asks nothing; write one above 0 up to 1, like 90%`,
    );
  }
  return contract;
}

function readTerms(parts: readonly string[], separator: '=' | ':', what: string): SloTerms {
  const limits: { -readonly [K in LimitName]?: number } = {};
  let deadline: Millis | undefined;
  if (parts.length === 0)
    throw new InputError(`${what}: no limit given; write one like ttft${separator}500${bareUnit(separator)}`);
  for (const part of parts) {
    const at = part.indexOf(separator);
    if (at <= 0 || at === part.length - 1) {
      throw new InputError(
        `${what}: '${part.trim()}' is not name${separator}value; write it like ttft${separator}500${bareUnit(separator)}`,
      );
    }
    const name = sloName(part.slice(0, at).trim(), what);
    const value = parseLimit(name, part.slice(at + 1).trim(), `${what} ${name}`, separator === ':' ? 'ms' : undefined);
    if (name === 'deadline') {
      if (deadline !== undefined) throw repeated(name, what);
      deadline = value;
    } else {
      if (limits[name] !== undefined) throw repeated(name, what);
      limits[name] = value;
    }
  }
  return { limits, ...(deadline !== undefined && { deadline }) };
}

const bareUnit = (separator: '=' | ':'): string => (separator === '=' ? 'ms' : '');
const notBlank = (text: string): boolean => text.trim() !== '';

function repeated(name: string, what: string): InputError {
  return new InputError(`${what}: the ${name} limit is given twice; give it once`);
}
