/** Two sides → is there a change → additive attribution → ranked causes, or `unknown`. */
import { type Attribution, attribute } from './attribution.ts';
import { attributeTpot, type TpotAttribution } from './attribution-tpot.ts';
import type { Cause, Locus } from './causes/index.ts';
import { type ChangeTest, changeTest, DEFAULT_SPREAD } from './change.ts';
import { type Changes, onlyOwnSettings, reversedChanges } from './changes.ts';
import { type Facts, factsOf } from './facts.ts';
import { measuresOf } from './measures.ts';
import { type Missing, missingOf } from './missing.ts';
import { type RuledOut, ruledOut } from './ruled-out.ts';
import { type Scored, type Scores, type Support, score } from './score.ts';
import type { Side } from './side.ts';
import type { Measures } from './table.ts';

export type Verdict = 'cause' | 'trade' | 'not-shown' | 'unknown';

export interface RankedCause {
  readonly cause: Cause;
  readonly confidence: number;
  /** What speaks for it, strongest first. */
  readonly evidence: readonly Support[];
  readonly against: readonly Support[];
}

export interface Diagnosis {
  readonly verdict: Verdict;
  /** In one sentence. */
  readonly summary: string;
  /** The later side is the better one: causes are those of the worse, earlier one. */
  readonly reversed: boolean;
  /** Whether the server got worse, as far as the verdict says. */
  readonly regression: 'server' | 'elsewhere' | 'own-setting' | 'none' | 'unknown';
  readonly causes: readonly RankedCause[];
  /** Probability that it is none of the table's causes. */
  readonly none: number;
  readonly change: ChangeTest;
  readonly attribution: Attribution;
  /** Of TPOT, ms a token. */
  readonly attributionTpot: TpotAttribution;
  readonly facts: Facts;
  readonly ruledOut: readonly RuledOut[];
  readonly missing: readonly Missing[];
  readonly notes: readonly string[];
  readonly a: Side;
  readonly b: Side;
  readonly measures: { readonly a: Measures; readonly b: Measures };
}

export interface DiagnoseOptions {
  readonly changes?: Changes | undefined;
  /** Spread between runs of one system, as a share. */
  readonly spread?: number | undefined;
  /** What to know of the two sides together. */
  readonly notes?: readonly string[] | undefined;
}

/** From this confidence on a cause is named. */
export const NAMED = 0.6;
/** A second cause is named beside the first from here on. */
export const SECOND = 0.5;
/** What a cause without an observed deciding fact may have at most. */
const UNDECIDED = 0.45;

export function diagnose(a: Side, b: Side, options: DiagnoseOptions = {}): Diagnosis {
  const { changes, spread = DEFAULT_SPREAD } = options;
  const measures = { a: measuresOf(a), b: measuresOf(b) };
  const change = changeTest(measures.a, measures.b, spread);
  const reversed = change.better && !change.worse;
  // Of an improvement the cause is asked the other way round: what made the earlier side worse?
  const [from, to] = reversed ? [b, a] : [a, b];
  const [x, y] = reversed ? [measures.b, measures.a] : [measures.a, measures.b];
  const attribution = attribute(a, b, measures.a, measures.b);
  const attributionTpot = attributeTpot(a, b, measures.a, measures.b);
  const asked = reversed ? attribute(from, to, x, y) : attribution;
  const facts = factsOf({
    sideA: from,
    sideB: to,
    a: x,
    b: y,
    attribution: asked,
    changes: reversed && changes ? reversedChanges(changes) : changes,
  });
  const scores = score(facts);
  const causes = ranked(scores);
  const verdict = verdictOf(change, causes, scores, facts);
  const notes = [
    ...new Set([
      ...(options.notes ?? []),
      ...a.notes.map((n) => `before: ${n}`),
      ...b.notes.map((n) => `after: ${n}`),
      ...attribution.notes,
    ]),
  ];
  return {
    verdict,
    summary: summaryOf(verdict, causes, change, reversed),
    reversed,
    regression: regressionOf(verdict, causes, changes, reversed),
    causes: verdict === 'not-shown' ? [] : causes,
    none: scores.none,
    change,
    attribution,
    attributionTpot,
    facts,
    ruledOut: verdict === 'not-shown' ? [] : ruledOut(facts, scores),
    missing:
      verdict === 'not-shown' ? [] : missingOf(measures.a, measures.b, facts, scores, change, changes !== undefined),
    notes,
    a,
    b,
    measures,
  };
}

function ranked(scores: Scores): RankedCause[] {
  const listed = scores.causes
    .map((s) => ({ s, confidence: s.decided ? s.probability : Math.min(s.probability, UNDECIDED) }))
    .sort((x, y) => y.confidence - x.confidence);
  return listed
    .filter(({ confidence }, i) => confidence >= 0.02 || i < 2)
    .slice(0, 8)
    .map(({ s, confidence }) => ({
      cause: s.cause,
      confidence,
      evidence: evidenceOf(s),
      against: s.support.filter((x) => x.weight < -0.5).slice(0, 6),
    }));
}

/** What speaks for it noticeably; and what it said in advance and was so, were it only that a figure stayed as it was. */
function evidenceOf({ support, cause }: Scored): Support[] {
  return support
    .filter((x) => x.weight > (cause.predicts[x.fact.id] ? 0.04 : 0.25))
    .sort((x, y) => y.weight - x.weight)
    .slice(0, 14);
}

function verdictOf(change: ChangeTest, causes: readonly RankedCause[], scores: Scores, facts: Facts): Verdict {
  if (change.changes.length === 0) return 'unknown';
  if (!change.worse && !change.better) return 'not-shown';
  const [top, second] = causes;
  if (!top || scores.none > 0.4) return 'unknown';
  if (top.confidence < NAMED) {
    // Two at once, neither of them surely alone: their pair must stand far out, and both be decided.
    const pair = scores.pair;
    const both = top.confidence + (second?.confidence ?? 0);
    const isPair =
      pair && second && pair.ids.includes(top.cause.id) && pair.ids.includes(second.cause.id) && pair.odds > 2;
    if (!(isPair && both > 1.1 && top.confidence > SECOND)) return 'unknown';
  }
  return isTrade(top.cause, change, facts) ? 'trade' : 'cause';
}

/** One metric better, another worse, and somebody chose it: a version or a setting was changed. */
function isTrade(cause: Cause, change: ChangeTest, facts: Facts): boolean {
  if (cause.id === 'intended-trade') return true;
  if (cause.id === 'cold-start') return (facts.get('flag.warmup')?.effect ?? 0) > 0;
  const chosen = {
    'chunk-budget': 'flag.budget',
    admission: 'flag.admission',
    'batch-growth': 'flag.admission',
    'chunked-prefill-interference': 'flag.budget',
  } as const;
  const flag = chosen[cause.id as keyof typeof chosen];
  return flag !== undefined && change.worse && change.better && (facts.get(flag)?.effect ?? 0) > 0;
}

function summaryOf(verdict: Verdict, causes: readonly RankedCause[], change: ChangeTest, reversed: boolean): string {
  const top = causes[0];
  const second = causes[1];
  switch (verdict) {
    case 'not-shown':
      return `not shown to be a change: no headline figure differs by more than the spread between runs (${(100 * change.spread).toFixed(0)} %)`;
    case 'unknown':
      if (change.changes.length === 0) return 'unknown: the two sides have no headline figure in common';
      return top
        ? `unknown: nothing explains the change well enough${causes.length > 1 ? ` (nearest: ${top.cause.id}, ${second?.cause.id})` : ''}`
        : 'unknown';
    default: {
      const and = second && second.confidence >= SECOND ? ` and ${second.cause.label}` : '';
      const what = verdict === 'trade' ? 'a trade' : reversed ? 'an improvement: gone is' : 'the cause is';
      return `${what}${verdict === 'trade' ? ': ' : ' '}${top?.cause.label ?? ''}${and}`;
    }
  }
}

const SERVER: readonly Locus[] = ['engine', 'frontend', 'fleet', 'hardware'];

function regressionOf(
  verdict: Verdict,
  causes: readonly RankedCause[],
  changes: Changes | undefined,
  reversed: boolean,
): Diagnosis['regression'] {
  if (verdict === 'not-shown' || verdict === 'trade' || (reversed && verdict === 'cause')) return 'none';
  if (verdict === 'unknown') return 'unknown';
  const locus = causes[0]!.cause.locus;
  if (!SERVER.includes(locus)) return 'elsewhere';
  return onlyOwnSettings(changes) ? 'own-setting' : 'server';
}
