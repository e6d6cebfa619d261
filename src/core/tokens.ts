/** How many tokens a stream delivered, by the best source it gives. DEFINITIONS, "Streamed tokens". */
import type { RequestRecord } from './record.ts';
import { OUTPUT_KINDS } from './stream.ts';

export type TokenSource = 'per-chunk' | 'usage' | 'tokenizer' | 'unknown';

/** Whether a chunk gap may be called an inter-token latency: every count known to be 1, only inferred, or not. */
export type TokenExactness = 'exact' | 'inferred' | 'no';

export interface StreamedTokens {
  /** Tokens delivered between the first and the last output of the span; absent when unknown. */
  readonly n?: number;
  readonly source: TokenSource;
  readonly exactness: TokenExactness;
  /** `answer`: reasoning was only summarised, so `n` covers first answer … last output alone. */
  readonly span: 'output' | 'answer';
}

const SUMMARY = OUTPUT_KINDS.indexOf('summary');
const REASONING = OUTPUT_KINDS.indexOf('reasoning');

const NONE: StreamedTokens = { source: 'unknown', exactness: 'no', span: 'output' };

/**
 * Tokens of the whole record (`choice` absent), or of one choice, for which only per-chunk counts serve: usage is the sum
 * over choices and is not divided.
 */
export function streamedTokens(record: RequestRecord, choice?: number): StreamedTokens {
  const { timeline } = record;
  let chunks = 0;
  let sum = 0;
  let known = true;
  let ones = true;
  let summarised = false;
  let reasoned = false;
  for (let i = 0; i < timeline.length; i++) {
    if (choice !== undefined && timeline.choice[i] !== choice) continue;
    const kind = timeline.kind[i];
    if (kind === SUMMARY) {
      summarised = true;
      continue; // outside the span that counts
    }
    if (kind === REASONING) reasoned = true;
    chunks++;
    const tokens = timeline.tokens[i]!;
    if (tokens < 0) known = false;
    else sum += tokens;
    if (tokens !== 1) ones = false;
  }
  const span = summarised ? 'answer' : 'output';
  if (chunks === 0) return { ...NONE, span };
  if (known && sum > 0) return { n: sum, source: 'per-chunk', exactness: ones ? 'exact' : 'no', span };
  if (choice !== undefined) return { ...NONE, span };

  const usage = record.usage;
  if (usage?.output !== undefined && record.asked.choices <= 1) {
    const n = usageStreamed(usage.output, usage.reasoning, record.unseenEndTokens, summarised, reasoned);
    if (n !== undefined && n > 0) {
      return { n, source: 'usage', exactness: n === chunks ? 'inferred' : 'no', span };
    }
  }
  if (record.tokenized !== undefined && record.tokenized > 0 && !summarised) {
    return { n: record.tokenized, source: 'tokenizer', exactness: 'no', span };
  }
  return { ...NONE, span };
}

/** Final usage less what was generated but not delivered; undefined when the hidden part is unknown. */
function usageStreamed(
  output: number,
  reasoning: number | undefined,
  unseenEnd: number,
  summarised: boolean,
  reasoned: boolean,
): number | undefined {
  if (summarised && reasoning === undefined) return undefined;
  const hidden = reasoned ? 0 : (reasoning ?? 0);
  return output - hidden - unseenEnd;
}
