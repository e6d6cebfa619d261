/** OpenAI chat completions, spoken by most servers there are. */
import type { Dialect } from '../dialect.ts';
import { isObject, listOf } from '../json.ts';
import { openaiMessages, openaiTools } from '../messages.ts';
import { messagesOf } from '../request.ts';
import { ChoicesDecoder, wholeChoices } from './openai-choices.ts';

export const openaiChat: Dialect = {
  name: 'openai.chat',
  framing: 'sse',
  path: () => '/v1/chat/completions',
  serves: (path) => /\/chat\/completions\/?$/.test(path),
  recognises(json) {
    if (typeof json.object === 'string' && json.object.startsWith('chat.completion')) return true;
    if (!Array.isArray(json.choices) || json.object === 'text_completion') return false;
    const choice = listOf(json.choices)[0];
    return choice === undefined || (isObject(choice) && choice.text === undefined);
  },
  decoder: () => new ChoicesDecoder(),
  whole: wholeChoices,
  body({ spec, model, usage, continuousUsage, minTokens, maxTokensName }) {
    return {
      model,
      messages: openaiMessages(messagesOf(spec)),
      ...openaiTools(spec.tools),
      [maxTokensName]: spec.outputTokens,
      ...openaiOptions(spec, usage, continuousUsage, minTokens),
    };
  },
};

/** What chat and completions ask for alike. */
export function openaiOptions(
  spec: {
    readonly choices: number;
    readonly ignoreEos: boolean;
    readonly stream: boolean;
    readonly outputTokens: number;
  },
  usage: boolean,
  continuousUsage: boolean,
  minTokens: boolean,
): Record<string, unknown> {
  return {
    ...(spec.choices > 1 && { n: spec.choices }),
    ...(spec.ignoreEos && { ignore_eos: true }),
    ...(minTokens && { min_tokens: spec.outputTokens }),
    stream: spec.stream,
    ...(spec.stream &&
      (usage || continuousUsage) && {
        stream_options: { include_usage: true, ...(continuousUsage && { continuous_usage_stats: true }) },
      }),
  };
}
