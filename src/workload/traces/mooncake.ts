/**
 * Traces whose prompts are named by the hashes of their leading blocks, an object a line. A hash covers all before it, so
 * equal ids are equal prefixes: they are replayed as equal text.
 *
 * Mooncake's (Qin et al. 2024): timestamp in milliseconds, input_length, output_length and hash_ids, one for each block of 512
 * tokens. Bailian's (Wang et al. 2025) has the same keys and chat_id, parent_chat_id, turn, type; its timestamp is in seconds,
 * its blocks are of 16 tokens, its sessions are chains of parents.
 */
import { InputError, messageOf, oneLine } from '../../base/errors.ts';
import { type Chunks, eachLine } from '../lines.ts';
import { type RequestFacts, type Trace, TraceBuilder, type TraceOptions } from './trace.ts';

export const MOONCAKE_BLOCK_TOKENS = 512;
export const BAILIAN_BLOCK_TOKENS = 16;

type Line = Readonly<Record<string, unknown>>;

interface Shape {
  readonly format: string;
  /** Microseconds of one unit of the timestamp. */
  readonly unit: number;
  readonly block: number;
  readonly facts?: (line: Line) => RequestFacts;
}

export function readMooncake(chunks: Chunks, what: string, options?: TraceOptions): Promise<Trace> {
  return readHashed(chunks, what, { format: 'mooncake', unit: 1000, block: MOONCAKE_BLOCK_TOKENS }, options);
}

export function readBailian(chunks: Chunks, what: string, options?: TraceOptions): Promise<Trace> {
  // The root of a chat is found by its parents, which come before it.
  const roots = new Map<unknown, string>();
  const facts = ({ chat_id, parent_chat_id, type }: Line): RequestFacts => {
    if (!options?.sessions) return { class: typeof type === 'string' ? oneLine(type, 60) : undefined };
    const root = roots.get(parent_chat_id) ?? String(chat_id);
    roots.set(chat_id, root);
    return { class: typeof type === 'string' ? oneLine(type, 60) : undefined, session: root };
  };
  return readHashed(chunks, what, { format: 'bailian', unit: 1e6, block: BAILIAN_BLOCK_TOKENS, facts }, options);
}

async function readHashed(chunks: Chunks, what: string, shape: Shape, options?: TraceOptions): Promise<Trace> {
  const trace = new TraceBuilder(what, shape.format, options);
  await eachLine(chunks, what, (line, number) => {
    if (line.trim() === '') return true;
    const where = `${what}:${number}`;
    const value = parsed(line, where);
    const { hash_ids } = value;
    const input = lengthOf(value, 'input_length', where);
    const hashes = hash_ids ?? [];
    if (!Array.isArray(hashes) || !hashes.every((id) => Number.isSafeInteger(id) && id >= 0)) {
      throw new InputError(`${where}: hash_ids is not a list of whole numbers`);
    }
    const blocks = Math.ceil(input / shape.block);
    if (hashes.length > blocks) {
      throw new InputError(
        `${where}: ${hashes.length} hash_ids for ${input} tokens, which are ${blocks} blocks of ${shape.block}`,
      );
    }
    return trace.add(
      Math.round(lengthOf(value, 'timestamp', where) * shape.unit),
      input,
      lengthOf(value, 'output_length', where),
      where,
      { ...shape.facts?.(value), blocks: hashes as number[], blockTokens: shape.block },
    );
  });
  return trace.finish();
}

function parsed(line: string, where: string): Line {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    throw new InputError(`${where}: not a JSON object: ${messageOf(error)}`);
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Line;
  throw new InputError(`${where}: not a JSON object`);
}

/** A number, also written as a text. */
function lengthOf(line: Line, key: string, where: string): number {
  const value = line[key];
  const n = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  if (typeof n === 'number' && Number.isFinite(n)) return n;
  throw new InputError(
    `${where}: no number '${key}'${key === 'timestamp' && line.delay !== undefined ? ': it has delays, which are no arrivals' : ''}`,
  );
}
