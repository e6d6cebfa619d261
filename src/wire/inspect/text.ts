/** An inspection for people: a line an event, then what it comes to. */
import { oneLine } from '../../base/errors.ts';
import type { Inspection } from './inspect.ts';

const FROM: Readonly<Record<Inspection['dialectFrom'], string>> = {
  given: 'as given',
  header: 'as its #wire line says',
  detected: 'by its events',
  assumed: 'assumed, nothing showed it: name it with --dialect',
};

export function inspectionText(x: Inspection): string {
  const lines: string[] = [];
  if (x.eventList.length > 0) {
    const width = Math.max(1, String(x.eventList.length - 1).length);
    const named = Math.max(0, ...x.eventList.map((e) => Math.min(40, oneLine(e.event ?? '').length)));
    lines.push(
      `${'#'.padStart(width)}  out  tokens  ${named > 0 ? `${'event'.padEnd(Math.max(5, named))}  ` : ''}what and why`,
    );
    for (const e of x.eventList) {
      const mark = e.output ? (e.index === x.firstOutput ? '▶' : '•') : '';
      const event = named > 0 ? `${oneLine(e.event ?? '', 40).padEnd(Math.max(5, named))}  ` : '';
      const index = x.whole ? '-' : String(e.index);
      lines.push(
        `${index.padStart(width)}  ${mark.padEnd(3)}  ${tokens(e.tokens, e.output).padStart(6)}  ${event}${e.why}`,
      );
    }
    lines.push('');
  }
  const rows: [string, string][] = [
    ['dialect', `${x.dialect} (${FROM[x.dialectFrom]})`],
    [
      'framing',
      x.whole ? 'one body, not a stream: nothing in it can be timed' : (x.framing ?? 'none: the body is empty'),
    ],
    ['events', `${x.events}${x.comments > 0 ? `, and ${x.comments} comments` : ''}`],
    ['output events', outputEvents(x)],
    ['tokens', tokenLine(x)],
    ['usage', usageLine(x)],
    ['finish', x.finish ?? 'none'],
    ['ended by', x.terminator],
    ['outcome', outcomeLine(x)],
  ];
  if (x.model !== null) rows.splice(1, 0, ['model', x.model]);
  const wide = Math.max(...rows.map(([name]) => name.length));
  for (const [name, value] of rows) lines.push(`${name.padEnd(wide)}  ${value}`);
  return `${lines.join('\n')}\n`;
}

function tokens(n: number | null, output: boolean): string {
  if (n !== null) return String(n);
  return output ? '?' : '';
}

function outputEvents(x: Inspection): string {
  if (x.whole) return 'none: not a stream';
  if (x.outputEvents === 0) return '0: no output, so no time to first token';
  const answer = x.firstAnswer === null ? 'no answer' : `first answer #${x.firstAnswer}`;
  const choices =
    x.perChoiceOutput === undefined
      ? ''
      : `; by choice ${Object.entries(x.perChoiceOutput)
          .map(([choice, n]) => `${choice}: ${n}`)
          .join(', ')}`;
  const unknown = x.unclassified > 0 ? `; ${x.unclassified} of a kind not known here` : '';
  return `${x.outputEvents}; first #${x.firstOutput}, ${answer}${choices}${unknown}`;
}

function tokenLine(x: Inspection): string {
  if (x.tokens.n === null) return 'unknown: the stream says no count that can be used (a chunk is not a token)';
  const from =
    x.tokens.source === 'per-chunk'
      ? 'counted chunk by chunk'
      : x.tokens.source === 'usage'
        ? 'from the final usage'
        : 'by a tokenizer';
  const exact =
    x.tokens.exactness === 'exact'
      ? ', one a chunk'
      : x.tokens.exactness === 'inferred'
        ? ', as many as chunks (inferred)'
        : '';
  return `${x.tokens.n} streamed, ${from}${exact}`;
}

function usageLine(x: Inspection): string {
  if (x.usageIn === null && x.usageOut === null) return 'never sent';
  const reasoning = x.reasoningTokens === null ? '' : `, of which reasoning ${x.reasoningTokens}`;
  return `input ${x.usageIn ?? 'unknown'}, output ${x.usageOut ?? 'unknown'}${reasoning}`;
}

function outcomeLine(x: Inspection): string {
  const filed = x.ledger === 'completed' && x.outcome === 'error' ? 'refused without output' : `filed as ${x.ledger}`;
  const why = [x.reason, x.detail].filter((part) => part !== '').join(': ');
  return `${x.outcome} (${filed}${why === '' ? '' : `; ${why}`})`;
}
