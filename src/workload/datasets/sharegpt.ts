/**
 * ShareGPT: one JSON array of conversations, `{ conversations: [{ from, value }, …] }`. Asked is the first thing the human
 * said; the answer there tells roughly how long answers are. The array is streamed: one conversation is held at a time.
 */

import { InputError } from '../../base/errors.ts';
import { type Dataset, type DatasetEntry, estimateTokens, Reservoir } from '../dataset.ts';
import { readJson } from '../json-stream.ts';
import type { Chunks } from '../lines.ts';
import { type DatasetOptions, MAX_PROMPT } from './options.ts';

const HUMAN: ReadonlySet<string> = new Set(['human', 'user']);
const MODEL: ReadonlySet<string> = new Set(['gpt', 'assistant', 'chatgpt', 'bard', 'bing', 'model']);

export async function readShareGpt(chunks: Chunks, what: string, options: DatasetOptions): Promise<Dataset> {
  const sample = new Reservoir<DatasetEntry>(options.sample, options.seed);
  let skipped = 0;
  let question: string | undefined;
  let answer: string | undefined;
  let from = '';
  let value = '';
  await readJson(
    chunks,
    what,
    {
      opened(path, kind, line) {
        if (path.length === 0 && kind !== '[') {
          throw new InputError(`${what}:${line}: not ShareGPT, which is an array of conversations`);
        }
        if (path.length === 1) question = answer = undefined;
        if (kind === '{' && path.length === 3) from = value = '';
      },
      scalar(path, found) {
        if (path.length !== 4 || path[1] !== 'conversations' || typeof found !== 'string') return;
        if (path[3] === 'from' || path[3] === 'role') from = found;
        else if (path[3] === 'value' || path[3] === 'content') value = found;
      },
      closed(path, kind) {
        if (kind !== '{') return;
        if (path.length === 3) {
          if (question === undefined && HUMAN.has(from) && value.trim() !== '') question = value;
          else if (question !== undefined && answer === undefined && MODEL.has(from)) answer = value;
        } else if (path.length === 1) {
          if (question === undefined || question.length >= MAX_PROMPT) skipped++;
          else {
            sample.add({
              prompt: question,
              estimatedTokens: estimateTokens(question),
              ...(answer && options.outputOfFile && { outputTokens: estimateTokens(answer) }),
            });
          }
        }
      },
    },
    MAX_PROMPT,
  );
  if (sample.seen === 0) throw new InputError(`${what}: no conversation that begins with a question; nothing to ask`);
  return { name: what, entries: sample.items, available: sample.seen, skipped };
}
