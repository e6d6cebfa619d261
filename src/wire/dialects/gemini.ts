/**
 * Gemini streamGenerateContent, as SSE (`alt=sse`) or as a JSON array. Usage is cumulative on every chunk; the output is
 * candidates plus thoughts, which are billed apart and shown only as summaries. A blocked prompt has no candidates and
 * finishes with its block reason.
 */
import { textOfContent } from '../../core/request.ts';
import type { Finish, OutputPart, StreamEvent, Usage } from '../../core/stream.ts';
import { GrowingCount } from '../counts.ts';
import type { Decoder, Dialect } from '../dialect.ts';
import { errorIn } from '../errors.ts';
import { Gather } from '../gather.ts';
import { countOf, hasSubstance, indexOf, isObject, type Json, listOf, objectOf, present, textOf } from '../json.ts';
import { eventOf, Finishes, ModelOnce } from '../meaning.ts';
import { geminiContents, geminiTools } from '../messages.ts';
import { messagesOf } from '../request.ts';

class GeminiDecoder implements Decoder {
  readonly #gather = new Gather();
  readonly #finishes = new Finishes();
  readonly #model = new ModelOnce();
  readonly #count = new GrowingCount();
  #several = false;

  event(json: Json): StreamEvent {
    const error = json.error === undefined ? undefined : errorIn(json);
    const candidates = listOf(json.candidates);
    const meta = objectOf(json.usageMetadata);
    const outputs: OutputPart[] = [];
    const finishes: Finish[] = [];
    for (const candidate of candidates) {
      if (!isObject(candidate)) continue;
      const choice = indexOf(candidate.index);
      if (choice > 0) this.#several = true;
      const reason = finishOf(candidate.finishReason);
      this.#gather.clear();
      for (const part of listOf(objectOf(candidate.content)?.parts)) if (isObject(part)) gatherPart(part, this.#gather);
      const part = this.#gather.part(choice, this.#tokens(meta, reason !== undefined));
      if (part !== undefined) outputs.push(part);
      const finish = reason === undefined ? undefined : this.#finishes.once(choice, reason);
      if (finish !== undefined) finishes.push(finish);
    }
    const blocked = finishOf(objectOf(json.promptFeedback)?.blockReason);
    if (blocked !== undefined && candidates.length === 0) {
      const finish = this.#finishes.once(0, blocked);
      if (finish !== undefined) finishes.push(finish);
    }
    return eventOf({ outputs, finishes, error, usage: usageOf(meta), model: this.#model.tell(json.modelVersion) });
  }

  end(): undefined {
    return undefined;
  }

  /** Candidate tokens are counted over all candidates, so only a single one's chunks can be told; thoughts never. */
  #tokens(meta: Json | undefined, last: boolean): number | undefined {
    const total = countOf(meta?.candidatesTokenCount);
    if (this.#several) return undefined;
    const { kind } = this.#gather;
    if (kind !== undefined && kind !== 'summary') return this.#count.output(total, last, 0);
    this.#count.silent(total);
    return undefined;
  }
}

function gatherPart(part: Json, into: Gather): void {
  const text = textOf(part.text);
  if (text !== undefined) into.add(part.thought === true ? 'summary' : 'text', text);
  const call = objectOf(part.functionCall);
  if (call !== undefined) {
    const name = textOf(call.name);
    if (name !== undefined) into.add('tool', name);
    const args = call.args ?? call.partialArgs;
    if (typeof args === 'object' && args !== null && Object.keys(args).length > 0)
      into.add('tool', JSON.stringify(args));
  }
  const code = textOf(objectOf(part.executableCode)?.code);
  if (code !== undefined) into.add('tool', code);
  for (const [key, value] of Object.entries(part)) {
    if (!KNOWN_PARTS.has(key) && hasSubstance(value)) into.add('unclassified', textOf(value) ?? '', `parts.${key}`);
  }
}

/** Fields of a part that are read above, or are no output: signatures, marks, and results of tools the server ran. */
const KNOWN_PARTS: ReadonlySet<string> = new Set([
  'text',
  'thought',
  'thoughtSignature',
  'functionCall',
  'functionResponse',
  'executableCode',
  'codeExecutionResult',
  'toolCall',
  'toolResponse',
  'videoMetadata',
  'mediaResolution',
  'partMetadata',
]);

function finishOf(x: unknown): string | undefined {
  const reason = textOf(x);
  return reason === 'FINISH_REASON_UNSPECIFIED' || reason === 'BLOCK_REASON_UNSPECIFIED' ? undefined : reason;
}

function usageOf(meta: Json | undefined): Usage | undefined {
  if (meta === undefined) return undefined;
  const thoughts = countOf(meta.thoughtsTokenCount);
  const candidates = countOf(meta.candidatesTokenCount) ?? countOf(meta.responseTokenCount);
  return present<Usage>({
    input: countOf(meta.promptTokenCount),
    output: (candidates ?? 0) + (thoughts ?? 0),
    reasoning: thoughts,
    cachedInput: countOf(meta.cachedContentTokenCount),
  });
}

export const geminiStream: Dialect = {
  name: 'gemini.stream',
  framing: 'sse',
  path: (model) => `/v1beta/models/${encodeURIComponent(model)}:streamGenerateContent?alt=sse`,
  serves: (path) => /:(stream)?[gG]enerateContent$/.test(path),
  recognises(json) {
    if (json.candidates !== undefined || json.usageMetadata !== undefined || json.promptFeedback !== undefined)
      return true;
    const error = objectOf(json.error);
    return typeof error?.status === 'string' && /^[A-Z_]+$/.test(error.status) && typeof error.code === 'number';
  },
  decoder: () => new GeminiDecoder(),
  whole(json) {
    const decoder = new GeminiDecoder();
    const list = Array.isArray(json) ? json : [json];
    const events = list.filter(isObject).map((element) => decoder.event(element));
    const outputs = new Map<number, OutputPart>();
    for (const part of events.flatMap((e) => e.outputs)) {
      const before = outputs.get(part.choice);
      outputs.set(part.choice, {
        choice: part.choice,
        kind: before?.kind === 'text' ? 'text' : part.kind,
        text: (before?.text ?? '') + (part.text ?? ''),
      });
    }
    const error =
      events.find((e) => e.error !== undefined)?.error ??
      (isObject(json) && json.candidates === undefined ? errorIn(json) : undefined);
    if (error === undefined && !list.some((x) => isObject(x) && geminiStream.recognises(x))) {
      return { outputs: [], whole: true, malformed: 'the body has neither candidates nor an error' };
    }
    return eventOf({
      outputs: [...outputs.values()],
      finishes: events.flatMap((e) => e.finishes ?? []),
      usage: events.findLast((e) => e.usage !== undefined)?.usage,
      model: events.find((e) => e.model !== undefined)?.model,
      error,
      whole: true,
    });
  },
  body({ spec }) {
    const messages = messagesOf(spec);
    const system = messages.filter((m) => m.role === 'system').map((m) => ({ text: textOfContent(m.content) }));
    return {
      ...(system.length > 0 && { systemInstruction: { parts: system } }),
      contents: geminiContents(messages),
      ...geminiTools(spec.tools),
      generationConfig: {
        maxOutputTokens: spec.outputTokens,
        ...(spec.choices > 1 && { candidateCount: spec.choices }),
      },
    };
  },
};
