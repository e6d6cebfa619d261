/**
 * Traffic classes: what each kind of request asks for, and the spec of any operation of a mix. A spec follows from (plan,
 * seed, arrival, operation) alone, so any shard of workers draws the same one.
 */
import { keyedSource, type Uniform } from '../base/random.ts';
import type { ContentPart, Message, Prompt, RequestSpec, ToolDefinition } from '../core/request.ts';
import { type Dataset, type DatasetEntry, datasetOrder, estimateTokens, saltedPrompt } from './dataset.ts';
import { type ImagePlan, imageUrl } from './images.ts';
import { type LengthPlan, lengthDraw, meanLength } from './lengths.ts';
import type { PausePlan } from './pauses.ts';
import { everyPrefix, type PrefixPlan, prefixDraw, prefixTokens } from './prefix.ts';
import { PLAIN_TEXT, prefixBlocks, type Stretch, type TextPlan, type TextSource, textSource } from './prompts.ts';

export interface ClassPlan {
  readonly name: string;
  /** Weight among the classes. */
  readonly share: number;
  /** Tokens of the request's own part of the prompt: what it adds to its shared prefix and its history. */
  readonly input: LengthPlan;
  readonly output: LengthPlan;
  readonly choices: number;
  readonly stream: boolean;
  readonly ignoreEos: boolean;
  readonly prefix?: PrefixPlan;
  readonly session?: SessionPlan;
  readonly images?: ImagePlan;
  readonly tools?: readonly ToolDefinition[];
  /** Prompts of a file instead of synthesised ones. */
  readonly dataset?: Dataset;
}

/** A conversation: each turn asks with all that went before. */
export interface SessionPlan {
  /** Turns of a session; of a dataset's conversations at most so many, and all of them when absent. */
  readonly turns?: LengthPlan;
  /** From the end of an answer to the next question. */
  readonly think: PausePlan;
  /** A session ends before the turn whose prompt and answer together would have more tokens than this. */
  readonly context?: number;
}

export interface MixPlan {
  readonly classes: readonly ClassPlan[];
  /** `text`: prompts are written out; `none`: only lengths and block hashes (simulation). */
  readonly prompt: 'text' | 'none';
  readonly text?: TextPlan;
}

/** A turn of a session, or a request by itself, as drawn. */
export interface Turn {
  readonly operation: number;
  readonly input: number;
  readonly output: number;
}

/** More turns than this no conversation has. */
export const MAX_TURNS = 1000;

/** Turns of a session on average. */
export function meanTurns({ session, dataset }: ClassPlan): number {
  if (!session) return 1;
  const most = session.turns ? meanLength(session.turns) : MAX_TURNS;
  if (!dataset) return most;
  const { entries } = dataset;
  return entries.reduce((sum, entry) => sum + Math.min(most, entry.turns?.length ?? 1), 0) / entries.length;
}

/** Tokens of a question and of an answer of a dataset on average: of a turn in sessions, else of an entry. */
function meanOfEntries({ entries }: Dataset, { session, output }: ClassPlan): readonly [own: number, answer: number] {
  let n = 0;
  let own = 0;
  let said = 0;
  const drawn = meanLength(output);
  for (const entry of entries) {
    const turns = session ? (entry.turns ?? []) : [];
    for (const turn of turns) {
      own += estimateTokens(turn.said);
      said += turn.outputTokens ?? drawn;
    }
    if (turns.length === 0) {
      own += entry.estimatedTokens;
      said += entry.outputTokens ?? drawn;
    }
    n += Math.max(1, turns.length);
  }
  return [own / n, said / n];
}

export const hasSessions = (mix: MixPlan): boolean => mix.classes.some((c) => c.session !== undefined);

/** Mean tokens of one arrival of the mix (all turns of a session; history counted each time it is sent). */
export function meanTokens(mix: MixPlan): {
  readonly requests: number;
  readonly input: number;
  readonly output: number;
} {
  const total = mix.classes.reduce((sum, c) => sum + c.share, 0);
  let requests = 0;
  let input = 0;
  let output = 0;
  for (const c of mix.classes) {
    const weight = c.share / total;
    const turns = meanTurns(c);
    const [own, said] = c.dataset ? meanOfEntries(c.dataset, c) : [meanLength(c.input), meanLength(c.output)];
    const answer = said * c.choices;
    const prefix = c.prefix ? prefixTokens(c.prefix) : 0;
    requests += weight * turns;
    input += weight * (turns * (prefix + own) + ((turns * (turns - 1)) / 2) * (own + said));
    output += weight * turns * answer;
  }
  return { requests, input, output };
}

/** Draws of one mix. `arrival` counts sessions (or requests), `operation` single requests. */
export class MixSource {
  readonly mix: MixPlan;
  readonly #text: TextSource;
  readonly #class: (arrival: number) => Uniform;
  readonly #input: (operation: number) => Uniform;
  readonly #output: (operation: number) => Uniform;
  readonly #path: (arrival: number) => Uniform;
  readonly #turns: (arrival: number) => Uniform;
  readonly #image: (operation: number) => Uniform;
  readonly #upTo: readonly number[];
  readonly #draws: readonly ClassDraws[];

  constructor(mix: MixPlan, seed: number) {
    this.mix = mix;
    this.#text = textSource(seed, mix.text ?? PLAIN_TEXT);
    this.#class = keyedSource(seed, 'class');
    this.#input = keyedSource(seed, 'input-length');
    this.#output = keyedSource(seed, 'output-length');
    this.#path = keyedSource(seed, 'prefix-path');
    this.#turns = keyedSource(seed, 'turns');
    this.#image = keyedSource(seed, 'image');
    const total = mix.classes.reduce((sum, c) => sum + c.share, 0);
    let sum = 0;
    this.#upTo = mix.classes.map((c) => (sum += c.share) / total);
    this.#draws = mix.classes.map((c) => ({
      input: lengthDraw(c.input),
      output: lengthDraw(c.output),
      ...(c.prefix && { prefix: prefixDraw(c.prefix) }),
      ...(c.session?.turns && { turns: lengthDraw(c.session.turns) }),
      ...(c.dataset && { order: datasetOrder(c.dataset, seed) }),
    }));
  }

  /** Which class an arrival is of: an index of `mix.classes`. */
  pick(arrival: number): number {
    if (this.#upTo.length === 1) return 0;
    const x = this.#class(arrival)();
    const last = this.#upTo.length - 1;
    for (let i = 0; i < last; i++) if (x < (this.#upTo[i] as number)) return i;
    return last;
  }

  /** The turns of an arrival whose first request is operation `first`: one where its class has no sessions. */
  turnsOf(index: number, arrival: number, first: number): readonly Turn[] {
    const plan = this.mix.classes[index] as ClassPlan;
    const draws = this.#draws[index] as ClassDraws;
    const recorded = plan.dataset && plan.session ? this.#entryOf(index, plan.dataset, arrival) : undefined;
    const most = draws.turns ? draws.turns(this.#turns(arrival)) : recorded ? MAX_TURNS : 1;
    const count = Math.min(MAX_TURNS, most, recorded ? (recorded.turns?.length ?? 1) : MAX_TURNS);
    const limit = plan.session?.context ?? Number.POSITIVE_INFINITY;
    let history = plan.prefix ? prefixTokens(plan.prefix) : 0;
    const turns: Turn[] = [];
    for (let k = 0; k < count; k++) {
      const operation = first + k;
      const turn = recorded?.turns?.[k];
      const input = turn
        ? estimateTokens(turn.said)
        : (recorded?.estimatedTokens ?? draws.input(this.#input(operation)));
      const output = turn?.outputTokens ?? recorded?.outputTokens ?? draws.output(this.#output(operation));
      history += input + output;
      if (k > 0 && history > limit) break;
      turns.push({ operation, input, output });
    }
    return turns;
  }

  /** The spec of operation `operation` where no class has sessions: arrivals and operations are one. */
  single(operation: number): RequestSpec {
    const index = this.pick(operation);
    const plan = this.mix.classes[index] as ClassPlan;
    const draws = this.#draws[index] as ClassDraws;
    if (this.mix.prompt === 'text' || plan.prefix || plan.dataset || plan.tools) {
      return this.spec(index, operation, this.turnsOf(index, operation, operation), 0, false);
    }
    // Only lengths: what a simulation asks for a million times.
    return {
      operation,
      attempt: 0,
      class: plan.name,
      inputTokens: draws.input(this.#input(operation)),
      outputTokens: draws.output(this.#output(operation)),
      choices: plan.choices,
      stream: plan.stream,
      ignoreEos: plan.ignoreEos,
    };
  }

  /** The spec of turn `k`. */
  spec(index: number, arrival: number, turns: readonly Turn[], k: number, session: boolean): RequestSpec {
    const plan = this.mix.classes[index] as ClassPlan;
    const { operation, input, output } = turns[k] as Turn;
    const base = {
      operation,
      attempt: 0,
      class: plan.name,
      outputTokens: output,
      choices: plan.choices,
      stream: plan.stream,
      ignoreEos: plan.ignoreEos,
      ...(session && { session: arrival, turn: k }),
      ...(plan.tools?.length && { tools: plan.tools }),
    };
    if (plan.dataset && plan.session) return { ...base, ...this.#turn(index, plan.dataset, arrival, turns, k) };
    if (plan.dataset) return { ...base, ...this.#entry(index, plan.dataset, operation, output) };

    const shared = this.#draws[index]?.prefix?.(this.#path(arrival)) ?? [];
    const said: Stretch[] = []; // question, answer, question, …
    for (let i = 0; i < k; i++) {
      const turn = turns[i] as Turn;
      said.push({ purpose: 'prompt', key: turn.operation, tokens: turn.input });
      said.push({ purpose: 'answer', key: turn.operation, tokens: turn.output });
    }
    said.push({ purpose: 'prompt', key: operation, tokens: input });
    const all = [...shared, ...said];
    return {
      ...base,
      inputTokens: all.reduce((sum, s) => sum + s.tokens, 0),
      ...((shared.length > 0 || plan.session) && { prefixBlocks: prefixBlocks(all) }),
      ...(this.mix.prompt === 'text' && { prompt: this.#prompt(plan, shared, said, operation) }),
    };
  }

  #prompt(plan: ClassPlan, shared: readonly Stretch[], said: readonly Stretch[], operation: number): Prompt {
    const { overhead } = this.#text.plan;
    const text = (stretch: Stretch, less = 0): string =>
      this.#text.text([{ ...stretch, tokens: Math.max(1, stretch.tokens - less) }]);
    // What the server's chat template adds is taken off the newest question, which nobody shares.
    const newest = text(said.at(-1) as Stretch, overhead);
    const images = this.#images(plan, operation);
    if (shared.length === 0 && said.length === 1 && images.length === 0) return newest;
    const messages: Message[] = [];
    if (shared.length > 0) messages.push({ role: 'system', content: this.#text.text(shared) });
    for (const stretch of said.slice(0, -1)) {
      messages.push({ role: stretch.purpose === 'answer' ? 'assistant' : 'user', content: text(stretch) });
    }
    messages.push({
      role: 'user',
      content: images.length === 0 ? newest : [{ type: 'text', text: newest }, ...images],
    });
    return messages;
  }

  #images(plan: ClassPlan, operation: number): ContentPart[] {
    if (!plan.images) return [];
    const { count, width, height } = plan.images;
    const u = this.#image(operation);
    return Array.from({ length: count }, () => ({ type: 'image', url: imageUrl(width, height, u) }));
  }

  /** A dataset's entry for an arrival: each once before any comes again. */
  #entryOf(index: number, dataset: Dataset, arrival: number): DatasetEntry {
    const at = this.#draws[index]?.order?.[arrival % dataset.entries.length] as number;
    return dataset.entries[at] as DatasetEntry;
  }

  /** Turn `k` of a recorded conversation: all that was said before, the file's answers among it. */
  #turn(index: number, dataset: Dataset, arrival: number, turns: readonly Turn[], k: number) {
    const entry = this.#entryOf(index, dataset, arrival);
    const recorded = entry.turns ?? [];
    const written = this.mix.prompt === 'text';
    const said: Stretch[] = [];
    turns.slice(0, k + 1).forEach(({ input, output }, i) => {
      // Each conversation of each arrival is its own text to a simulated cache.
      const key = RECORDED + arrival * MAX_TURNS + i;
      said.push({ purpose: 'prompt', key, tokens: input });
      if (i < k) said.push({ purpose: 'answer', key, tokens: output });
    });
    const messages = recorded
      .slice(0, k + 1)
      .flatMap(({ said, answer }, i) => (i < k && answer ? [...said, answer] : [...said]));
    return {
      inputTokens: written ? 0 : said.reduce((sum, s) => sum + s.tokens, 0),
      ...(!written && { prefixBlocks: prefixBlocks(said) }),
      ...(entry.tools && { tools: entry.tools }),
      ...(written && {
        prompt: saltedPrompt(messages.length > 0 ? messages : entry.prompt, this.#text.plan.salt),
      }),
    };
  }

  #entry(index: number, dataset: Dataset, operation: number, drawn: number) {
    const entry = this.#entryOf(index, dataset, operation);
    const written = this.mix.prompt === 'text';
    return {
      // An estimated length is good enough to simulate by, not to hold the server's count against.
      inputTokens: entry.inputTokens ?? (written ? 0 : entry.estimatedTokens),
      outputTokens: entry.outputTokens ?? drawn,
      ...(entry.tools && { tools: entry.tools }),
      ...(written && { prompt: saltedPrompt(entry.prompt, this.#text.plan.salt) }),
    };
  }

  /** Every whole shared prefix of the mix, once: what a warm cache has seen. */
  *prefixes(): Generator<{ readonly tokens: number; readonly blocks: readonly number[]; readonly prompt: Prompt }> {
    const done = new Set<string>();
    for (const { prefix } of this.mix.classes) {
      if (!prefix || done.has(prefix.name)) continue;
      done.add(prefix.name);
      for (const path of everyPrefix(prefix)) {
        yield {
          tokens: prefixTokens(prefix),
          blocks: prefixBlocks(path),
          prompt: [
            { role: 'system', content: this.#text.text(path) },
            { role: 'user', content: 'Hello' },
          ],
        };
      }
    }
  }
}

/** Keys of recorded turns: above those of any operation. */
const RECORDED = 2 ** 42;

interface ClassDraws {
  readonly input: (u: Uniform) => number;
  readonly output: (u: Uniform) => number;
  readonly prefix?: (u: Uniform) => Stretch[];
  readonly turns?: (u: Uniform) => number;
  readonly order?: Uint32Array;
}
