/**
 * Text Generation Inference's generate_stream: one event a token, with its id. A special token is no output though its text
 * stands there, and the details count it; the last event repeats the whole text.
 */
import type { StreamEvent, Usage } from '../../core/stream.ts';
import type { Decoder, Dialect } from '../dialect.ts';
import { errorIn } from '../errors.ts';
import { countOf, isObject, type Json, listOf, objectOf, present, textOf } from '../json.ts';
import { eventOf, Finishes, type Meaning } from '../meaning.ts';
import { textPromptOf } from '../request.ts';

class TgiDecoder implements Decoder {
  readonly #finishes = new Finishes();

  event(json: Json): StreamEvent {
    const error = json.token === undefined || json.error !== undefined ? errorIn(json) : undefined;
    if (error !== undefined) return eventOf({ error });
    const token = objectOf(json.token);
    const special = token?.special === true;
    const text = textOf(token?.text);
    const meaning: Meaning = {};
    if (token !== undefined && !special && (text !== undefined || typeof token.id === 'number')) {
      meaning.outputs = [{ choice: 0, kind: 'text', tokens: 1, ...(text !== undefined && { text }) }];
    }
    if (typeof json.generated_text === 'string') meaning.terminal = true;
    const details = objectOf(json.details);
    if (details !== undefined) {
      meaning.usage = usageOf(details);
      const reason = textOf(details.finish_reason);
      const finish = reason === undefined ? undefined : this.#finishes.once(0, reason, special ? 1 : 0);
      meaning.finishes = finish && [finish];
      meaning.terminal = true;
    }
    return eventOf(meaning);
  }

  end(): undefined {
    return undefined;
  }
}

function usageOf(details: Json): Usage | undefined {
  const prefill = listOf(details.prefill).length;
  return present<Usage>({
    input: countOf(details.input_length) ?? (prefill > 0 ? prefill : undefined),
    output: countOf(details.generated_tokens),
  });
}

export const tgiGenerateStream: Dialect = {
  name: 'tgi.generate_stream',
  framing: 'sse',
  path: () => '/generate_stream',
  serves: (path) => /^\/generate_stream\/?$/.test(path),
  recognises(json) {
    if (isObject(json.token) && ('text' in json.token || 'id' in json.token)) return true;
    return json.generated_text !== undefined || (typeof json.error === 'string' && json.error_type !== undefined);
  },
  decoder: () => new TgiDecoder(),
  whole(json) {
    const first: unknown = Array.isArray(json) ? json[0] : json;
    if (!isObject(first)) return { outputs: [], whole: true, malformed: 'the body is not a JSON object' };
    const error = errorIn(first);
    if (error !== undefined) return { outputs: [], whole: true, error };
    if (typeof first.generated_text !== 'string') {
      return { outputs: [], whole: true, malformed: 'the body has neither generated_text nor an error' };
    }
    const details = objectOf(first.details);
    const text = textOf(first.generated_text);
    const reason = textOf(details?.finish_reason);
    return eventOf({
      outputs: text === undefined ? undefined : [{ choice: 0, kind: 'text', text }],
      finishes:
        reason === undefined
          ? undefined
          : [{ choice: 0, reason, ...(reason === 'eos_token' && { unseenEndTokens: 1 }) }],
      usage: details && usageOf(details),
      terminal: true,
      whole: true,
    });
  },
  body({ spec, usage }) {
    return {
      inputs: textPromptOf(spec),
      parameters: { max_new_tokens: spec.outputTokens, ...(usage && { details: true }) },
      ...(!spec.stream && { stream: false }),
    };
  },
};
