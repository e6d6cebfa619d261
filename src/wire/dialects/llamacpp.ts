/**
 * llama.cpp's own /completion: ended by `stop: true`. `tokens_predicted` grows chunk by chunk; it counts an end-of-generation
 * token that is never shown. Older builds say `stopped_eos`, `stopped_limit`, `stopped_word` for `stop_type`.
 */
import type { StreamEvent, Usage } from '../../core/stream.ts';
import { GrowingCount } from '../counts.ts';
import type { Decoder, Dialect } from '../dialect.ts';
import { errorIn } from '../errors.ts';
import { Gather } from '../gather.ts';
import { countOf, hasSubstance, indexOf, isObject, type Json, objectOf, present, textOf } from '../json.ts';
import { eventOf, Finishes, type Meaning, ModelOnce } from '../meaning.ts';
import { textPromptOf } from '../request.ts';
import { llamaTimes } from './openai-usage.ts';

interface Counts {
  readonly growing: GrowingCount;
  ids: number;
}

class LlamaDecoder implements Decoder {
  readonly #gather = new Gather();
  readonly #finishes = new Finishes();
  readonly #model = new ModelOnce();
  readonly #counts = new Map<number, Counts>();

  event(json: Json): StreamEvent {
    const error = json.content === undefined || json.error !== undefined ? errorIn(json) : undefined;
    if (error !== undefined) return eventOf({ error });
    const choice = indexOf(json.index);
    const stop = json.stop === true;
    const reason = stop ? stopType(json) : undefined;
    const unseen = reason === 'eos' ? 1 : 0;
    this.#gather.clear();
    const text = textOf(json.content);
    if (text !== undefined) this.#gather.add('text', text);
    else if (typeof json.content === 'object' && hasSubstance(json.content))
      this.#gather.add('unclassified', '', 'content');
    const part = this.#gather.part(choice, this.#tokens(json, choice, stop, unseen));
    const meaning: Meaning = { outputs: part && [part] };
    const output = countOf(json.tokens_predicted);
    if (output !== undefined) {
      meaning.usage = present<Usage>({
        input: countOf(json.tokens_evaluated),
        output,
        cachedInput: countOf(objectOf(json.timings)?.cache_n),
      });
    }
    if (json.timings !== undefined) meaning.server = llamaTimes(json.timings);
    if (stop) {
      meaning.terminal = true;
      meaning.model = this.#model.tell(json.model);
      const finish = reason === undefined ? undefined : this.#finishes.once(choice, reason, unseen);
      meaning.finishes = finish && [finish];
    }
    return eventOf(meaning);
  }

  end(): undefined {
    return undefined;
  }

  #tokens(json: Json, choice: number, last: boolean, unseen: number): number | undefined {
    let counts = this.#counts.get(choice);
    if (counts === undefined) {
      counts = { growing: new GrowingCount(), ids: 0 };
      this.#counts.set(choice, counts);
    }
    let total = countOf(json.tokens_predicted) ?? countOf(objectOf(json.timings)?.predicted_n);
    if (Array.isArray(json.tokens) && (json.tokens.length > 0 || counts.ids > 0)) {
      counts.ids += json.tokens.length;
      total = counts.ids;
      unseen = 0; // the ids are those of the text
    }
    if (this.#gather.found) return counts.growing.output(total, last, unseen);
    counts.growing.silent(total);
    return undefined;
  }
}

function stopType(json: Json): string | undefined {
  const type = textOf(json.stop_type);
  if (type !== undefined) return type === 'none' ? undefined : type;
  if (json.stopped_eos === true) return 'eos';
  if (json.stopped_limit === true) return 'limit';
  return json.stopped_word === true ? 'word' : undefined;
}

export const llamacppCompletion: Dialect = {
  name: 'llamacpp.completion',
  framing: 'sse',
  path: () => '/completion',
  serves: (path) => /\/completion\/?$/.test(path),
  recognises: (json) => typeof json.content === 'string' && typeof json.stop === 'boolean',
  decoder: () => new LlamaDecoder(),
  whole(json) {
    const list = (Array.isArray(json) ? json : [json]).filter(isObject);
    const decoder = new LlamaDecoder();
    const events = list.map((element) => decoder.event({ stop: true, ...element }));
    const error = events.find((e) => e.error !== undefined)?.error;
    if (error === undefined && !list.some((x) => x.content !== undefined)) {
      return { outputs: [], whole: true, malformed: 'the body has neither content nor an error' };
    }
    const usages = events.flatMap((e) => e.usage ?? []);
    const sum = (pick: (u: Usage) => number | undefined) => usages.reduce((total, u) => total + (pick(u) ?? 0), 0);
    return eventOf({
      outputs: events.flatMap((e) => e.outputs),
      finishes: events.flatMap((e) => e.finishes ?? []),
      usage: usages.length === 0 ? undefined : { input: sum((u) => u.input), output: sum((u) => u.output) },
      model: events.find((e) => e.model !== undefined)?.model,
      server: events.findLast((e) => e.server !== undefined)?.server,
      error,
      terminal: true,
      whole: true,
    });
  },
  body({ spec, continuousUsage }) {
    return {
      prompt: textPromptOf(spec),
      n_predict: spec.outputTokens,
      ...(spec.ignoreEos && { ignore_eos: true }),
      ...(continuousUsage && { return_tokens: true, timings_per_token: true }),
      stream: spec.stream,
    };
  },
};
