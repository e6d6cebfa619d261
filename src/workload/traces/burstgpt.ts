/**
 * BurstGPT (Wang et al. 2024): Timestamp in seconds, Model, Request tokens, Response tokens, Total tokens, Log Type; later
 * files add Session ID (of conversations alone) and Elapsed time, seconds from the request to the whole answer. A request's
 * class is its model and log type. Failures have no response tokens, and some no request tokens.
 */
import { oneLine } from '../../base/errors.ts';
import type { Chunks } from '../lines.ts';
import { eachRow, secondsCell, wholeCell } from './csv.ts';
import { type RequestFacts, type Trace, TraceBuilder, type TraceOptions } from './trace.ts';

function sessionOf(id: string | undefined, elapsed: string | undefined, where: string): RequestFacts {
  const name = id?.trim() ?? '';
  const took = elapsed?.trim() ?? '';
  return {
    // Spreadsheets leave nothing, or "nan", where there is no session.
    session: name === '' || /^(nan|none|null|-1)$/i.test(name) ? undefined : name,
    elapsed: took === '' || /^nan$/i.test(took) ? undefined : secondsCell(took, 'Elapsed time', where),
  };
}

export async function readBurstGpt(chunks: Chunks, what: string, options?: TraceOptions): Promise<Trace> {
  const trace = new TraceBuilder(what, 'burstgpt', options);
  await eachRow(
    chunks,
    what,
    ['Timestamp', 'Request tokens', 'Response tokens'],
    ['Model', 'Log Type', 'Session ID', 'Elapsed time'],
    (cell, where) => {
      const name = [cell('Model'), cell('Log Type')].filter((x) => x?.trim()).join(' ');
      return trace.add(
        secondsCell(cell('Timestamp'), 'Timestamp', where),
        wholeCell(cell('Request tokens'), 'Request tokens', where),
        wholeCell(cell('Response tokens'), 'Response tokens', where),
        where,
        {
          class: oneLine(name, 60) || undefined,
          ...(options?.sessions && sessionOf(cell('Session ID'), cell('Elapsed time'), where)),
        },
      );
    },
  );
  return trace.finish();
}
