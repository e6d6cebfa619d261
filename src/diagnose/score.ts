/**
 * How well each cause, and each pair of causes, explains the facts. A fact is soft evidence: its states have probabilities,
 * and so do a cause's predictions; a fact that is missing says nothing. Beside the causes stands a hypothesis that predicts
 * nothing in particular: it wins where none of them fits.
 */

import { usual } from './causes/cause.ts';
import { CAUSES, type Cause } from './causes/index.ts';
import type { Fact, FactId, Facts, States } from './facts.ts';

/**
 * Facts are not independent: quantiles of one distribution, parts of one sum. Their log likelihoods count by these weights,
 * and all by `TEMPER`. Declared, and held against the reliability table of `bench/diagnose`.
 */
const WEIGHTS: Readonly<Partial<Record<FactId, number>>> = {
  ttft: 0.5,
  ttft_p50: 0.35,
  ttft_p99: 0.35,
  tpot: 0.7,
  itl_p50: 0.8,
  itl_p99: 0.4,
  gap: 0.6,
  latency: 0.6,
  path: 0.5,
  ttft_share: 0.5,
  running: 0.7,
  running_max: 0.8,
  waiting: 0.6,
  'part.queue': 0.8,
  'part.load': 0.6,
  throughput: 0.5,
  bimodal: 0.5,
  long_short: 0.4,
  early: 0.9,
  ttft_early: 0.3,
  opposed: 0.5,
  typical: 0.3,
  tokens_per_step: 0.4,
  chosen: 0.7,
  computed: 0.7,
  stall_regular: 0.7,
  stall_prefill: 0.4,
  step_tokens: 0.5,
  replica_ttft: 0.6,
};
const TEMPER = 0.85;

/** Odds of one cause before looking: alike. A pair of causes at once: each second one this much rarer. */
const PAIR = 0.6;
/** What is left of the odds of a cause that the evidence could not show. */
const UNSEEN = 0.2;
/** And, for each group of what it is known by exclusion of, that nothing in it was looked at. */
const UNMET = 0.7;
/** That it is none of the table's. */
const NONE = 0.6;
const NOTHING_SAID: States = [0.1, 0.16, 0.48, 0.16, 0.1];

export interface Support {
  readonly fact: Fact;
  /** Log likelihood ratio, cause against nobody: above 0 it speaks for the cause. */
  readonly weight: number;
}

export interface Scored {
  readonly cause: Cause;
  /** Probability that it is at work, alone or with another. */
  readonly probability: number;
  readonly alone: number;
  readonly support: readonly Support[];
  /** One of its deciding facts was observed and speaks for it, and what it is known by exclusion of was looked at. */
  readonly decided: boolean;
}

export interface Scores {
  readonly causes: readonly Scored[];
  /** Probability that it is none of them. */
  readonly none: number;
  /** The best pair, and the odds of it against the best single cause. */
  readonly pair?: { readonly ids: readonly [string, string]; readonly odds: number };
}

export function score(facts: Facts): Scores {
  const list = [...facts.values()];
  const base = list.map((f) => usual(f.id));
  const own = CAUSES.map((cause) => list.map((f, i) => cause.predicts[f.id] ?? (base[i] as States)));
  const singles = own.map((predictions) => logLikelihood(list, predictions));
  const none = logLikelihood(
    list,
    list.map((f, i) => (f.kind === 'told' ? (base[i] as States) : NOTHING_SAID)),
  );
  const pairs: { i: number; j: number; log: number }[] = [];
  for (let i = 0; i < CAUSES.length; i++) {
    for (let j = i + 1; j < CAUSES.length; j++) {
      const combined = list.map((f, k) => {
        const [p, q] = [CAUSES[i]!.predicts[f.id], CAUSES[j]!.predicts[f.id]];
        return p && q ? together(p, q) : (p ?? q ?? (base[k] as States));
      });
      pairs.push({ i, j, log: logLikelihood(list, combined) });
    }
  }
  const top = Math.max(none, ...singles, ...pairs.map((p) => p.log));
  const weight = (log: number, prior: number): number => prior * Math.exp(TEMPER * (log - top));
  const n = CAUSES.length;
  // A cause none of whose deciding facts was looked at is as possible as before, and can be shown less.
  const prior = CAUSES.map((cause) => {
    const unseen = cause.deciding.some((id) => facts.has(id)) ? 1 : UNSEEN;
    const unmet = (cause.needs ?? []).filter((group) => !group.some((id) => facts.has(id))).length;
    return (unseen * UNMET ** unmet) / n;
  });
  const probability = singles.map((log, i) => weight(log, prior[i]!));
  const alone = [...probability];
  const noneWeight = weight(none, NONE / n);
  let total = noneWeight + probability.reduce((s, w) => s + w, 0);
  let bestPair: { i: number; j: number; w: number } | undefined;
  for (const { i, j, log } of pairs) {
    const w = weight(log, (2 * PAIR * n * n * prior[i]! * prior[j]!) / (n * (n - 1)));
    probability[i]! += w;
    probability[j]! += w;
    total += w;
    if (!bestPair || w > bestPair.w) bestPair = { i, j, w };
  }
  const causes = CAUSES.map((cause, c): Scored => {
    const support = list.map((fact, i) => ({ fact, weight: ratio(fact, own[c]![i] as States, base[i] as States) }));
    return {
      cause,
      probability: probability[c]! / total,
      alone: alone[c]! / total,
      support: support.sort((x, y) => Math.abs(y.weight) - Math.abs(x.weight)),
      decided:
        support.some((s) => cause.deciding.includes(s.fact.id) && s.weight > 0.5) &&
        (cause.needs ?? []).every((group) => group.some((id) => wasSeen(facts.get(id)))) &&
        !(cause.refutedBy ?? []).some(([id, state]) => isSurely(facts.get(id), state)),
    };
  }).sort((x, y) => y.probability - x.probability);
  return {
    causes,
    none: noneWeight / total,
    ...(bestPair && {
      pair: {
        ids: [CAUSES[bestPair.i]!.id, CAUSES[bestPair.j]!.id],
        odds: bestPair.w / Math.max(...alone),
      },
    }),
  };
}

/** From this probability on a state is sure enough to refute. */
const SURELY = 0.8;

function isSurely(fact: Fact | undefined, state: 'up' | 'flat' | 'down'): boolean {
  if (!fact) return false;
  const [p, q, flat, r, s] = fact.states;
  return (state === 'up' ? r + s : state === 'down' ? p + q : flat) > SURELY;
}

/** A figure counts as looked at whatever it was; something told of only when it was so. */
function wasSeen(fact: Fact | undefined): boolean {
  return fact !== undefined && (fact.kind !== 'told' || fact.effect > 0);
}

function logLikelihood(facts: readonly Fact[], predictions: readonly States[]): number {
  let sum = 0;
  for (let i = 0; i < facts.length; i++)
    sum += (WEIGHTS[facts[i]!.id] ?? 1) * Math.log(chance(facts[i]!.states, predictions[i]!));
  return sum;
}

function ratio(fact: Fact, prediction: States, base: States): number {
  return (WEIGHTS[fact.id] ?? 1) * Math.log(chance(fact.states, prediction) / chance(fact.states, base));
}

/** P(observation | prediction), up to what the observation alone has; never so small that one fact decides all. */
function chance(states: States, prediction: States): number {
  let p = 0;
  for (let s = 0; s < 5; s++) p += states[s]! * prediction[s]!;
  return Math.max(p, 1e-3);
}

/** Two causes at once: what both move the same way moves at least as far, what they move apart may end anywhere between. */
export function together(p: States, q: States): States {
  const out = [0, 0, 0, 0, 0];
  for (let i = 0; i < 5; i++) {
    for (let j = 0; j < 5; j++) {
      const w = p[i]! * q[j]!;
      const [x, y] = [i - 2, j - 2];
      if (x * y >= 0) out[2 + (Math.abs(x) > Math.abs(y) ? x : y)]! += w;
      else {
        out[2 + x]! += w / 3;
        out[2 + y]! += w / 3;
        out[2 + Math.sign(x + y)]! += w / 3;
      }
    }
  }
  return out as unknown as States;
}
