/** A trace as a workload: its arrivals to the microsecond, its lengths, and its shared prefixes as shared text. */
import type { Message, Offer, Prompt, RequestSpec, Workload } from '../../core/request.ts';
import { PLAIN_TEXT, prefixBlocks, type Stretch, type TextPlan, type TextSource, textSource } from '../prompts.ts';
import { type Chains, chainsOf, saidBy, sessionReplay } from './sessions.ts';
import type { Trace } from './trace.ts';

export interface ReplayPlan {
  readonly trace: Trace;
  readonly choices: number;
  readonly stream: boolean;
  readonly ignoreEos: boolean;
  readonly prompt: 'text' | 'none';
  readonly text?: TextPlan;
}

export function replay(plan: ReplayPlan, seed: number): Workload {
  const chains = plan.trace.sessions && chainsOf(plan.trace);
  const spec = replaySource(plan, seed, chains);
  if (chains) return sessionReplay(plan.trace, chains, spec);
  const { at, length } = plan.trace;
  let i = 0;
  return {
    next: (): Offer | undefined => (i < length ? { at: (at[i] as number) / 1000, spec: spec(i++) } : undefined),
    ended: () => [],
  };
}

/** The spec of request `i` of the trace, which is operation `i`. */
export function replaySource(plan: ReplayPlan, seed: number, chains?: Chains): (i: number) => RequestSpec {
  const { trace, choices, stream, ignoreEos } = plan;
  const source = textSource(seed, plan.text ?? PLAIN_TEXT);
  return (i) => {
    const inputTokens = trace.input[i] as number;
    const said = chains && !trace.blocks ? saidBy(trace, chains, i) : stretchesOf(trace, i, inputTokens);
    const last = said.at(-1) as Stretch;
    const { overhead } = source.plan;
    return {
      operation: i,
      attempt: 0,
      class: trace.classes[trace.classOf[i] as number] as string,
      inputTokens,
      outputTokens: trace.output[i] as number,
      choices,
      stream,
      ignoreEos,
      ...(chains && { session: chains.session[i] as number, turn: chains.turn[i] as number }),
      ...((trace.blocks || chains) && { prefixBlocks: prefixBlocks(said) }),
      ...(plan.prompt === 'text' && {
        // The chat template's tokens come off the end, which is shared least.
        prompt: written([...said.slice(0, -1), { ...last, tokens: Math.max(1, last.tokens - overhead) }], source),
      }),
    };
  };
}

/** One text, or question and answer in turn where answers are among it. */
function written(said: readonly Stretch[], source: TextSource): Prompt {
  if (!said.some((stretch) => stretch.purpose === 'answer')) return source.text(said);
  return said.map(
    (stretch): Message => ({
      role: stretch.purpose === 'answer' ? 'assistant' : 'user',
      content: source.text([stretch]),
    }),
  );
}

/** The blocks the trace names, each the beginning of its own text, and what is left as the request's own. */
function stretchesOf(trace: Trace, i: number, inputTokens: number): Stretch[] {
  const said: Stretch[] = [];
  let left = inputTokens;
  const { blocks } = trace;
  if (blocks) {
    for (let b = blocks.offsets[i] as number; b < (blocks.offsets[i + 1] as number) && left > 0; b++) {
      const tokens = Math.min(blocks.tokens, left);
      said.push({ purpose: 'block', key: blocks.ids[b] as number, tokens });
      left -= tokens;
    }
  }
  if (left > 0) said.push({ purpose: 'prompt', key: i, tokens: left });
  return said;
}
