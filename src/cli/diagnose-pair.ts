/** Whether two sides can be held against each other, in one line a matter: what makes it pointless, and what to know. */
import { realpathSync } from 'node:fs';
import { InputError, oneLine } from '../base/errors.ts';
import type { About, ReadSide } from './diagnose-sources.ts';

/** @throws InputError where both flags name one window. */
export function refuseSame(before: readonly string[], after: readonly string[]): void {
  const real = (source: string): string => {
    try {
      return realpathSync(source);
    } catch {
      return source;
    }
  };
  const had = new Set(before.map(real));
  const same = after.find((source) => had.has(real(source)));
  if (same !== undefined)
    throw new InputError(
      `--before and --after both name ${oneLine(same)}, which cannot differ from itself; give another window to one of them`,
    );
}

const KINDS = [
  ['requests', 'a run folder', 'the records of its requests'],
  ['evidence', 'server metrics', 'its server metrics'],
  ['told', 'told figures', 'its told figures'],
] as const;

/** What a reader must know before believing the comparison. */
export function pairNotes(a: ReadSide, b: ReadSide): string[] {
  const notes: string[] = [];
  const kinds = (s: ReadSide) => KINDS.filter(([kind]) => s.side[kind] !== undefined).map(([kind]) => kind);
  const [x, y] = [kinds(a), kinds(b)];
  for (const [kind, what, whose] of KINDS) {
    const [inA, inB] = [x.includes(kind), y.includes(kind)];
    if (inA === inB) continue;
    const [has, lacks] = inA ? ['before', 'after'] : ['after', 'before'];
    notes.push(
      x.some((k) => y.includes(k))
        ? `${has} has ${what}, ${lacks} has none: ${whose} are not compared; add them with a second --${lacks}`
        : `${has} has ${what}, ${lacks} has none, and nothing else in common: give both sides the same kind of source`,
    );
  }
  order(a.about, b.about, notes);
  const [e, f] = [a.about.engines, b.about.engines];
  if (e.length > 0 && f.length > 0 && e.join() !== f.join())
    notes.push(
      `the engines differ, ${e.join(' and ')} before and ${f.join(' and ')} after: they mean different things by metrics of like names`,
    );
  if (a.about.contract !== undefined && b.about.contract !== undefined && a.about.contract !== b.about.contract)
    notes.push('the runs have different contracts: latencies are compared as measured, attainment and goodput are not');
  if (a.about.model !== undefined && b.about.model !== undefined && a.about.model !== b.about.model)
    notes.push(
      `the models differ, ${a.about.model} before and ${b.about.model} after: a change of model is no cause looked for`,
    );
  return notes;
}

function order(a: About, b: About, notes: string[]): void {
  if (a.from === undefined || b.to === undefined || a.to === undefined || b.from === undefined) return;
  if (a.from >= b.to && a.from > b.from)
    notes.push(
      `--before was measured after --after (${minute(a.from)} against ${minute(b.from)}): if the flags are swapped, so is what got worse`,
    );
  else if (a.from < b.to && b.from < a.to) notes.push('the two windows overlap: part of what is compared is the same');
}

const minute = (t: number): string => `${new Date(t).toISOString().slice(0, 16)}Z`;
