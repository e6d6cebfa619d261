/** The JSON of a diagnosis, read leniently: keys may be added, and what is not there is not shown. Pure. */
export interface Told {
  readonly verdict: string;
  readonly causes: readonly {
    readonly id: string;
    readonly title: string;
    readonly confidence: number | string | undefined;
    readonly evidence: readonly Evidence[];
  }[];
  readonly attribution: readonly { readonly name: string; readonly ms: number }[];
  /** Their sum, or the change as it is told. */
  readonly total: number;
  readonly ruledOut: readonly string[];
  readonly missing: readonly string[];
}

export interface Evidence {
  readonly text: string;
  readonly before?: number;
  readonly after?: number;
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
  const total = parts.find((p) => p.name === 'total');
  const attribution = parts.filter((p) => p.name !== 'total');
  return {
    verdict: typeof d.verdict === 'string' ? d.verdict : String(object(d.verdict).is),
    causes: list(d.causes).map((c, i) => {
      const { id, title, confidence, evidence } = object(c);
      const name = typeof id === 'string' ? id : `cause ${i + 1}`;
      return {
        id: name,
        title: typeof title === 'string' ? title : name.replaceAll('-', ' '),
        confidence: typeof confidence === 'number' || typeof confidence === 'string' ? confidence : undefined,
        evidence: list(evidence).map(evidenceOf),
      };
    }),
    attribution,
    total: total?.ms ?? attribution.reduce((sum, p) => sum + p.ms, 0),
    ruledOut: list(d.ruled_out).map(wordsOf),
    missing: list(d.missing).map(wordsOf),
  };
}

function evidenceOf(x: unknown): Evidence {
  const e = object(x);
  const number = (v: unknown): number | undefined => (typeof v === 'number' && Number.isFinite(v) ? v : undefined);
  const before = number(e.before);
  const after = number(e.after);
  return {
    text: wordsOf(x),
    ...(before !== undefined && after !== undefined && { before, after }),
  };
}

/** A sentence as it is; of an object its sentence, else its keys and values. */
function wordsOf(x: unknown): string {
  if (typeof x === 'string') return x;
  const o = object(x);
  const why = [o.text, o.why, o.reason, o.what].find((t) => typeof t === 'string');
  const name = [o.id, o.name, o.signal, o.concept].find((t) => typeof t === 'string');
  if (typeof why === 'string') return typeof name === 'string' ? `${name}: ${why}` : why;
  if (Object.keys(o).length === 0) return String(x);
  return Object.entries(o)
    .map(([k, v]) => `${k} ${typeof v === 'object' ? JSON.stringify(v) : String(v)}`)
    .join(', ');
}
