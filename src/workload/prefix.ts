/**
 * Shared prefixes: the system prompts and documents that many requests begin with. A prefix is a tree: at each level a
 * request takes one of the branches, and adds that node's own text to what its parents gave. One level of one branch is a
 * system prompt for all; one level of several is a prompt for each group (tenant, application).
 */
import type { Uniform } from '../base/random.ts';
import type { Stretch } from './prompts.ts';

export interface PrefixLevel {
  readonly tokens: number;
  /** Children of each node of the level above. */
  readonly branches: number;
  /** Zipf exponent of their popularity: 0 is even, 1 makes the k-th child 1/k as popular as the first. */
  readonly skew: number;
}

export interface PrefixPlan {
  /** Classes that name the same prefix share its text. */
  readonly name: string;
  readonly levels: readonly PrefixLevel[];
}

export const prefixTokens = (plan: PrefixPlan): number => plan.levels.reduce((sum, level) => sum + level.tokens, 0);

/** Leaves of the tree: how many different whole prefixes there are. */
export const prefixLeaves = (plan: PrefixPlan): number => plan.levels.reduce((n, level) => n * level.branches, 1);

/** Draws a path from the root: the stretches a request begins with. */
export function prefixDraw(plan: PrefixPlan): (u: Uniform) => Stretch[] {
  const tables = plan.levels.map(popularity);
  return (u) => pathOf(plan, (level) => chosen(tables[level] as Float64Array, u()));
}

/** Every whole prefix, for warming a cache. */
export function* everyPrefix(plan: PrefixPlan): Generator<Stretch[]> {
  const leaves = prefixLeaves(plan);
  for (let leaf = 0; leaf < leaves; leaf++) {
    let left = leaf;
    yield pathOf(plan, (level) => {
      const { branches } = plan.levels[level] as PrefixLevel;
      const child = left % branches;
      left = Math.floor(left / branches);
      return child;
    });
  }
}

function pathOf(plan: PrefixPlan, child: (level: number) => number): Stretch[] {
  let key = hashOf(plan.name);
  return plan.levels.map(({ tokens }, level) => {
    key = combine(key, child(level) + 1);
    return { purpose: 'prefix', key, tokens };
  });
}

function popularity({ branches, skew }: PrefixLevel): Float64Array {
  const upTo = new Float64Array(branches);
  let sum = 0;
  for (let k = 0; k < branches; k++) upTo[k] = sum += (k + 1) ** -skew;
  return upTo.map((x) => x / sum);
}

function chosen(upTo: Float64Array, x: number): number {
  let low = 0;
  let high = upTo.length - 1;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (x < upTo[mid]!) high = mid;
    else low = mid + 1;
  }
  return low;
}

function hashOf(name: string): number {
  let h = 7;
  for (let i = 0; i < name.length; i++) h = combine(h, name.charCodeAt(i));
  return h;
}

/** 52 bits from a key and a small number, so that a key stays a safe integer. */
function combine(key: number, x: number): number {
  const low = Math.imul((key | 0) ^ Math.imul(x, 0x9e3779b1), 0x85ebca6b);
  const high = Math.imul(Math.floor(key / 2 ** 32) ^ (low >>> 13) ^ x, 0xc2b2ae35);
  return (low >>> 0) + ((high >>> 12) & 0xfffff) * 2 ** 32;
}
