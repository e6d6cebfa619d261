/**
 * BurstGPT (Wang et al. 2024): Timestamp in seconds, Model, Request tokens, Response tokens, Total tokens, Log Type; later
 * files add Session ID and Elapsed time. A request's class is its model and log type. Failures have no response tokens.
 */
import { oneLine } from '../../base/errors.ts';
import type { Chunks } from '../lines.ts';
import { eachRow, secondsCell, wholeCell } from './csv.ts';
import { type Trace, TraceBuilder, type TraceOptions } from './trace.ts';

export async function readBurstGpt(chunks: Chunks, what: string, options?: TraceOptions): Promise<Trace> {
  const trace = new TraceBuilder(what, 'burstgpt', options);
  await eachRow(
    chunks,
    what,
    ['Timestamp', 'Request tokens', 'Response tokens'],
    ['Model', 'Log Type'],
    (cell, where) => {
      const name = [cell('Model'), cell('Log Type')].filter((x) => x?.trim()).join(' ');
      return trace.add(
        secondsCell(cell('Timestamp'), 'Timestamp', where),
        wholeCell(cell('Request tokens'), 'Request tokens', where),
        wholeCell(cell('Response tokens'), 'Response tokens', where),
        where,
        oneLine(name, 60) || undefined,
      );
    },
  );
  return trace.finish();
}
