/**
 * How an attempt, or an operation, ended: facts only. Whether a completed one was valid, good or late is the contract's
 * to say (`judge`).
 */
import type { StreamError } from './stream.ts';

/** What can be known of an end without a contract. DEFINITIONS: `invalid`, `good` and `late` are made of `completed`. */
export type Outcome =
  | 'completed'
  | 'rejected'
  | 'failed'
  | 'truncated'
  | 'timed-out'
  | 'cancelled'
  | 'unsent'
  | 'undecided';

/** Stable order for columns and tables. Only ever appended to. */
export const OUTCOMES: readonly Outcome[] = [
  'completed',
  'rejected',
  'failed',
  'truncated',
  'timed-out',
  'cancelled',
  'unsent',
  'undecided',
];

/** Where an attempt stood when it ended or was given up. */
export type Phase = 'unsent' | 'connecting' | 'sending' | 'waiting' | 'streaming' | 'done';

/** Finish reasons, folded over dialects. */
export type FinishClass = 'stop' | 'length' | 'tool' | 'filtered' | 'aborted' | 'other';

const FINISH: Readonly<Record<string, FinishClass>> = {
  stop: 'stop',
  end_turn: 'stop',
  stop_sequence: 'stop',
  eos_token: 'stop',
  eos: 'stop',
  word: 'stop',
  completed: 'stop',
  complete: 'stop',
  done: 'stop',
  pause_turn: 'stop',
  length: 'length',
  limit: 'length',
  max_tokens: 'length',
  max_output_tokens: 'length',
  model_length: 'length',
  model_context_window_exceeded: 'length',
  incomplete: 'length',
  tool_calls: 'tool',
  tool_use: 'tool',
  tool_call: 'tool',
  function_call: 'tool',
  content_filter: 'filtered',
  refusal: 'filtered',
  safety: 'filtered',
  recitation: 'filtered',
  blocklist: 'filtered',
  prohibited_content: 'filtered',
  spii: 'filtered',
  language: 'filtered',
  image_safety: 'filtered',
  malformed_function_call: 'aborted',
  abort: 'aborted',
  aborted: 'aborted',
  error: 'aborted',
  failed: 'aborted',
  cancelled: 'aborted',
  insufficient_system_resource: 'aborted',
};

/** The class of a server's own finish reason; `aborted` ones are failures of the engine, whatever the stream says. */
export function finishClass(reason: string): FinishClass {
  return FINISH[reason.toLowerCase()] ?? 'other';
}

/** HTTP statuses by which a server refuses work (529: Anthropic's overloaded). */
const REFUSING = new Set([429, 503, 529]);
/**
 * Words by which a server refuses work inside a 200 stream. Only before any output: afterwards it is a failure, since
 * the work was begun.
 */
const REFUSAL =
  /queue.{0,20}full|too many requests|rate.?limit|overloaded|unavailable|resource.?exhausted|queue.{0,30}time.?out|waiting timeout|capacity/i;

/** `rejected` when the status says the server refused the request, else `failed`. */
export function outcomeOfStatus(status: number): 'rejected' | 'failed' {
  return REFUSING.has(status) ? 'rejected' : 'failed';
}

/** What an error told inside a stream amounts to, given whether output had already been sent. */
export function outcomeOfStreamError(error: StreamError, hadOutput: boolean): 'rejected' | 'failed' {
  if (hadOutput) return 'failed';
  if (error.code !== undefined && error.code >= 400 && error.code < 600) return outcomeOfStatus(error.code);
  return REFUSAL.test(`${error.type ?? ''} ${error.message}`) ? 'rejected' : 'failed';
}
