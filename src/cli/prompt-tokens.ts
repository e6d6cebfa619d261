/**
 * Asks a server's own tokenizer (`/tokenize`, as vLLM has it) what it makes of our words, so that prompts of a length come
 * out at that length. Two texts give a slope (tokens a word) and an intercept (what the chat template adds).
 */
import type { Message } from '../core/request.ts';
import { promptText } from '../workload/prompts.ts';
import type { OpenTarget } from './target.ts';

export interface Calibration {
  readonly tokensPerWord: number;
  /** Tokens beside the words. */
  readonly overhead: number;
}

const SHORT = 200;
const LONG = 1000;

/** @returns undefined where there is no `/tokenize`, or its answer makes no sense. */
export async function calibrate({ post, model = '', dialect }: OpenTarget): Promise<Calibration | undefined> {
  if (!post) return undefined;
  const count = async (words: number): Promise<number | undefined> => {
    const text = promptText(words, 0, words);
    const messages: Message[] = [{ role: 'user', content: text }];
    const asked = dialect === 'openai.chat' ? { messages, add_generation_prompt: true } : { prompt: text };
    const answer = await post('/tokenize', { model, ...asked });
    const n = typeof answer === 'object' && answer !== null && 'count' in answer ? answer.count : undefined;
    return typeof n === 'number' && Number.isFinite(n) ? n : undefined;
  };
  const [short, long] = [await count(SHORT), await count(LONG)];
  if (short === undefined || long === undefined) return undefined;
  const tokensPerWord = (long - short) / (LONG - SHORT);
  if (!(tokensPerWord > 0.2 && tokensPerWord < 20)) return undefined;
  return { tokensPerWord, overhead: Math.max(0, Math.round(short - SHORT * tokensPerWord)) };
}
