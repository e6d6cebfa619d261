/**
 * Asks a server's own tokenizer (`/tokenize`, as vLLM has it) what it makes of our words, so that prompts of a length come
 * out at that length. Two texts give a slope (tokens a word) and an intercept (what the chat template adds).
 */
import type { Message } from '../core/request.ts';
import { promptText } from '../workload/prompts.ts';

export interface Calibration {
  readonly tokensPerWord: number;
  /** Tokens beside the words. */
  readonly overhead: number;
}

const SHORT = 200;
const LONG = 1000;
const TIMEOUT = 5000;

/** @returns undefined where there is no `/tokenize`, or its answer makes no sense. */
export async function calibrate(
  endpoint: string,
  model: string,
  chat: boolean,
  headers: Readonly<Record<string, string>>,
): Promise<Calibration | undefined> {
  const count = async (words: number): Promise<number | undefined> => {
    const text = promptText(words, 0, words);
    const messages: Message[] = [{ role: 'user', content: text }];
    try {
      const answer = await fetch(new URL('/tokenize', endpoint), {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify({ model, ...(chat ? { messages, add_generation_prompt: true } : { prompt: text }) }),
        signal: AbortSignal.timeout(TIMEOUT),
        redirect: 'error',
      });
      if (!answer.ok) return undefined;
      const { count: n } = (await answer.json()) as { count?: unknown };
      return typeof n === 'number' && Number.isFinite(n) ? n : undefined;
    } catch {
      return undefined;
    }
  };
  const [short, long] = [await count(SHORT), await count(LONG)];
  if (short === undefined || long === undefined) return undefined;
  const tokensPerWord = (long - short) / (LONG - SHORT);
  if (!(tokensPerWord > 0.2 && tokensPerWord < 20)) return undefined;
  return { tokensPerWord, overhead: Math.max(0, Math.round(short - SHORT * tokensPerWord)) };
}
