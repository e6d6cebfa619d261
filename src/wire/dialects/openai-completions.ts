/** OpenAI's legacy completions: `choices[].text`, no role chunk. */
import type { Dialect } from '../dialect.ts';
import { isObject, listOf } from '../json.ts';
import { textPromptOf } from '../request.ts';
import { openaiOptions } from './openai-chat.ts';
import { ChoicesDecoder, wholeChoices } from './openai-choices.ts';

export const openaiCompletions: Dialect = {
  name: 'openai.completions',
  framing: 'sse',
  path: () => '/v1/completions',
  serves: (path) => /\/completions\/?$/.test(path) && !/\/chat\/completions\/?$/.test(path),
  recognises(json) {
    if (json.object === 'text_completion') return true;
    const choice = listOf(json.choices)[0];
    return isObject(choice) && choice.text !== undefined && choice.delta === undefined;
  },
  decoder: () => new ChoicesDecoder(),
  whole: wholeChoices,
  body({ spec, model, usage, continuousUsage, minTokens }) {
    return {
      model,
      prompt: textPromptOf(spec),
      max_tokens: spec.outputTokens,
      ...openaiOptions(spec, usage, continuousUsage, minTokens),
    };
  },
};
