/** `goodput.diagnosis/1`, read leniently: keys may be added, and what is not there is not shown. Pure. */
import { trim } from '../../src/base/units.ts';

export interface Told {
  readonly verdict: string;
  /** In one sentence; empty where there is none. */
  readonly summary: string;
  readonly causes: readonly {
    readonly id: string;
    readonly title: string;
    readonly confidence: number | string | undefined;
    readonly evidence: readonly Evidence[];
    readonly against: readonly Evidence[];
    /** What to turn, and what that costs. */
    readonly knob: string;
    readonly price: string;
  }[];
  readonly attribution: readonly { readonly name: string; readonly ms: number }[];
  /** Their sum, or the change as it is told. */
  readonly total: number;
  readonly ruledOut: readonly string[];
  readonly missing: readonly string[];
  readonly fixes: readonly string[];
  readonly notes: readonly string[];
}

export interface Evidence {
  readonly text: string;
  readonly before?: number;
  readonly after?: number;
  /** What is measured, where the sentence was made from figures. */
  readonly label?: string;
  readonly unit?: string;
  /** After over before, with its interval; absent where the two are told as a difference. */
  readonly ratio?: { readonly at: number; readonly low: number; readonly high: number };
}

const object = (x: unknown): Record<string, unknown> =>
  typeof x === 'object' && x !== null && !Array.isArray(x) ? (x as Record<string, unknown>) : {};
const list = (x: unknown): readonly unknown[] => (Array.isArray(x) ? x : []);

/** @throws when it is no diagnosis at all. */
export function toldOf(value: unknown): Told {
  const d = object(value);
  if (typeof d.verdict !== 'string' && typeof object(d.verdict).is !== 'string') {
    throw new Error("no diagnosis: 'verdict' is missing");
  }
  const parts = Object.entries(object(d.attribution_ms)).flatMap(([name, x]) =>
    typeof x === 'number' && Number.isFinite(x) ? [{ name: name.replaceAll('_', ' '), ms: x }] : [],
  );
  const told = number(object(object(d.attribution).total).value);
  const total = told ?? parts.find((p) => p.name === 'total')?.ms;
  const attribution = parts.filter((p) => p.name !== 'total');
  return {
    verdict: typeof d.verdict === 'string' ? d.verdict : String(object(d.verdict).is),
    summary: text(d.summary),
    causes: list(d.causes).map((c, i) => {
      const { id, label, title, confidence, evidence, against, knob, price } = object(c);
      const name = typeof id === 'string' ? id : `cause ${i + 1}`;
      return {
        id: name,
        title: text(label) || text(title) || name.replaceAll('-', ' '),
        confidence: typeof confidence === 'number' || typeof confidence === 'string' ? confidence : undefined,
        evidence: list(evidence).map(evidenceOf),
        against: list(against).map(evidenceOf),
        knob: text(knob),
        price: text(price),
      };
    }),
    attribution,
    total: total ?? attribution.reduce((sum, p) => sum + p.ms, 0),
    ruledOut: list(d.ruled_out).map(wordsOf),
    missing: list(d.missing).map(wordsOf),
    fixes: list(d.what_would_fix).map(wordsOf),
    notes: list(d.notes).map(wordsOf),
  };
}

const number = (v: unknown): number | undefined => (typeof v === 'number' && Number.isFinite(v) ? v : undefined);
const text = (v: unknown): string => (typeof v === 'string' ? v : '');

function evidenceOf(x: unknown): Evidence {
  const e = object(x);
  const before = number(e.before);
  const after = number(e.after);
  const [change, low, high] = [number(e.change), number(e.low), number(e.high)];
  const isRatio = e.kind === 'ratio' && change !== undefined && change > 0;
  return {
    text: wordsOf(x),
    ...(before !== undefined && after !== undefined && { before, after }),
    ...(text(e.label) !== '' && { label: text(e.label), unit: text(e.unit) }),
    ...(isRatio && {
      ratio: { at: change, low: low !== undefined && low > 0 ? low : change, high: high ?? change },
    }),
  };
}

/** A sentence as it is; of an object its sentence, or the fact it states, else its keys and values. */
function wordsOf(x: unknown): string {
  if (typeof x === 'string') return x;
  const o = object(x);
  if (Object.keys(o).length === 0) return String(x);
  const because = list(o.because).map(wordsOf);
  if (because.length > 0) return `${text(o.label) || text(o.id)}: ${because.join('; ')}`;
  if (text(o.label) !== '' && (o.before !== undefined || o.change !== undefined)) return factWords(o);
  if (text(o.what) !== '' && text(o.how) !== '') {
    const decides = Array.isArray(o.decides) ? o.decides.join(', ') : text(o.decides);
    return `${o.what}${o.side ? ` (${o.side})` : ''}${decides ? `, which decides ${decides}` : ''}: ${o.how}`;
  }
  const why = [o.text, o.why, o.reason, o.what].find((t) => typeof t === 'string');
  const name = [o.id, o.name, o.signal, o.concept].find((t) => typeof t === 'string');
  if (typeof why === 'string') return typeof name === 'string' ? `${name}: ${why}` : why;
  return Object.entries(o)
    .map(([k, v]) => `${k} ${typeof v === 'object' ? JSON.stringify(v) : String(v)}`)
    .join(', ');
}

/** `queue time: 120 → 860 ms, × 7.2 (6.1 to 8.4), server-metrics`. */
function factWords(o: Record<string, unknown>): string {
  const shown = (v: unknown): string => trim(v as number, 4);
  const [before, after, change] = [number(o.before), number(o.after), number(o.change)];
  const [low, high] = [number(o.low), number(o.high)];
  const unit = text(o.unit);
  const parts = [
    before === undefined || after === undefined ? '' : `${shown(before)} → ${shown(after)}${unit ? ` ${unit}` : ''}`,
    change === undefined || o.kind === 'told'
      ? ''
      : `${o.kind === 'ratio' ? '× ' : 'by '}${shown(change)}${low === undefined || high === undefined ? '' : ` (${shown(low)} to ${shown(high)})`}`,
    text(o.source),
  ].filter((p) => p !== '');
  return parts.length === 0 ? text(o.label) : `${o.label}: ${parts.join(', ')}`;
}
