/**
 * Anthropic messages. `message_start` already says `output_tokens`, before any text: only `message_delta` counts, and its
 * usage is cumulative. Input is what was read plus what was found in or written to the cache, which the API counts apart.
 *
 * Thinking is a summary where the model is a Claude after 3.7: those stream a summary written by another model, and bill
 * the thinking that it summarises, which is not told apart in usage; counting it as delivered reasoning would make TPOT
 * too small by any factor. Other models behind this dialect (vLLM, SGLang serve it) and Claude 3.7 stream their thinking.
 */
import { textOfContent } from '../../core/request.ts';
import type { OutputKind, StreamEvent, Usage } from '../../core/stream.ts';
import type { Decoder, Dialect } from '../dialect.ts';
import { describe, errorIn } from '../errors.ts';
import { Gather } from '../gather.ts';
import { countOf, hasSubstance, isObject, type Json, listOf, objectOf, present, textOf } from '../json.ts';
import { eventOf, Finishes, ModelOnce } from '../meaning.ts';
import { anthropicTools, anthropicTurns } from '../messages.ts';
import { messagesOf } from '../request.ts';
import { gatherFunction } from './openai-delta.ts';

const SUMMARISING = /claude(?!-3)/i;

class AnthropicDecoder implements Decoder {
  readonly repeatable = true;
  readonly #gather = new Gather();
  readonly #finishes = new Finishes();
  readonly #model = new ModelOnce();
  #thinking: OutputKind = 'summary';

  event(json: Json, name?: string): StreamEvent {
    switch (textOf(json.type) ?? name) {
      case 'content_block_delta':
        return this.#delta(objectOf(json.delta));
      case 'content_block_start':
        return this.#block(objectOf(json.content_block));
      case 'message_start': {
        const message = objectOf(json.message);
        this.#thinking = thinkingKind(message?.model);
        const input = inputOf(objectOf(message?.usage));
        return eventOf({ usage: input, model: this.#model.tell(message?.model) });
      }
      case 'message_delta': {
        const reason = textOf(objectOf(json.delta)?.stop_reason);
        const finish = reason === undefined ? undefined : this.#finishes.once(0, reason);
        return eventOf({ usage: usageOf(objectOf(json.usage)), finishes: finish && [finish] });
      }
      case 'message_stop':
        return { outputs: [], terminal: true };
      case 'error':
        return eventOf({ error: describe(objectOf(json.error) ?? json, json) });
      case 'ping':
      case 'content_block_stop':
        return eventOf({});
    }
    return eventOf({ error: errorIn(json) });
  }

  end(): undefined {
    return undefined;
  }

  #delta(delta: Json | undefined): StreamEvent {
    if (delta === undefined) return eventOf({});
    this.#gather.clear();
    switch (delta.type) {
      case 'text_delta':
        return one('text', textOf(delta.text));
      case 'thinking_delta':
        return one(this.#thinking, textOf(delta.thinking));
      case 'input_json_delta':
        return one('tool', textOf(delta.partial_json));
      case 'signature_delta':
      case 'citations_delta':
        return eventOf({});
    }
    for (const [key, value] of Object.entries(delta)) {
      if (key !== 'type' && hasSubstance(value)) this.#gather.add('unclassified', textOf(value) ?? '', `delta.${key}`);
    }
    return this.#found();
  }

  #block(block: Json | undefined): StreamEvent {
    if (block === undefined) return eventOf({});
    this.#gather.clear();
    gatherBlock(block, this.#thinking, this.#gather);
    return this.#found();
  }

  #found(): StreamEvent {
    const part = this.#gather.part(0);
    return part === undefined ? eventOf({}) : { outputs: [part] };
  }
}

function one(kind: OutputKind, text: string | undefined): StreamEvent {
  return text === undefined ? eventOf({}) : { outputs: [{ choice: 0, kind, text }] };
}

function thinkingKind(model: unknown): OutputKind {
  if (typeof model !== 'string' || model === '') return 'summary';
  return SUMMARISING.test(model) ? 'summary' : 'reasoning';
}

/** A content block, whole or as it starts. Results of tools the server ran are not the model's output. */
function gatherBlock(block: Json, thinking: OutputKind, into: Gather): void {
  const type = textOf(block.type) ?? '';
  const text = textOf(block.text);
  if (type === 'text') {
    if (text !== undefined) into.add('text', text);
  } else if (type === 'thinking') {
    const thought = textOf(block.thinking);
    if (thought !== undefined) into.add(thinking, thought);
  } else if (type.endsWith('tool_use')) {
    gatherFunction(block, into);
  } else if (type !== 'redacted_thinking' && type !== 'container_upload' && !type.endsWith('_result')) {
    const { type: _, id: __, ...rest } = block;
    if (hasSubstance(rest)) into.add('unclassified', text ?? '', `content_block.${type || 'unknown'}`);
  }
}

function inputOf(usage: Json | undefined): Usage | undefined {
  if (usage === undefined) return undefined;
  const read = countOf(usage.cache_read_input_tokens);
  const written = countOf(usage.cache_creation_input_tokens);
  const fresh = countOf(usage.input_tokens);
  const input = (fresh ?? 0) + (read ?? 0) + (written ?? 0);
  return present<Usage>({ input: input > 0 ? input : undefined, cachedInput: read });
}

function usageOf(usage: Json | undefined): Usage | undefined {
  if (usage === undefined) return undefined;
  const details = objectOf(usage.output_tokens_details);
  return present<Usage>({
    input: inputOf(usage)?.input,
    output: countOf(usage.output_tokens),
    reasoning: countOf(details?.thinking_tokens) ?? countOf(details?.reasoning_tokens),
    cachedInput: countOf(usage.cache_read_input_tokens),
  });
}

const EVENTS: ReadonlySet<string> = new Set([
  'message_start',
  'content_block_start',
  'content_block_delta',
  'content_block_stop',
  'message_delta',
  'message_stop',
]);

export const anthropicMessages: Dialect = {
  name: 'anthropic.messages',
  framing: 'sse',
  path: () => '/v1/messages',
  serves: (path) => /\/messages\/?$/.test(path),
  recognises(json, event) {
    const type = textOf(json.type) ?? event ?? '';
    if (EVENTS.has(type) || (type === 'message' && Array.isArray(json.content))) return true;
    return json.type === 'error' && isObject(json.error);
  },
  decoder: () => new AnthropicDecoder(),
  whole(json) {
    if (!isObject(json)) return { outputs: [], whole: true, malformed: 'the body is not a JSON object' };
    const error = json.type === 'message' ? undefined : errorIn(json);
    if (error !== undefined) return { outputs: [], whole: true, error };
    if (!Array.isArray(json.content)) {
      return { outputs: [], whole: true, malformed: 'the body has neither content nor an error' };
    }
    const gather = new Gather();
    for (const block of listOf(json.content)) {
      if (isObject(block)) gatherBlock(block, thinkingKind(json.model), gather);
    }
    const part = gather.part(0);
    const reason = textOf(json.stop_reason);
    return eventOf({
      outputs: part && [part],
      finishes: reason === undefined ? undefined : [{ choice: 0, reason }],
      usage: usageOf(objectOf(json.usage)),
      model: textOf(json.model),
      whole: true,
    });
  },
  body({ spec, model }) {
    const messages = messagesOf(spec);
    const system = messages.filter((m) => m.role === 'system').map((m) => textOfContent(m.content));
    return {
      model,
      max_tokens: spec.outputTokens,
      ...(system.length > 0 && { system: system.join('\n\n') }),
      messages: anthropicTurns(messages),
      ...anthropicTools(spec.tools),
      ...(spec.ignoreEos && { ignore_eos: true }),
      stream: spec.stream,
    };
  },
};
