/**
 * Streams of `choices`: OpenAI chat and legacy completions, with the quirks of the servers that speak them.
 * - Azure: a first chunk without choices, a last one whose choice has no delta.
 * - vLLM: cumulative usage on every chunk when asked (`continuous_usage_stats`), token ids when asked, and an end token
 *   that usage counts and the text does not show: its finish chunk has `stop_reason: null` then. SGLang says
 *   `matched_stop: <id>`.
 * - llama.cpp: `timings.predicted_n` on every chunk when asked, `prompt_progress` chunks during prefill.
 * - OpenRouter: an error in mid-stream beside a choice that finishes with `error`.
 */
import {
  type Finish,
  NO_MEANING,
  type OutputPart,
  type StreamError,
  type StreamEvent,
  type Usage,
} from '../../core/stream.ts';
import { GrowingCount } from '../counts.ts';
import type { Decoder } from '../dialect.ts';
import { describe, errorIn } from '../errors.ts';
import { Gather } from '../gather.ts';
import { countOf, indexOf, isObject, type Json, listOf, objectOf, textOf } from '../json.ts';
import { eventOf, Finishes, type Meaning, ModelOnce } from '../meaning.ts';
import { gatherContent, gatherDelta } from './openai-delta.ts';
import { serverTimes, usageOf } from './openai-usage.ts';

/** What is known of one choice so far. */
interface ChoiceState {
  readonly count: GrowingCount;
  hadOutput: boolean;
  /** Token ids seen, a growing count of their own. */
  ids: number;
  /** Completion tokens by the last usage on a chunk of this choice alone. */
  counted: number;
}

export class ChoicesDecoder implements Decoder {
  readonly repeatable = true;
  readonly #states = new Map<number, ChoiceState>();
  readonly #finishes = new Finishes();
  readonly #model = new ModelOnce();
  readonly #gather = new Gather();

  event(json: Json): StreamEvent {
    const { choices } = json;
    if (json.error !== undefined || !Array.isArray(choices)) {
      const error = errorIn(json);
      if (error !== undefined) return this.#error(json, error);
    }
    const list = listOf(choices);
    const rawUsage = json.usage ?? objectOf(json.x_groq)?.usage ?? objectOf(list[0])?.usage;
    let usage = rawUsage === undefined || rawUsage === null ? undefined : usageOf(rawUsage);
    let outputs: OutputPart[] | undefined;
    let finishes: Finish[] | undefined;
    let error: StreamError | undefined;
    for (const choice of list) {
      if (!isObject(choice)) continue;
      const index = indexOf(choice.index);
      const state = this.#state(index);
      const reason = finishOf(choice.finish_reason);
      const unseen = reason === undefined ? 0 : unseenEnd(choice, reason);
      const part = this.#output(choice, index, state, json, list.length === 1 ? usage : undefined, reason, unseen);
      if (part !== undefined) {
        if (outputs === undefined) outputs = [part];
        else outputs.push(part);
      }
      if (reason !== undefined) {
        const finish = this.#finishes.once(index, reason, unseen);
        if (finish !== undefined) (finishes ??= []).push(finish);
      }
      if (isObject(choice.error)) error ??= describe(choice.error);
    }
    if (usage !== undefined && list.length === 1) usage = this.#overChoices(usage, indexOf(objectOf(list[0])?.index));
    const meaning: Meaning = { outputs, finishes, usage, error, model: this.#model.tell(json.model) };
    if (json.timings !== undefined || json.metrics !== undefined || usage !== undefined) {
      meaning.server = serverTimes(json, rawUsage);
    }
    return eventOf(meaning);
  }

  end(): undefined {
    return undefined;
  }

  #state(index: number): ChoiceState {
    let state = this.#states.get(index);
    if (state === undefined) {
      state = { count: new GrowingCount(), hadOutput: false, ids: 0, counted: 0 };
      this.#states.set(index, state);
    }
    return state;
  }

  #output(
    choice: Json,
    index: number,
    state: ChoiceState,
    json: Json,
    usage: Usage | undefined,
    reason: string | undefined,
    unseen: number,
  ): OutputPart | undefined {
    const gather = this.#gather;
    gather.clear();
    const { delta, text } = choice;
    if (isObject(delta)) gatherDelta(delta, gather, 'delta');
    else if (typeof text === 'string') {
      if (text !== '') gather.add('text', text);
    } else if (text !== undefined && text !== null) gatherContent(text, gather, 'choice');
    else if (isObject(choice.message) && !state.hadOutput) gatherDelta(choice.message, gather, 'message');

    const total = this.#total(choice, state, json, usage);
    if (!gather.found) {
      state.count.silent(total);
      return undefined;
    }
    state.hadOutput = true;
    return gather.part(index, state.count.output(total, reason !== undefined, unseen));
  }

  /** Tokens of this choice so far, by whichever the chunk has: token ids, its usage, llama.cpp's timings. */
  #total(choice: Json, state: ChoiceState, json: Json, usage: Usage | undefined): number | undefined {
    const { token_ids: ids } = choice;
    if (Array.isArray(ids)) {
      state.ids += ids.length;
      return state.ids;
    }
    if (usage?.output !== undefined) return usage.output;
    return json.timings === undefined ? undefined : countOf(objectOf(json.timings)?.predicted_n);
  }

  /**
   * Usage on a chunk of one choice counts that choice alone where it grows chunk by chunk; with several choices the sum is
   * what the request has used so far. A usage that only comes at the end is the request's.
   */
  #overChoices(usage: Usage, index: number): Usage {
    const state = this.#states.get(index);
    if (state === undefined || usage.output === undefined) return usage;
    state.counted = usage.output;
    if (this.#states.size < 2) return usage;
    let sum = 0;
    for (const s of this.#states.values()) {
      if (s.counted > 0 && !s.count.counting) return usage;
      sum += s.counted;
    }
    return sum === usage.output ? usage : { ...usage, output: sum };
  }

  #error(json: Json, error: StreamError): StreamEvent {
    let finishes: Finish[] | undefined;
    const outputs: OutputPart[] = [];
    for (const choice of listOf(json.choices)) {
      if (!isObject(choice)) continue;
      const index = indexOf(choice.index);
      const reason = finishOf(choice.finish_reason);
      const part = this.#output(choice, index, this.#state(index), json, undefined, reason, 0);
      if (part !== undefined) outputs.push(part);
      const finish = reason === undefined ? undefined : this.#finishes.once(index, reason);
      if (finish !== undefined) (finishes ??= []).push(finish);
    }
    return eventOf({ outputs, finishes, error, usage: usageOf(json.usage) });
  }
}

/** A whole answer: `choices` with `message` or `text`. */
export function wholeChoices(json: unknown): StreamEvent {
  if (!isObject(json)) return { outputs: [], whole: true, malformed: 'the body is not a JSON object' };
  const event = new ChoicesDecoder().event(json);
  if (event.error === undefined && !Array.isArray(json.choices)) {
    return { outputs: [], whole: true, malformed: 'the body has neither choices nor an error' };
  }
  return event === NO_MEANING ? { outputs: [], whole: true } : { ...event, whole: true };
}

function finishOf(x: unknown): string | undefined {
  return textOf(x) ?? (isObject(x) ? textOf(x.type) : undefined);
}

/** 1 where the model stopped at an end token that usage counts and no text shows. */
function unseenEnd(choice: Json, reason: string): number {
  if (reason !== 'stop' && reason !== 'tool_calls') return 0;
  if (choice.stop_reason === null || typeof choice.matched_stop === 'number') return 1;
  return 0;
}
