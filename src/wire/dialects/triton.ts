/**
 * Triton's generate extension. The stream marks no end: a clean end of the body is the end, and a truncated answer looks the
 * same, which `impliedEnd` says. Output tensors bear the names the model's author gave them; `text_output` is usual.
 */
import type { Finish, StreamEvent } from '../../core/stream.ts';
import type { Decoder, Dialect } from '../dialect.ts';
import { errorIn } from '../errors.ts';
import { Gather } from '../gather.ts';
import { countOf, hasSubstance, isObject, type Json, textOf } from '../json.ts';
import { eventOf, Finishes, type Meaning, ModelOnce } from '../meaning.ts';
import { textPromptOf } from '../request.ts';
import { joinedText } from './openai-delta.ts';

const SILENT: ReadonlySet<string> = new Set([
  'model_name',
  'model_version',
  'id',
  'parameters',
  'sequence_id',
  'sequence_start',
  'sequence_end',
  'sequence_index',
  'batch_index',
  'finish_reason',
  'cumulative_logprob',
  'cum_log_probs',
  'output_log_probs',
  'logprobs',
  'context_logits',
  'generation_logits',
  'num_input_tokens',
  'num_output_tokens',
  'output_token_counts',
  'triton_final_response',
  'error',
]);

class TritonDecoder implements Decoder {
  readonly #gather = new Gather();
  readonly #finishes = new Finishes();
  readonly #model = new ModelOnce();
  #frames = 0;
  #output: number | undefined;

  event(json: Json): StreamEvent {
    this.#frames++;
    const error = json.text_output === undefined || json.error !== undefined ? errorIn(json) : undefined;
    this.#gather.clear();
    const text = joinedText(json.text_output);
    if (text !== '') this.#gather.add('text', text);
    else if (json.text_output === undefined && error === undefined) {
      for (const [key, value] of Object.entries(json)) {
        const textual = typeof value === 'string' || (Array.isArray(value) && value.some((v) => typeof v === 'string'));
        if (!SILENT.has(key) && textual && hasSubstance(value))
          this.#gather.add('unclassified', joinedText(value), key);
      }
    }
    // The vLLM backend counts each response's own tokens.
    const tokens = countOf(json.num_output_tokens);
    const part = this.#gather.part(0, tokens);
    const meaning: Meaning = { outputs: part && [part], error, model: this.#model.tell(json.model_name) };
    if (tokens !== undefined) {
      this.#output = (this.#output ?? 0) + tokens;
      const input = countOf(json.num_input_tokens);
      meaning.usage = { ...(input !== undefined && { input }), output: this.#output };
    }
    const reason = textOf(joinedText(json.finish_reason));
    if (reason !== undefined && !/^(none|null)$/i.test(reason)) {
      const finish: Finish | undefined = this.#finishes.once(0, reason);
      meaning.finishes = finish && [finish];
    }
    return eventOf(meaning);
  }

  end(): StreamEvent | undefined {
    return this.#frames === 0 ? undefined : { outputs: [], impliedEnd: true };
  }
}

export const tritonGenerateStream: Dialect = {
  name: 'triton.generate_stream',
  framing: 'sse',
  path: (model) => `/v2/models/${encodeURIComponent(model)}/generate_stream`,
  serves: (path) => /\/models\/[^/]+(\/versions\/[^/]+)?\/generate(_stream)?\/?$/.test(path),
  recognises: (json) =>
    json.text_output !== undefined || (json.model_name !== undefined && json.model_version !== undefined),
  decoder: () => new TritonDecoder(),
  whole(json) {
    if (!isObject(json)) return { outputs: [], whole: true, malformed: 'the body is not a JSON object' };
    const event = new TritonDecoder().event(json);
    if (event.error === undefined && !tritonGenerateStream.recognises(json)) {
      return { outputs: [], whole: true, malformed: 'the body has neither text_output nor an error' };
    }
    return { ...event, impliedEnd: true, whole: true };
  },
  body({ spec }) {
    return { text_input: textPromptOf(spec), max_tokens: spec.outputTokens, stream: spec.stream };
  },
};
