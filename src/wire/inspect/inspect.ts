/** Explains a captured response body: every event, what counted as output and why, tokens and their source, the outcome. */
import { type FinishClass, finishClass, type Outcome } from '../../core/outcome.ts';
import type { RequestRecord } from '../../core/record.ts';
import { Recorder } from '../../core/recorder.ts';
import { isAnswer, type OutputKind, type StreamEvent } from '../../core/stream.ts';
import { streamedTokens, type TokenExactness, type TokenSource } from '../../core/tokens.ts';
import { streamDecoder } from '../decoder.ts';
import { DIALECT_NAMES, type DialectName } from '../dialect.ts';
import type { Frame, FramingName } from '../framing/frame.ts';
import { isObject, textOf } from '../json.ts';
import { type Header, openCapture } from './capture.ts';
import { detectInBody } from './detect.ts';
import { explain } from './explain.ts';

export interface InspectOptions {
  readonly dialect?: DialectName;
  /** Of the response, where it is known. */
  readonly contentType?: string;
}

export interface InspectedEvent {
  /** From 0, over dispatched data events. */
  readonly index: number;
  /** The SSE event name. */
  readonly event?: string;
  readonly output: boolean;
  /** Of each chunk in the event. */
  readonly kinds: readonly OutputKind[];
  readonly choices: readonly number[];
  /** Tokens by the event's own count, summed over its chunks; null where unknown. */
  readonly tokens: number | null;
  /** Visible text of its chunks. */
  readonly text?: string;
  /** Why it is output, or what it is instead. */
  readonly why: string;
}

/** Keys are those of the samples' `expect`; an index or count that is not there is null, never 0. */
export interface Inspection {
  readonly dialect: DialectName;
  /** Who said so: the caller, the capture's `#wire` line, the body itself, or nobody. */
  readonly dialectFrom: 'given' | 'header' | 'detected' | 'assumed';
  readonly framing: FramingName | null;
  /** Dispatched data events, `[DONE]` among them; 0 for a body that is no stream. */
  readonly events: number;
  readonly comments: number;
  readonly firstOutput: number | null;
  readonly firstAnswer: number | null;
  readonly outputEvents: number;
  readonly usageIn: number | null;
  readonly usageOut: number | null;
  readonly reasoningTokens: number | null;
  /** Gemini's own count of the answer, which its usage tells apart from thoughts. */
  readonly candidateTokens?: number;
  /** The server's words, choices joined by `|`. */
  readonly finish: string | null;
  readonly outcome: 'ok' | 'error' | 'truncated' | 'rejected';
  /** The outcome as the ledger of a run files it, and why. */
  readonly ledger: Outcome;
  readonly reason: string;
  readonly detail: string;
  readonly terminator: string;
  /** Output events by choice, where there are several. */
  readonly perChoiceOutput?: Readonly<Record<string, number>>;
  /** Growth of the usage count from data event to data event, where it came with the output. */
  readonly tokenIncrements?: readonly number[];
  /** Streamed tokens, and where the number is from. */
  readonly tokens: { readonly n: number | null; readonly source: TokenSource; readonly exactness: TokenExactness };
  readonly unclassified: number;
  /** The body was one whole answer or error, not a stream. */
  readonly whole: boolean;
  readonly model: string | null;
  readonly eventList: readonly InspectedEvent[];
}

interface Seen {
  readonly event: StreamEvent;
  readonly frame: Frame | undefined;
}

/** @param bytes a response body as it came, after an optional `#wire {json}` line and the headers that `curl -i` prints. */
export function inspectCapture(bytes: Uint8Array, options: InspectOptions = {}): Inspection {
  const { header, http, body } = openCapture(bytes);
  const { dialect, from } = dialectFor(body, options, header);
  const decoder = streamDecoder(dialect, options.contentType ?? http?.contentType ?? contentTypeOf(header));
  const seen: Seen[] = [];
  const keep = (event: StreamEvent, frame?: Frame) => void seen.push({ event, frame });
  decoder.push(body, keep);
  decoder.end(keep);

  const record = recordOf(seen, http?.status ?? 200);
  const whole = seen.some((s) => s.event.whole === true);
  const stream = whole ? [] : seen.filter((s) => s.frame !== undefined);
  const outputs = stream.filter((s) => s.event.outputs.length > 0);
  const indexOf = (found: Seen | undefined) => (found === undefined ? null : stream.indexOf(found));
  const { usage } = record;
  const tokens = streamedTokens(record);
  const increments = incrementsOf(stream);
  const byChoice = perChoice(stream);
  return {
    dialect,
    dialectFrom: from,
    framing: decoder.framing ?? null,
    events: stream.length,
    comments: decoder.comments,
    firstOutput: indexOf(outputs[0]),
    firstAnswer: indexOf(outputs.find((s) => s.event.outputs.some((part) => isAnswer(part.kind)))),
    outputEvents: outputs.length,
    usageIn: usage?.input ?? null,
    usageOut: usage?.output ?? null,
    reasoningTokens: usage?.reasoning ?? null,
    ...(dialect === 'gemini.stream' &&
      usage?.output !== undefined && { candidateTokens: usage.output - (usage.reasoning ?? 0) }),
    finish: record.finishReason ?? null,
    outcome: verdictOf(record, whole),
    ledger: record.outcome,
    reason: record.reason,
    detail: record.detail,
    terminator: terminatorOf(dialect, seen, record, whole),
    ...(byChoice && { perChoiceOutput: byChoice }),
    ...(increments && { tokenIncrements: increments }),
    tokens: { n: tokens.n ?? null, source: tokens.source, exactness: tokens.exactness },
    unclassified: record.unclassified,
    whole,
    model: record.model ?? null,
    eventList: (whole ? seen : stream).map(({ event, frame }, index) => inspected(event, frame, index)),
  };
}

function inspected(event: StreamEvent, frame: Frame | undefined, index: number): InspectedEvent {
  const known = event.outputs.length > 0 && event.outputs.every((part) => part.tokens !== undefined);
  const text = event.outputs.map((part) => part.text ?? '').join('');
  return {
    index,
    ...(frame?.event !== undefined && { event: frame.event }),
    output: event.outputs.length > 0,
    kinds: event.outputs.map((part) => part.kind),
    choices: event.outputs.map((part) => part.choice),
    tokens: known ? event.outputs.reduce((sum, part) => sum + (part.tokens ?? 0), 0) : null,
    ...(text !== '' && { text }),
    why: explain(event, frame),
  };
}

function dialectFor(
  body: Uint8Array,
  options: InspectOptions,
  header: Header,
): { dialect: DialectName; from: Inspection['dialectFrom'] } {
  if (options.dialect !== undefined) return { dialect: options.dialect, from: 'given' };
  const named = DIALECT_NAMES.find((name) => name === header.format);
  if (named !== undefined) return { dialect: named, from: 'header' };
  const detected = detectInBody(body);
  return detected === undefined ? { dialect: 'openai.chat', from: 'assumed' } : { dialect: detected, from: 'detected' };
}

function contentTypeOf(header: Header): string | undefined {
  if (header.framing === 'ndjson') return 'application/x-ndjson';
  if (header.framing === 'json') return 'application/json';
  return undefined;
}

function malformedOf(seen: readonly Seen[]): string {
  return seen.find((s) => s.event.malformed !== undefined)?.event.malformed ?? '';
}

/** The record a run would have made, on a clock that counts events. */
function recordOf(seen: readonly Seen[], status: number): RequestRecord {
  const choices = new Set<number>();
  for (const { event } of seen) {
    for (const part of event.outputs) choices.add(part.choice);
    for (const finish of event.finishes ?? []) choices.add(finish.choice);
  }
  const recorder = new Recorder(
    {
      operation: 0,
      attempt: 0,
      class: 'default',
      inputTokens: 0,
      outputTokens: 0,
      choices: Math.max(1, choices.size),
      stream: true,
      ignoreEos: false,
    },
    0,
  );
  recorder.dispatched(0);
  recorder.sent(0);
  recorder.headers(0, status);
  seen.forEach(({ event }, i) => {
    recorder.event(i, event, false);
  });
  const refused = status < 200 || status > 299;
  recorder.ended(seen.length, refused ? { kind: 'http-error', status, detail: malformedOf(seen) } : { kind: 'closed' });
  return recorder.record();
}

/** Classes of finish that without any output are a refusal. */
const REFUSED: ReadonlySet<FinishClass> = new Set(['filtered', 'other']);

function verdictOf(record: RequestRecord, whole: boolean): Inspection['outcome'] {
  switch (record.outcome) {
    case 'completed': {
      const words = record.finishReason?.split('|') ?? [];
      const refused = record.timeline.length === 0 && words.some((word) => REFUSED.has(finishClass(word)));
      return refused ? 'error' : 'ok';
    }
    case 'truncated':
      return 'truncated';
    case 'rejected':
      return whole ? 'rejected' : 'error';
    default:
      return 'error';
  }
}

const TERMINALS: Readonly<Partial<Record<DialectName, string>>> = {
  'anthropic.messages': 'message_stop',
  'ollama.chat': 'done:true',
  'ollama.generate': 'done:true',
  'llamacpp.completion': 'stop:true',
  'tgi.generate_stream': 'eof-after-final',
};

function terminatorOf(dialect: DialectName, seen: readonly Seen[], record: RequestRecord, whole: boolean): string {
  if (whole) return 'eof';
  if (seen.some((s) => s.frame?.data.trim() === '[DONE]')) return '[DONE]';
  const last = seen.findLast((s) => s.event.terminal === true);
  if (last !== undefined) return TERMINALS[dialect] ?? typeIn(last.frame) ?? 'terminal';
  if (seen.some((s) => s.event.error !== undefined)) return 'error';
  return record.finishReason !== undefined && verdictOf(record, false) === 'ok' ? 'eof-after-finish' : 'eof';
}

function typeIn(frame: Frame | undefined): string | undefined {
  if (frame === undefined) return undefined;
  const json: unknown = JSON.parse(frame.data);
  return isObject(json) ? (textOf(json.type) ?? frame.event) : undefined;
}

function perChoice(stream: readonly Seen[]): Record<string, number> | undefined {
  const counts = new Map<number, number>();
  for (const { event } of stream) {
    for (const part of event.outputs) counts.set(part.choice, (counts.get(part.choice) ?? 0) + 1);
    for (const finish of event.finishes ?? []) counts.set(finish.choice, counts.get(finish.choice) ?? 0);
  }
  if (counts.size < 2) return undefined;
  return Object.fromEntries([...counts].sort(([a], [b]) => a - b).map(([choice, n]) => [String(choice), n]));
}

/** Only where the count came with the first output and again later: a usage that comes once is the final one. */
function incrementsOf(stream: readonly Seen[]): number[] | undefined {
  const first = stream.findIndex((s) => s.event.outputs.length > 0);
  const counted = stream.filter((s) => s.event.usage?.output !== undefined);
  if (first < 0 || stream[first]!.event.usage?.output === undefined || counted.length < 2) return undefined;
  let before = 0;
  return stream
    .filter((s) => s.frame?.data.trim() !== '[DONE]')
    .map((s) => {
      const total = s.event.usage?.output ?? before;
      const grown = total - before;
      before = total;
      return grown;
    });
}
