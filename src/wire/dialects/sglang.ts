/**
 * SGLang's own /generate. By default `text` is everything so far, and the chunk is what it adds; with incremental output
 * it is the chunk. Which of the two is not said and is read from the stream: cumulative text begins with the text before.
 * `output_ids` give exact counts, and `matched` names the end token that ended it, which is no output.
 */
import type { Finish, OutputPart, ServerTimes, StreamEvent, Usage } from '../../core/stream.ts';
import { GrowingCount } from '../counts.ts';
import type { Decoder, Dialect } from '../dialect.ts';
import { describe, errorIn } from '../errors.ts';
import { countOf, indexOf, isObject, type Json, listOf, objectOf, present, textOf } from '../json.ts';
import { eventOf, Finishes, type Meaning } from '../meaning.ts';
import { textPromptOf } from '../request.ts';

interface Choice {
  readonly count: GrowingCount;
  mode: 'unknown' | 'cumulative' | 'incremental';
  /** All text so far, in cumulative mode and until the mode is known. */
  text: string;
  /** Ids delivered, and the count by meta_info, so far. */
  ids: number;
  completion: number;
}

class SglangDecoder implements Decoder {
  readonly #choices = new Map<number, Choice>();
  readonly #finishes = new Finishes();
  readonly #usages = new Map<number, Usage>();

  event(json: Json): StreamEvent {
    const meta = objectOf(json.meta_info);
    const error = meta === undefined || json.error !== undefined ? errorIn(json) : undefined;
    if (error !== undefined) return eventOf({ error });
    const index = indexOf(json.index);
    const choice = this.#choice(index);
    const completion = countOf(meta?.completion_tokens);
    const end = meta?.finish_reason;
    const reason = textOf(end) ?? textOf(objectOf(end)?.type);
    const matched = objectOf(end)?.matched;
    const meaning: Meaning = { usage: this.#usage(meta, index), server: timesOf(meta) };

    const ids = listOf(json.output_ids);
    this.#learnMode(choice, ids.length, completion);
    const newText = this.#newText(choice, typeof json.text === 'string' ? json.text : '');
    let newIds = choice.mode === 'cumulative' ? Math.max(0, ids.length - choice.ids) : ids.length;
    choice.ids += newIds;
    if (newIds > 0 && typeof matched === 'number' && ids.at(-1) === matched) newIds--;
    if (completion !== undefined) choice.completion = completion;

    const unseen = typeof matched === 'number' ? 1 : 0;
    if (newText !== '' || newIds > 0) {
      const tokens =
        newText === '' || completion === undefined
          ? newIds > 0
            ? newIds
            : undefined
          : choice.count.output(completion, reason !== undefined, unseen);
      const part: OutputPart = {
        choice: index,
        kind: 'text',
        ...(tokens !== undefined && { tokens }),
        ...(newText !== '' && { text: newText }),
      };
      meaning.outputs = [part];
    } else choice.count.silent(completion);

    if (reason !== undefined) {
      const finish: Finish | undefined = this.#finishes.once(index, reason, unseen);
      meaning.finishes = finish && [finish];
      if (reason === 'abort' && isObject(end))
        meaning.error = describe({ message: 'the engine aborted the request', ...end, type: end.err_type });
    }
    return eventOf(meaning);
  }

  end(): undefined {
    return undefined;
  }

  #choice(index: number): Choice {
    let choice = this.#choices.get(index);
    if (choice === undefined) {
      choice = { count: new GrowingCount(), mode: 'unknown', text: '', ids: 0, completion: 0 };
      this.#choices.set(index, choice);
    }
    return choice;
  }

  /** As many ids as tokens so far: cumulative. As many as tokens since the last event: incremental. */
  #learnMode(choice: Choice, ids: number, completion: number | undefined): void {
    if (choice.mode !== 'unknown' || ids === 0 || completion === undefined || choice.completion === 0) return;
    if (ids === completion) choice.mode = 'cumulative';
    else if (ids <= completion - choice.completion) choice.mode = 'incremental';
  }

  #newText(choice: Choice, text: string): string {
    if (choice.mode === 'incremental' || text === '') return text;
    const before = choice.text;
    if (text.startsWith(before)) {
      if (before !== '' && text.length > before.length) choice.mode = 'cumulative';
      choice.text = text;
      return text.slice(before.length);
    }
    let same = 0;
    while (same < text.length && text.charCodeAt(same) === before.charCodeAt(same)) same++;
    if (choice.mode === 'cumulative' && same > 0) {
      choice.text = text; // the server took its last characters back
      return text.slice(same);
    }
    choice.mode = 'incremental';
    choice.text = '';
    return text;
  }

  /** Counts are a choice's own; the request's are their sum. */
  #usage(meta: Json | undefined, index: number): Usage | undefined {
    if (meta === undefined) return undefined;
    const own = present<Usage>({
      input: countOf(meta.prompt_tokens),
      output: countOf(meta.completion_tokens),
      reasoning: countOf(meta.reasoning_tokens),
      cachedInput: countOf(meta.cached_tokens),
    });
    if (own === undefined) return undefined;
    this.#usages.set(index, own);
    if (this.#usages.size < 2) return own;
    let output = 0;
    for (const usage of this.#usages.values()) output += usage.output ?? 0;
    return { ...own, output };
  }
}

function timesOf(meta: Json | undefined): ServerTimes | undefined {
  if (meta === undefined || (meta.e2e_latency === undefined && meta.queue_time === undefined)) return undefined;
  const e2e = countOf(meta.e2e_latency);
  const queue = countOf(meta.queue_time);
  return present<ServerTimes>({ e2e: e2e && e2e * 1000, queue: queue && queue * 1000 });
}

export const sglangGenerate: Dialect = {
  name: 'sglang.generate',
  framing: 'sse',
  path: () => '/generate',
  serves: (path) => /^\/generate\/?$/.test(path),
  recognises: (json) => isObject(json.meta_info),
  decoder: () => new SglangDecoder(),
  whole(json) {
    const list = (Array.isArray(json) ? json : [json]).filter(isObject);
    const decoder = new SglangDecoder();
    const events = list.map((element, index) => decoder.event({ index, ...element }));
    const error = events.find((e) => e.error !== undefined)?.error;
    if (error === undefined && !list.some((x) => x.meta_info !== undefined || typeof x.text === 'string')) {
      return { outputs: [], whole: true, malformed: 'the body has neither text nor an error' };
    }
    return eventOf({
      outputs: events.flatMap((e) => e.outputs),
      finishes: events.flatMap((e) => e.finishes ?? []),
      usage: events.findLast((e) => e.usage !== undefined)?.usage,
      server: events.findLast((e) => e.server !== undefined)?.server,
      error,
      whole: true,
    });
  },
  body({ spec }) {
    return {
      text: textPromptOf(spec),
      sampling_params: {
        max_new_tokens: spec.outputTokens,
        ...(spec.ignoreEos && { ignore_eos: true }),
        ...(spec.choices > 1 && { n: spec.choices }),
      },
      stream: spec.stream,
    };
  },
};
