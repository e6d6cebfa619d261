/**
 * The columns of `requests-*.parquet`, one table for writing, reading and the reference in docs/run-folder.md. Only ever
 * appended to: a column added later is NULL in older runs.
 *
 * Rows travel to the writing thread and back as float64 numbers (every integer here is below 2^53), NaN for what is
 * missing; DuckDB casts to and from the stored types, far faster than boxing 64-bit integers in JavaScript.
 */
import type { FinishClass, Phase } from '../core/outcome.ts';
import { OUTCOMES } from '../core/outcome.ts';

/** Stable order, only ever appended to: the words stand in the file, their places only in memory. */
export const PHASES: readonly Phase[] = ['unsent', 'connecting', 'sending', 'waiting', 'streaming', 'done'];
export const FINISHES: readonly FinishClass[] = ['stop', 'length', 'tool', 'filtered', 'aborted', 'other'];

interface Described {
  readonly name: string;
  readonly unit: string;
  readonly meaning: string;
  /** The run schema's version that added it. */
  readonly since: 1;
}
export interface NumberColumn extends Described {
  readonly kind: 'integer' | 'flag' | 'float' | 'word';
  /** Of a `word`: the words it may be. */
  readonly words?: readonly string[];
}
export interface TextColumn extends Described {
  readonly kind: 'text';
}
export interface ListColumn extends Described {
  readonly kind: 'list';
  /** SQL type of an element, in the file and on its way there. */
  readonly element: string;
  readonly carrier: string;
}
export type Column = NumberColumn | TextColumn | ListColumn;

type Named<C extends Column, N extends string> = C & { readonly name: N };

const integer = <N extends string>(name: N, unit: string, meaning: string): Named<NumberColumn, N> => ({
  kind: 'integer',
  name,
  unit,
  meaning,
  since: 1,
});
const flag = <N extends string>(name: N, meaning: string): Named<NumberColumn, N> => ({
  kind: 'flag',
  name,
  unit: '',
  meaning,
  since: 1,
});
const word = <N extends string>(name: N, words: readonly string[], meaning: string): Named<NumberColumn, N> => ({
  kind: 'word',
  name,
  unit: '',
  meaning,
  since: 1,
  words,
});
const millis = <N extends string>(name: N, meaning: string): Named<NumberColumn, N> => ({
  kind: 'float',
  name,
  unit: 'ms',
  meaning,
  since: 1,
});
const text = <N extends string>(name: N, meaning: string): Named<TextColumn, N> => ({
  kind: 'text',
  name,
  unit: '',
  meaning,
  since: 1,
});
const stamp = <N extends string>(name: N, meaning: string): Named<NumberColumn, N> =>
  integer(name, 'µs since the run’s epoch', meaning);

/** Numbers, in the order of their slots in a batch. */
export const NUMBERS = [
  integer('operation', '', 'Index of the operation in the run’s seeded sequence of offers'),
  integer('attempt', '', '0 for the first attempt, counted up by retries and hedges'),
  integer('attempts', '', 'Attempts the row stands for: 1, or 0 when it was never sent'),
  flag('lost_hedge', 'A hedge that lost: load, not an outcome'),
  integer('session', '', 'Multi-turn session; NULL outside one'),
  integer('turn', '', 'Turn within the session'),
  integer('asked_input', 'tokens', 'Prompt length asked for'),
  integer('asked_output', 'tokens', 'Output length asked for, at most'),
  integer('asked_choices', '', 'Choices asked for'),
  flag('asked_stream', 'A stream was asked for'),
  stamp('scheduled_us', 'When the arrival process said it should start'),
  stamp('dispatched_us', 'Handed to the HTTP client'),
  stamp('connected_us', 'Had a connection'),
  stamp('sent_us', 'Request written whole'),
  stamp('headers_us', 'Response headers received'),
  stamp('first_event_us', 'First parsed stream event of any kind'),
  stamp('first_output_us', 'First output event'),
  stamp('first_answer_us', 'First output event that is not reasoning'),
  stamp('last_output_us', 'Last output event'),
  stamp('ended_us', 'Ended, or given up; NULL where observation stopped first'),
  flag('connection_reused', 'The socket had served an earlier request; NULL without a connection'),
  integer('status', '', 'HTTP status'),
  flag('streamed', 'False when the answer came whole: nothing inside it can be timed'),
  integer('usage_input', 'tokens', 'Prompt tokens by the server’s count'),
  integer('usage_output', 'tokens', 'Generated tokens by the server’s count, reasoning included'),
  integer('usage_reasoning', 'tokens', 'Of usage_output, reasoning'),
  integer('usage_cached_input', 'tokens', 'Of usage_input, found in a prefix cache'),
  integer('unseen_end_tokens', 'tokens', 'End tokens that usage counts and nobody saw'),
  integer('tokenized', 'tokens', 'Output tokens by a tokenizer the user named'),
  word('outcome', OUTCOMES, 'How the attempt ended, before any contract'),
  word('phase', PHASES, 'Where it stood when it ended'),
  word('finish', FINISHES, 'The worst finish over the choices, folded over dialects'),
  flag('implied_end', 'The dialect marks no end: a clean early end would look the same'),
  integer('events', '', 'Parsed stream events'),
  integer('coalesced', '', 'Events that shared an earlier one’s read, and so its stamp'),
  integer('unclassified', '', 'Chunks of a kind not known'),
  millis('server_queue_ms', 'The server’s own queue time, on its own clock: evidence only'),
  millis('server_prefill_ms', 'The server’s own prefill time'),
  millis('server_decode_ms', 'The server’s own decode time'),
  millis('server_e2e_ms', 'The server’s own total time'),
  millis('server_load_ms', 'The server’s time to load the model'),
  millis('queued_ms', 'How long a proxy’s own concurrency cap held it back; NULL without a cap'),
  stamp('first_written_us', 'First output written on to a proxy’s client; the other stamps are receipts'),
  stamp('last_written_us', 'Last output written on to it'),
  millis('stalled_ms', 'How long the upstream was kept waiting because a proxy’s client read slowly'),
] as const satisfies readonly NumberColumn[];

export const TEXTS = [
  text('class', 'Traffic class'),
  text('connection_http', 'HTTP version of the connection: 1.0, 1.1, 2'),
  text('reason', 'Why, in one word of ours; NULL when completed'),
  text('detail', 'Why, in the server’s or system’s words, cleaned and cut; NULL when there are none'),
  text('finish_reason', 'The server’s own finish word, choices joined by |'),
  text('model', 'The model by the server’s name for it'),
  text('tenant', 'Who asked, as a proxy was told by a header; of bounded cardinality'),
  text('upstream', 'Where a proxy sent it'),
  text('request_id', 'x-request-id as a proxy passed it on'),
  text('trace_id', 'W3C trace id the caller sent to a proxy'),
] as const satisfies readonly TextColumn[];

const list = (name: string, element: string, carrier: string, unit: string, meaning: string): ListColumn => ({
  kind: 'list',
  name,
  element,
  carrier,
  unit,
  meaning,
  since: 1,
});

/** A list is empty where every chunk has the usual value, has one element where all share another, else one a chunk. */
export const LISTS = [
  list('chunk_us', 'BIGINT', 'DOUBLE', 'µs since scheduled_us', 'Receipt of each chunk (output event), in order'),
  list(
    'chunk_tokens',
    'INTEGER',
    'INTEGER',
    'tokens',
    'Tokens in each chunk, −1 unknown. Empty: all unknown. One element: it holds for all',
  ),
  list(
    'chunk_kind',
    'UTINYINT',
    'UTINYINT',
    '0 text, 1 reasoning, 2 summary, 3 refusal, 4 tool, 5 unclassified',
    'Kind of each chunk. Empty: all text. One element: it holds for all',
  ),
  list(
    'chunk_choice',
    'USMALLINT',
    'USMALLINT',
    '',
    'Choice each chunk belongs to. Empty: all 0. One element: it holds for all',
  ),
] as const satisfies readonly ListColumn[];

export const COLUMNS: readonly Column[] = [...NUMBERS, ...TEXTS, ...LISTS];

export type NumberName = (typeof NUMBERS)[number]['name'];
export type TextName = (typeof TEXTS)[number]['name'];

/** Where each number stands in a batch. */
export const SLOT = Object.fromEntries(NUMBERS.map((column, i) => [column.name, i])) as Readonly<
  Record<NumberName, number>
>;

export const TEXT_SLOT = Object.fromEntries(TEXTS.map((column, i) => [column.name, i])) as Readonly<
  Record<TextName, number>
>;

/** The type a column has in the file, as SQL spells it. */
export function storedType(column: Column): string {
  switch (column.kind) {
    case 'integer':
      return 'BIGINT';
    case 'flag':
      return 'BOOLEAN';
    case 'float':
      return 'DOUBLE';
    case 'word':
    case 'text':
      return 'VARCHAR';
    case 'list':
      return `${column.element}[]`;
  }
}

/** The type it has on its way between JavaScript and DuckDB. */
export function carrierType(column: Column): string {
  if (column.kind === 'text') return 'VARCHAR';
  return column.kind === 'list' ? `${column.carrier}[]` : 'DOUBLE';
}

const NAN = `'NaN'::DOUBLE`;
const wordsOf = (column: NumberColumn): string => `[${(column.words ?? []).map((w) => `'${w}'`).join(', ')}]`;

/** SQL from the carrier to the stored form. */
export function toStored(column: Column): string {
  const { name } = column;
  switch (column.kind) {
    case 'integer':
      return `TRY_CAST(nullif(${name}, ${NAN}) AS BIGINT) AS ${name}`;
    case 'flag':
      return `CAST(nullif(${name}, ${NAN}) AS BOOLEAN) AS ${name}`;
    case 'float':
      return `nullif(${name}, ${NAN}) AS ${name}`;
    case 'word':
      return `${wordsOf(column)}[CAST(nullif(${name}, ${NAN}) AS INTEGER) + 1] AS ${name}`;
    case 'text':
      return name;
    case 'list':
      return column.carrier === column.element ? name : `CAST(${name} AS ${storedType(column)}) AS ${name}`;
  }
}

/** SQL from the stored form to the carrier, without NULLs in numbers and lists. */
export function toCarrier(column: Column): string {
  const { name } = column;
  switch (column.kind) {
    case 'integer':
    case 'float':
      return `coalesce(CAST(${name} AS DOUBLE), ${NAN}) AS ${name}`;
    case 'flag':
      return `coalesce(CAST(CAST(${name} AS INTEGER) AS DOUBLE), ${NAN}) AS ${name}`;
    case 'word':
      return `coalesce(CAST(list_position(${wordsOf(column)}, ${name}) - 1 AS DOUBLE), ${NAN}) AS ${name}`;
    case 'text':
      return name;
    case 'list':
      return `coalesce(CAST(${name} AS ${carrierType(column)}), []) AS ${name}`;
  }
}

/** No row, of every column: laid beside a file of an earlier version, it lends the columns that file has not. */
export const NO_ROW = `SELECT ${COLUMNS.map((c) => `NULL::${storedType(c)} AS ${c.name}`).join(', ')} WHERE false`;

/** What a reader selects: every column as its carrier, in order, and last a hash of the texts together (`TextReader`). */
export const CARRIERS = [...COLUMNS.map(toCarrier), `hash(${TEXTS.map((t) => t.name).join(', ')}) AS texts_hash`];
