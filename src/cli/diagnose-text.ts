/** A diagnosis for people: a terminal, and Markdown for an incident page. */
import { oneLine } from '../base/errors.ts';
import type { Amount, Diagnosis, Fact, FixCheck, RankedCause, Support } from '../diagnose/index.ts';
import { NAMED, TPOT_PARTS } from '../diagnose/index.ts';
import { paint, table, wrapText } from '../report/text.ts';

interface Output {
  readonly color: boolean;
  readonly columns: number;
}

export function diagnosisText(d: Diagnosis, fixes: readonly FixCheck[], out: Output): string {
  const p = paint(out.color);
  const width = Math.max(60, Math.min(120, out.columns));
  const lines: string[] = [];
  const say = (text: string, lead = '  ', hang = '    '): void =>
    void lines.push(wrapText(oneLine(text, 2000), width, lead, hang));
  const color =
    d.verdict === 'cause'
      ? d.regression === 'server'
        ? p.red
        : p.yellow
      : d.verdict === 'unknown'
        ? p.yellow
        : p.green;
  lines.push(`${p.bold('Verdict')}  ${color(d.verdict)}`);
  say(`${d.summary}.`);
  if (d.verdict !== 'not-shown') say(`${regressionText(d)}.`);
  lines.push('', p.bold('Is there a change?'));
  lines.push(
    ...table([
      ['', 'before', 'after', 'ratio', '95 % interval', ''],
      ...d.change.changes.map((c) => [
        c.label,
        number(c.a),
        number(c.b),
        `×${c.ratio.toFixed(2)}`,
        `×${c.low.toFixed(2)} – ×${c.high.toFixed(2)}`,
        c.shown ? (c.ratio > 1 ? 'up' : 'down') : 'not shown',
      ]),
    ]),
  );
  const attribution = attributionRows(d);
  if (attribution.length > 1) {
    lines.push('', p.bold('Where the change of mean TTFT went (ms)'), ...table(attribution));
    for (const f of factorTexts(d)) say(f);
    const tail = tailText(d);
    if (tail) say(tail);
  }
  const later = tpotRows(d);
  if (later.length > 1) {
    lines.push('', p.bold('Where the change of mean TPOT went (ms a token)'), ...table(later));
    for (const note of d.attributionTpot.notes) say(note);
  }
  if (d.causes.length > 0) {
    lines.push('', p.bold(d.reversed ? 'Causes that are gone, ranked' : 'Causes, ranked'));
    d.causes.slice(0, shownCauses(d)).forEach((c, i) => {
      lines.push(`  ${i + 1}. ${p.bold(c.cause.id)}  ${percent(c.confidence)}  ${c.cause.label}`);
      for (const e of c.evidence) say(`+ ${supportText(e)}`, '     ', '       ');
      for (const e of c.against) say(`− ${supportText(e)}`, '     ', '       ');
      if (c.confidence >= 0.2) {
        say(`knob: ${c.cause.knob}`, '     ', '       ');
        say(`price: ${c.cause.price}`, '     ', '       ');
        say(`would contradict it: ${c.cause.contradictedBy}`, '     ', '       ');
      }
    });
    if (d.none >= 0.05) lines.push(`     none of these: ${percent(d.none)}`);
  }
  for (const fix of fixes) say(fix.text, '  What would fix it: ', '    ');
  if (d.ruledOut.length > 0) {
    lines.push('', p.bold('Ruled out'));
    for (const r of d.ruledOut) say(`${r.label}: ${r.because.map(factText).join('; ')}`);
  }
  if (d.missing.length > 0) {
    lines.push('', p.bold('Missing evidence'));
    for (const m of d.missing)
      say(
        `${m.what} (${m.side === 'both' ? 'both sides' : m.side})${m.decides.length > 0 ? `, would decide on ${m.decides.join(', ')}` : ''}: ${m.how}`,
      );
  }
  if (d.notes.length > 0) {
    lines.push('', p.bold('To know when reading this'));
    for (const n of d.notes.slice(0, 20)) say(n, '  · ', '    ');
  }
  return `${lines.join('\n')}\n`;
}

/** All from a fifth on, at least two where nothing was named. */
function shownCauses(d: Diagnosis): number {
  const likely = d.causes.filter((c) => c.confidence >= 0.2).length;
  return Math.max(likely, d.verdict === 'unknown' ? Math.min(3, d.causes.length) : 1);
}

function regressionText(d: Diagnosis): string {
  switch (d.regression) {
    case 'server':
      return 'the server got worse';
    case 'own-setting':
      return 'a setting of your own was changed, and nothing else is told: not a regression of the software';
    case 'elsewhere':
      return `not a regression of the server: the cause lies with ${d.causes[0]?.cause.locus === 'path' ? 'the way to the client' : `the ${d.causes[0]?.cause.locus}`}`;
    case 'none':
      return d.verdict === 'trade' ? 'not a regression: one metric was bought with another' : 'not a regression';
    default:
      return 'whether the server got worse is not known';
  }
}

const NAMES = [
  ['client', 'client queue'],
  ['connect', 'connecting and sending'],
  ['queue', 'server queue'],
  ['prefill', 'prefill'],
  ['frontend', 'frontend (server TTFT − queue − prefill)'],
  ['delivery', 'delivery (client − server)'],
] as const;

function attributionRows(d: Diagnosis): string[][] {
  const { total, parts, residual } = d.attribution;
  if (!total) return [];
  const row = rowOf(total);
  return [
    ['', 'Δ', '95 % interval', 'share', 'from'],
    ...NAMES.map(([id, name]) => row(name, parts[id])),
    row('residual', residual),
    row('Δ mean TTFT', total),
  ];
}

const rowOf =
  (total: Amount) =>
  (name: string, a: Amount | undefined): string[] =>
    a
      ? [name, signed(a.value), `${signed(a.low)} … ${signed(a.high)}`, share(a.value, total.value), SOURCE[a.source]]
      : [name, 'not known', '', '', ''];

const TPOT_NAMES = {
  batch: 'batch growth',
  interference: 'prefill interference',
  preemption: 'preemption',
  speculation: 'speculative acceptance',
  stalls: 'synchronous stalls',
} as const;

/** Where there is a change of TPOT to speak of: a table of five times nothing helps no one. */
function tpotRows(d: Diagnosis): string[][] {
  const { total, parts, residual } = d.attributionTpot;
  const moved = d.change.changes.some((c) => (c.id === 'tpot' || c.id === 'itl_p50' || c.id === 'itl_p99') && c.shown);
  if (!total || !moved) return [];
  const row = rowOf(total);
  return [
    ['', 'Δ', '95 % interval', 'share', 'from'],
    ...TPOT_PARTS.map((part) => row(TPOT_NAMES[part], parts[part])),
    row('residual', residual),
    row('Δ mean TPOT', total),
  ];
}

const SOURCE = {
  requests: 'client',
  'server-per-request': 'server, by request',
  'server-metrics': 'server metrics',
  told: 'told',
} as const;

function factorTexts(d: Diagnosis): string[] {
  const { factors } = d.attribution;
  if (factors.length === 0) return [];
  const parts = factors.map((f) => `${f.name} ${number(f.a)} → ${number(f.b)}: ${signed(f.ms)} ms`);
  return [`Δprefill by its factors (midpoint rule): ${parts.join('; ')}`];
}

function tailText(d: Diagnosis): string | undefined {
  const { tail } = d.attribution;
  if (!tail) return undefined;
  const parts = [...NAMES, ['residual', 'residual'] as const].flatMap(([id, name]) =>
    tail.parts[id] === undefined ? [] : [`${name} ${signed(tail.parts[id])}`],
  );
  return `Slowest ${(100 * tail.share).toFixed(0)} % of requests (${tail.n[0]} against ${tail.n[1]}), what a P99 is made of: mean ${signed(tail.total)} ms = ${parts.join(', ')}`;
}

function supportText({ fact }: Support): string {
  return `${factText(fact)}  [${fact.source === 'changes' ? 'changes' : SOURCE[fact.source]}: ${fact.population}]`;
}

export function factText(f: Fact): string {
  if (f.kind === 'told') return f.effect > 0 ? f.label : `not: ${f.label}`;
  if (f.a === undefined || f.b === undefined)
    return f.kind === 'share' ? `${f.label}: ${(100 * f.effect).toFixed(0)} % of ΔTTFT` : f.label;
  const unit =
    f.unit === 'share of ΔTTFT'
      ? ' ms'
      : f.unit === 'count' || f.unit === 'share' || f.unit === 'told'
        ? ''
        : ` ${f.unit}`;
  const change =
    f.kind === 'ratio'
      ? `×${Math.exp(f.effect).toFixed(2)}`
      : f.kind === 'share'
        ? `${(100 * f.effect).toFixed(0)} % of ΔTTFT`
        : signed(f.b - f.a);
  return `${f.label} ${number(f.a)} → ${number(f.b)}${unit} (${change})`;
}

export function diagnosisMarkdown(d: Diagnosis, fixes: readonly FixCheck[]): string {
  const lines: string[] = [
    `## Diagnosis: ${d.verdict}`,
    '',
    `${md(d.summary)}. ${md(capital(regressionText(d)))}.`,
    '',
  ];
  lines.push('| figure | before | after | ratio | 95 % interval | |', '|---|---:|---:|---:|---|---|');
  for (const c of d.change.changes)
    lines.push(
      `| ${c.label} | ${number(c.a)} | ${number(c.b)} | ×${c.ratio.toFixed(2)} | ×${c.low.toFixed(2)} – ×${c.high.toFixed(2)} | ${c.shown ? (c.ratio > 1 ? 'up' : 'down') : 'not shown'} |`,
    );
  const rows = attributionRows(d);
  if (rows.length > 1) {
    lines.push(
      '',
      '**Where the change of mean TTFT went (ms)**',
      '',
      '| part | Δ | 95 % interval | share | from |',
      '|---|---:|---|---:|---|',
    );
    for (const [name = '', ...cells] of rows.slice(1)) lines.push(`| ${name} | ${cells.join(' | ')} |`);
    lines.push('', ...factorTexts(d).map(md));
    const tail = tailText(d);
    if (tail) lines.push('', md(tail));
  }
  const later = tpotRows(d);
  if (later.length > 1) {
    lines.push(
      '',
      '**Where the change of mean TPOT went (ms a token)**',
      '',
      '| part | Δ | 95 % interval | share | from |',
      '|---|---:|---|---:|---|',
    );
    for (const [name = '', ...cells] of later.slice(1)) lines.push(`| ${name} | ${cells.join(' | ')} |`);
    if (d.attributionTpot.notes.length > 0) lines.push('', ...d.attributionTpot.notes.map(md));
  }
  for (const c of d.causes.slice(0, shownCauses(d))) lines.push('', ...causeMarkdown(c));
  for (const fix of fixes) lines.push('', `**What would fix it**: ${md(fix.text)}`);
  const list = (title: string, items: readonly string[]): void => {
    if (items.length > 0) lines.push('', `**${title}**`, '', ...items.map((i) => `- ${md(i)}`));
  };
  list(
    'Ruled out',
    d.ruledOut.map((r) => `${r.label}: ${r.because.map(factText).join('; ')}`),
  );
  list(
    'Missing evidence',
    d.missing.map((m) => `${m.what} (${m.side}): ${m.how}`),
  );
  list('Notes', d.notes);
  return `${lines.join('\n')}\n`;
}

function causeMarkdown({ cause, confidence, evidence, against }: RankedCause): string[] {
  return [
    `### ${confidence >= NAMED ? '' : 'Perhaps: '}${cause.id} (${percent(confidence)})`,
    '',
    `${capital(cause.label)}.`,
    '',
    ...evidence.map((e) => `- for: ${md(supportText(e))}`),
    ...against.map((e) => `- against: ${md(supportText(e))}`),
    `- knob: ${cause.knob}; price: ${cause.price}`,
  ];
}

/** Text from outside, safe in a table cell and as Markdown. */
const md = (text: string): string =>
  oneLine(text, 2000).replace(/[\\`*_[\]<>|]/g, (c) =>
    c === '_' ? '\\_' : c === '<' ? '&lt;' : c === '>' ? '&gt;' : `\\${c}`,
  );
const capital = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);
const percent = (x: number): string => (x > 0.995 ? '> 99 %' : `${(100 * x).toFixed(0)} %`);

function number(x: number): string {
  const size = Math.abs(x);
  // Rounding of sums: nothing here is told to a billionth.
  if (size < 1e-9) return '0';
  if (size >= 100) return Math.round(x).toLocaleString('en');
  return String(Number(x.toPrecision(size < 0.1 ? 2 : 3)));
}

function signed(x: number): string {
  const text = number(x);
  return text === '0' ? text : x > 0 ? `+${text}` : text.replace('-', '−');
}

function share(x: number, total: number): string {
  return Math.abs(total) > 1e-9 ? `${Math.round((100 * x) / total) || 0} %` : '';
}
