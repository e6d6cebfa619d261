/**
 * OpenAI Responses: typed events, `response.*`. Text comes in `*.delta`; `*.done` and the final response repeat it and
 * count only for an item that sent no delta (some compatible servers send items whole). No `[DONE]` is needed: the end is
 * `response.completed`, `.incomplete` or `.failed`.
 */
import { textOfContent } from '../../core/request.ts';
import type { OutputKind, StreamEvent, Usage } from '../../core/stream.ts';
import type { Decoder, Dialect } from '../dialect.ts';
import { describe, errorIn } from '../errors.ts';
import { Gather } from '../gather.ts';
import { hasSubstance, isObject, type Json, listOf, objectOf, textOf } from '../json.ts';
import { eventOf, type Meaning, ModelOnce } from '../meaning.ts';
import { responsesInput, responsesTools } from '../messages.ts';
import { messagesOf } from '../request.ts';
import { joinedText } from './openai-delta.ts';
import { usageOf } from './openai-usage.ts';

/** The kind of each `*.delta`; summaries are reasoning that was not delivered itself. */
const DELTAS: Readonly<Record<string, OutputKind>> = {
  'response.output_text.delta': 'text',
  'response.text.delta': 'text',
  'response.refusal.delta': 'refusal',
  'response.reasoning_text.delta': 'reasoning',
  'response.reasoning.delta': 'reasoning',
  'response.reasoning_part.delta': 'reasoning',
  'response.reasoning_summary_text.delta': 'summary',
  'response.reasoning_summary.delta': 'summary',
  'response.function_call_arguments.delta': 'tool',
  'response.custom_tool_call_input.delta': 'tool',
  'response.mcp_call_arguments.delta': 'tool',
  'response.mcp_call.arguments.delta': 'tool',
  'response.mcp_call.arguments_delta': 'tool',
  'response.code_interpreter_call_code.delta': 'tool',
  'response.code_interpreter_call.code.delta': 'tool',
  'response.shell_call_command.delta': 'tool',
  'response.apply_patch_call_operation_diff.delta': 'tool',
  'response.audio.transcript.delta': 'text',
  'response.audio_transcript.delta': 'text',
  'response.output_audio_transcript.delta': 'text',
};

class ResponsesDecoder implements Decoder {
  readonly #gather = new Gather();
  readonly #model = new ModelOnce();
  /** Output items that have shown output, by `output_index`. */
  readonly #shown = new Set<unknown>();
  #ended = false;

  event(json: Json, name?: string): StreamEvent {
    const type = textOf(json.type) ?? name ?? '';
    const kind = DELTAS[type];
    if (kind !== undefined) return this.#delta(json, kind);
    if (type.endsWith('.delta') && hasSubstance(json.delta)) return this.#unknown(json, type);
    switch (type) {
      case 'response.output_item.added':
      case 'response.output_item.done':
        return this.#item(json, type);
      case 'response.content_part.added':
        return this.#part(json);
      case 'response.completed':
      case 'response.done':
      case 'response.incomplete':
      case 'response.failed':
      case 'response.cancelled':
        return this.#end(objectOf(json.response) ?? json);
      case 'error':
      case 'response.error':
        return eventOf({ error: describe(objectOf(json.error) ?? json, json) });
    }
    if (type.startsWith('response.')) {
      const response = objectOf(json.response);
      if (response === undefined) return eventOf({});
      return eventOf({ model: this.#model.tell(response.model), usage: usageOf(response.usage) });
    }
    return eventOf({ error: type === 'ping' || type === 'keepalive' ? undefined : errorIn(json) });
  }

  end(): undefined {
    return undefined;
  }

  #delta(json: Json, kind: OutputKind): StreamEvent {
    const { delta } = json;
    const text = typeof delta === 'string' ? delta : joinedText(delta);
    if (text === '') return eventOf({});
    this.#shown.add(json.output_index);
    return { outputs: [{ choice: 0, kind, text }] };
  }

  #unknown(json: Json, field: string): StreamEvent {
    this.#shown.add(json.output_index);
    const text = textOf(json.delta);
    const audio = field.includes('audio'); // encoded sound is output, and not text
    const shown = text === undefined || audio ? {} : { text };
    return { outputs: [{ choice: 0, kind: 'unclassified', ...shown, field }] };
  }

  /** A tool's name comes when its item is added; anything else only where no delta brought it before the item is done. */
  #item(json: Json, type: string): StreamEvent {
    const item = objectOf(json.item);
    if (item === undefined) return eventOf({});
    if (type.endsWith('.done') && this.#shown.has(json.output_index)) return eventOf({});
    return this.#found(json, () => gatherItem(item, this.#gather));
  }

  #part(json: Json): StreamEvent {
    const part = objectOf(json.part);
    return part === undefined ? eventOf({}) : this.#found(json, () => gatherPart(part, this.#gather));
  }

  #found(json: Json, gather: () => void): StreamEvent {
    this.#gather.clear();
    gather();
    const part = this.#gather.part(0);
    if (part === undefined) return eventOf({});
    this.#shown.add(json.output_index);
    return { outputs: [part] };
  }

  #end(response: Json): StreamEvent {
    const meaning: Meaning = {
      usage: usageOf(response.usage),
      model: this.#model.tell(response.model),
      terminal: true,
    };
    if (this.#shown.size === 0) {
      this.#gather.clear();
      for (const item of listOf(response.output)) if (isObject(item)) gatherItem(item, this.#gather);
      const part = this.#gather.part(0);
      if (part !== undefined) {
        this.#shown.add('response');
        meaning.outputs = [part];
      }
    }
    const status = textOf(response.status) ?? 'completed';
    if (status === 'failed' || isObject(response.error)) {
      const error = objectOf(response.error);
      meaning.error = error === undefined ? { message: 'the response failed' } : describe(error);
    } else if (!this.#ended) {
      const reason = status === 'incomplete' ? textOf(objectOf(response.incomplete_details)?.reason) : undefined;
      meaning.finishes = [{ choice: 0, reason: reason ?? status }];
    }
    this.#ended = true;
    return eventOf(meaning);
  }
}

const REASONING_PARTS: ReadonlySet<string> = new Set(['reasoning_text', 'reasoning', 'thinking']);

function gatherPart(part: Json, into: Gather): void {
  const type = textOf(part.type) ?? 'output_text';
  const text = textOf(part.text) ?? textOf(part.transcript);
  if (type === 'refusal') {
    const refusal = textOf(part.refusal) ?? text;
    if (refusal !== undefined) into.add('refusal', refusal);
  } else if (text !== undefined) {
    into.add(type === 'summary_text' ? 'summary' : REASONING_PARTS.has(type) ? 'reasoning' : 'text', text);
  }
}

/** What a whole output item holds. Results of tools the server ran itself are not the model's output. */
function gatherItem(item: Json, into: Gather): void {
  switch (item.type) {
    case 'message':
      for (const part of listOf(item.content)) if (isObject(part)) gatherPart(part, into);
      return;
    case 'reasoning': {
      const summary = joinedText(item.summary);
      if (summary !== '') into.add('summary', summary);
      for (const part of listOf(item.content)) if (isObject(part)) gatherPart({ ...part, type: 'reasoning' }, into);
      return;
    }
    case 'image_generation_call':
      if (textOf(item.result) !== undefined) into.add('unclassified', '', 'item.result');
      return;
    case 'mcp_list_tools':
    case 'mcp_approval_request':
    case 'web_search_call':
    case 'file_search_call':
      return;
    default: {
      const name = textOf(item.name);
      if (name !== undefined) into.add('tool', name);
      for (const args of [item.arguments, item.input, item.code, item.action, item.operation]) {
        if (typeof args === 'string' && args !== '') into.add('tool', args);
        else if (isObject(args) && hasSubstance(args)) into.add('tool', JSON.stringify(args));
      }
    }
  }
}

export const openaiResponses: Dialect = {
  name: 'openai.responses',
  framing: 'sse',
  path: () => '/v1/responses',
  serves: (path) => /\/responses\/?$/.test(path),
  recognises(json, event) {
    const type = textOf(json.type) ?? event ?? '';
    if (type.startsWith('response.') || json.object === 'response') return true;
    return json.type === 'error' && json.error === undefined && typeof json.message === 'string';
  },
  decoder: () => new ResponsesDecoder(),
  whole(json) {
    if (!isObject(json)) return { outputs: [], whole: true, malformed: 'the body is not a JSON object' };
    const error = json.object === 'response' ? undefined : errorIn(json);
    if (error !== undefined) return { outputs: [], whole: true, error };
    if (json.output === undefined && json.status === undefined) {
      return { outputs: [], whole: true, malformed: 'the body has neither output nor an error' };
    }
    const event = new ResponsesDecoder().event({ type: 'response.completed', response: json });
    const usage: Usage | undefined = event.usage;
    return { ...event, ...(usage && { usage }), whole: true };
  },
  body({ spec, model }) {
    const messages = messagesOf(spec);
    const system = messages.filter((m) => m.role === 'system').map((m) => textOfContent(m.content));
    return {
      model,
      ...(system.length > 0 && { instructions: system.join('\n\n') }),
      input: responsesInput(messages.filter((m) => m.role !== 'system')),
      ...responsesTools(spec.tools),
      max_output_tokens: spec.outputTokens,
      ...(spec.ignoreEos && { ignore_eos: true }),
      stream: spec.stream,
    };
  },
};
