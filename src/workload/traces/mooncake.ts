/**
 * Mooncake's traces (Qin et al. 2024): a JSON object a line with timestamp (ms), input_length, output_length and hash_ids,
 * one for each block of 512 prompt tokens. A hash covers all before it, so equal ids are equal prefixes: they are replayed
 * as equal text.
 */
import { InputError, messageOf } from '../../base/errors.ts';
import { type Chunks, eachLine } from '../lines.ts';
import { type Trace, TraceBuilder, type TraceOptions } from './trace.ts';

export const MOONCAKE_BLOCK_TOKENS = 512;

export async function readMooncake(chunks: Chunks, what: string, options?: TraceOptions): Promise<Trace> {
  const trace = new TraceBuilder(what, 'mooncake', options);
  await eachLine(chunks, what, (line, number) => {
    if (line.trim() === '') return true;
    const where = `${what}:${number}`;
    const { timestamp, input_length, output_length, hash_ids } = parsed(line, where);
    if (typeof timestamp !== 'number') throw missing(where, 'timestamp');
    if (typeof input_length !== 'number') throw missing(where, 'input_length');
    if (typeof output_length !== 'number') throw missing(where, 'output_length');
    const hashes = hash_ids ?? [];
    if (!Array.isArray(hashes) || !hashes.every((id) => Number.isSafeInteger(id) && id >= 0)) {
      throw new InputError(`${where}: hash_ids is not a list of whole numbers`);
    }
    const blocks = Math.ceil(input_length / MOONCAKE_BLOCK_TOKENS);
    if (hashes.length > blocks) {
      throw new InputError(
        `${where}: ${hashes.length} hash_ids for ${input_length} tokens, which are ${blocks} blocks of ${MOONCAKE_BLOCK_TOKENS}`,
      );
    }
    return trace.add(
      Math.round(timestamp * 1000),
      input_length,
      output_length,
      where,
      undefined,
      hashes as number[],
      MOONCAKE_BLOCK_TOKENS,
    );
  });
  return trace.finish();
}

function parsed(line: string, where: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    throw new InputError(`${where}: not a JSON object: ${messageOf(error)}`);
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new InputError(`${where}: not a JSON object`);
}

const missing = (where: string, key: string): InputError => new InputError(`${where}: no number '${key}'`);
