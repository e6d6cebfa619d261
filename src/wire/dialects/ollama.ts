/**
 * Ollama's chat and generate: NDJSON, ended by `done: true`, which may carry the last output too. Counts come on that line
 * alone; durations are nanoseconds. A tool call comes whole in one line.
 */
import type { ServerTimes, StreamEvent, Usage } from '../../core/stream.ts';
import type { Decoder, Dialect } from '../dialect.ts';
import { errorIn } from '../errors.ts';
import { Gather } from '../gather.ts';
import { countOf, isObject, type Json, objectOf, present, textOf } from '../json.ts';
import { eventOf, Finishes, type Meaning, ModelOnce } from '../meaning.ts';
import { ollamaMessages, openaiTools } from '../messages.ts';
import { messagesOf, textPromptOf } from '../request.ts';
import { gatherDelta } from './openai-delta.ts';

class OllamaDecoder implements Decoder {
  readonly #gather = new Gather();
  readonly #finishes = new Finishes();
  readonly #model = new ModelOnce();

  event(json: Json): StreamEvent {
    const error = json.error === undefined && json.done !== undefined ? undefined : errorIn(json);
    this.#gather.clear();
    const message = objectOf(json.message);
    if (message !== undefined) gatherDelta(message, this.#gather, 'message');
    else {
      const response = textOf(json.response);
      if (response !== undefined) this.#gather.add('text', response);
      const thinking = textOf(json.thinking);
      if (thinking !== undefined) this.#gather.add('reasoning', thinking);
      if (textOf(json.image) !== undefined) this.#gather.add('unclassified', '', 'image');
    }
    const part = this.#gather.part(0);
    const meaning: Meaning = { outputs: part && [part], error, model: this.#model.tell(json.model) };
    if (json.done === true) {
      const reason = textOf(json.done_reason);
      const finish = reason === undefined ? undefined : this.#finishes.once(0, reason);
      meaning.terminal = true;
      meaning.finishes = finish && [finish];
      meaning.usage = present<Usage>({ input: countOf(json.prompt_eval_count), output: countOf(json.eval_count) });
      meaning.server = present<ServerTimes>({
        load: millis(json.load_duration),
        prefill: millis(json.prompt_eval_duration),
        decode: millis(json.eval_duration),
        e2e: millis(json.total_duration),
      });
    }
    return eventOf(meaning);
  }

  end(): undefined {
    return undefined;
  }
}

function millis(nanos: unknown): number | undefined {
  const n = countOf(nanos);
  return n === undefined ? undefined : n / 1e6;
}

function whole(json: unknown): StreamEvent {
  if (!isObject(json)) return { outputs: [], whole: true, malformed: 'the body is not a JSON object' };
  const event = new OllamaDecoder().event(json);
  if (event.error === undefined && json.done === undefined) {
    return { outputs: [], whole: true, malformed: 'the body has neither an answer nor an error' };
  }
  return { ...event, whole: true };
}

const options = (outputTokens: number) => ({ options: { num_predict: outputTokens } });

export const ollamaChat: Dialect = {
  name: 'ollama.chat',
  framing: 'ndjson',
  path: () => '/api/chat',
  serves: (path) => /\/api\/chat\/?$/.test(path),
  recognises: (json) => isObject(json.message) && json.done !== undefined,
  decoder: () => new OllamaDecoder(),
  whole,
  body: ({ spec, model }) => ({
    model,
    messages: ollamaMessages(messagesOf(spec)),
    ...openaiTools(spec.tools),
    stream: spec.stream,
    ...options(spec.outputTokens),
  }),
};

export const ollamaGenerate: Dialect = {
  name: 'ollama.generate',
  framing: 'ndjson',
  path: () => '/api/generate',
  serves: (path) => /\/api\/generate\/?$/.test(path),
  recognises: (json) => typeof json.response === 'string' && json.done !== undefined,
  decoder: () => new OllamaDecoder(),
  whole,
  body: ({ spec, model }) => ({
    model,
    prompt: textPromptOf(spec),
    stream: spec.stream,
    ...options(spec.outputTokens),
  }),
};
