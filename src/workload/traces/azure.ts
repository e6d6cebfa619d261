/** The Azure LLM inference traces of 2023 and 2024: TIMESTAMP, ContextTokens, GeneratedTokens. */
import type { Chunks } from '../lines.ts';
import { dateCell, eachRow, wholeCell } from './csv.ts';
import { type Trace, TraceBuilder, type TraceOptions } from './trace.ts';

export async function readAzure(chunks: Chunks, what: string, options?: TraceOptions): Promise<Trace> {
  const trace = new TraceBuilder(what, 'azure', options);
  await eachRow(chunks, what, ['TIMESTAMP', 'ContextTokens', 'GeneratedTokens'], [], (cell, where) =>
    trace.add(
      dateCell(cell('TIMESTAMP'), 'TIMESTAMP', where),
      wholeCell(cell('ContextTokens'), 'ContextTokens', where),
      wholeCell(cell('GeneratedTokens'), 'GeneratedTokens', where),
      where,
    ),
  );
  return trace.finish();
}
