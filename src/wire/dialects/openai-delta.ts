/**
 * What an OpenAI-style `delta` (or whole `message`) carries. Fields are those of OpenAI, vLLM, SGLang, DeepSeek, Mistral,
 * OpenRouter, Copilot, Azure, Databricks and LiteLLM; a field none of them has is unclassified output when it is not empty.
 */
import type { Gather } from '../gather.ts';
import { hasSubstance, isObject, type Json, listOf, textOf } from '../json.ts';

/** Fields that are never output: names, identifiers, encrypted blobs, annotations, repeated copies of other fields. */
const SILENT: ReadonlySet<string> = new Set([
  'role',
  'name',
  'id',
  'index',
  'type',
  'object',
  'model',
  'created',
  'status',
  'phase',
  'channel',
  'recipient',
  'weight',
  'end_turn',
  'prefix',
  'finish_reason',
  'native_finish_reason',
  'stop_reason',
  'logprobs',
  'token_ids',
  'prompt_token_ids',
  'tool_call_id',
  'tool_plan_id',
  'obfuscation',
  'p',
  'padding',
  'annotations',
  'citations',
  'references',
  'search_results',
  'context',
  'sources',
  'usage',
  'metadata',
  'provider_specific_fields',
  'extra_content',
  'content_filter_results',
  'content_filter_offsets',
  'copilot_annotations',
  'copilot_references',
  'copilot_errors',
  'copilot_confirmations',
  'reasoning_opaque',
  'reasoning_signature',
  'reasoning_id',
  'reasoning_item_id',
  'encrypted_content',
  'encrypted_reasoning',
  'signature',
  'thought_signature',
  'thinking_signature',
  'cot_id',
  'hidden_states',
  'audio_content',
  'cache_control',
  'matched_stop',
]);

/** Reasoning as one text. Some servers send the same text under two names; the first that is there counts. */
const REASONING: ReadonlySet<string> = new Set([
  'reasoning_content',
  'reasoning',
  'reasoning_text',
  'thinking',
  'thinking_content',
  'thought',
  'thoughts',
  'cot_text',
  'cot_content',
]);

/** @param field the name of the object for unclassified output, `delta` or `message`. */
export function gatherDelta(delta: Json, into: Gather, field: string): void {
  let reasoning = '';
  let structured = false;
  for (const key in delta) {
    const value = delta[key];
    if (value === null || value === undefined || value === '') continue;
    if (key === 'content') {
      if (typeof value === 'string') into.add('text', value);
      else gatherContent(value, into, field);
    } else if (SILENT.has(key)) {
    } else if (key === 'tool_calls') gatherToolCalls(value, into);
    else if (key === 'refusal') {
      if (typeof value === 'string') into.add('refusal', value);
    } else if (REASONING.has(key)) {
      if (typeof value === 'string') reasoning ||= value;
      else if (isObject(value) || Array.isArray(value)) reasoning ||= joinedText(value);
    } else if (
      key === 'reasoning_details' ||
      key === 'thinking_blocks' ||
      key === 'cot_summary' ||
      key === 'reasoning_summary'
    ) {
      structured = true;
    } else if (key === 'function_call') gatherFunction(value, into);
    else if (key === 'audio') gatherAudio(value, into, field);
    else if (key === 'text' && typeof value === 'string') into.add('text', value);
    else if (typeof value === 'string' || (typeof value === 'object' && hasSubstance(value))) {
      into.add('unclassified', typeof value === 'string' ? value : '', `${field}.${key}`);
    }
  }
  if (reasoning !== '')
    into.add(structured && onlySummaries(delta.reasoning_details) ? 'summary' : 'reasoning', reasoning);
  else if (structured) gatherReasoningDetails(delta, into);
}

/** Content as typed parts (Mistral, Databricks, audio models), or one such part. */
export function gatherContent(content: unknown, into: Gather, field: string): void {
  const parts = Array.isArray(content) ? content : [content];
  for (const part of parts) {
    if (typeof part === 'string') {
      if (part !== '') into.add('text', part);
      continue;
    }
    if (!isObject(part)) continue;
    const type = textOf(part.type) ?? 'text';
    switch (type) {
      case 'text':
      case 'output_text':
      case 'input_text': {
        const text = typeof part.text === 'object' ? joinedText(part.text) : textOf(part.text);
        if (text) into.add('text', text);
        break;
      }
      case 'thinking':
      case 'reasoning':
      case 'reasoning_text':
      case 'reasoning_content':
      case 'redacted_thinking': {
        const summary = joinedText(part.summary);
        if (summary !== '') into.add('summary', summary);
        const text = joinedText(part.thinking ?? part.reasoning ?? part.text ?? part.content);
        if (text !== '') into.add('reasoning', text);
        break;
      }
      case 'summary_text': {
        const text = textOf(part.text);
        if (text) into.add('summary', text);
        break;
      }
      case 'refusal': {
        const text = textOf(part.refusal) ?? textOf(part.text);
        if (text) into.add('refusal', text);
        break;
      }
      case 'tool_use':
      case 'function':
      case 'tool_call':
        gatherFunction(part.function ?? part, into);
        break;
      case 'reference':
      case 'tool_reference':
      case 'citation':
        break;
      default: {
        const { type: _, id: __, index: ___, ...rest } = part;
        if (hasSubstance(rest)) into.add('unclassified', textOf(part.text) ?? '', `${field}.content.${type}`);
      }
    }
  }
}

export function gatherToolCalls(calls: unknown, into: Gather): void {
  for (const call of Array.isArray(calls) ? calls : [calls]) {
    if (!isObject(call)) continue;
    gatherFunction(call.function ?? call.custom ?? call, into);
  }
}

/** A name or arguments; arguments may be text in pieces, or an object all at once. */
export function gatherFunction(f: unknown, into: Gather): void {
  if (!isObject(f)) return;
  const name = textOf(f.name);
  if (name !== undefined) into.add('tool', name);
  const args = f.arguments ?? f.input ?? f.args ?? f.parameters;
  if (typeof args === 'string') {
    if (args !== '') into.add('tool', args);
  } else if (typeof args === 'object' && args !== null && Object.keys(args).length > 0) {
    into.add('tool', JSON.stringify(args));
  }
}

function gatherAudio(audio: unknown, into: Gather, field: string): void {
  if (!isObject(audio)) return;
  const transcript = textOf(audio.transcript);
  if (transcript !== undefined) into.add('text', transcript);
  if (textOf(audio.data) !== undefined) into.add('unclassified', '', `${field}.audio.data`);
}

/** `reasoning_details` (OpenRouter), `thinking_blocks` (LiteLLM), `cot_summary` (Copilot), where no plain text stood beside. */
function gatherReasoningDetails(delta: Json, into: Gather): void {
  for (const key of ['cot_summary', 'reasoning_summary']) {
    const summary = joinedText(delta[key]);
    if (summary !== '') {
      into.add('summary', summary);
      return;
    }
  }
  const details = listOf(delta.reasoning_details);
  for (const detail of details.length > 0 ? details : listOf(delta.thinking_blocks)) {
    if (!isObject(detail)) continue;
    const summary = joinedText(detail.summary);
    if (summary !== '') into.add('summary', summary);
    const text = joinedText(detail.text ?? detail.thinking);
    if (text !== '') into.add('reasoning', text);
  }
}

function onlySummaries(details: unknown): boolean {
  const list = listOf(details).filter((d) => isObject(d) && d.type !== 'reasoning.encrypted');
  return list.length > 0 && list.every((d) => isObject(d) && d.type === 'reasoning.summary');
}

/** The texts of a string, a list of strings or of `{text}` parts, or a `{text}` part. */
export function joinedText(x: unknown, depth = 0): string {
  if (typeof x === 'string') return x;
  if (depth > 4) return '';
  if (Array.isArray(x)) return x.map((item) => joinedText(item, depth + 1)).join('');
  if (isObject(x)) return joinedText(x.text ?? x.thinking ?? x.summary ?? x.content ?? x.value ?? '', depth + 1);
  return '';
}
