/** Prompts as a target gets them: salted, to the server's own token count, and its prefix cache in the state that was asked for. */
import { randomInt } from 'node:crypto';
import { trim } from '../base/units.ts';
import { type LoadPlan, mixOf, withText } from './load-plan.ts';
import type { OpenTarget, TargetFlags } from './target.ts';

export interface PromptFlags extends TargetFlags {
  readonly calibrate: boolean;
}

/** The plan with its texts as this target gets them: salted unless told not to, and to the server's own count on request. */
export async function written(
  flags: PromptFlags,
  plan: LoadPlan,
  target: OpenTarget,
  say: (line: string) => void,
): Promise<LoadPlan> {
  const load: LoadPlan = { ...plan, requests: { ...plan.requests, prompt: target.prompt } };
  if (target.prompt === 'none') return load;
  const salt = plan.cache === 'as-is' ? 0 : randomInt(1, 2 ** 20);
  let measured = { tokensPerWord: 1, overhead: 0 };
  if (flags.calibrate) {
    const { calibrate } = await import('./prompt-tokens.ts');
    const found = await calibrate(target);
    if (found) {
      measured = found;
      say(
        `Prompts   by the server's own tokenizer a word is ${trim(found.tokensPerWord, 4)} tokens, and it adds ${found.overhead}; lengths are corrected by that`,
      );
    } else say('Prompts   the server has no /tokenize to calibrate by; a word is taken as one token');
  }
  return withText(load, { salt, ...measured });
}

/** How texts are made differs from run to run by its salt: it stands apart from what is asked. */
export function plain({ text: _, ...requests }: LoadPlan['requests']): Omit<LoadPlan['requests'], 'text'> {
  return requests;
}

/** Sends every shared prefix once, so that the cache holds it when the warm-up begins. Outside all figures. */
export async function warmPrefixes(
  load: LoadPlan,
  seed: number,
  target: OpenTarget,
): Promise<{ sent: number; failed: number }> {
  const mix = mixOf(load);
  let sent = 0;
  let failed = 0;
  if (!mix) return { sent, failed };
  const { MixSource } = await import('../workload/index.ts');
  for (const { tokens, blocks, prompt } of new MixSource(mix, seed).prefixes()) {
    if (sent >= MAX_WARM) break;
    sent++;
    const ok = await new Promise<boolean>((resolve) => {
      let finished = false;
      target.engine.submit(
        {
          operation: WARM_OPERATIONS + sent,
          attempt: 0,
          class: 'warm',
          inputTokens: tokens + 1,
          outputTokens: 1,
          choices: 1,
          stream: true,
          ignoreEos: true,
          prefixBlocks: blocks,
          ...(target.prompt === 'text' && { prompt }),
        },
        {
          dispatched: () => {},
          connected: () => {},
          sent: () => {},
          headers: () => {},
          event: (_t, event) => {
            if (event.finishes?.length) finished = true;
          },
          ended: (_t, ending) => resolve(ending.kind === 'closed' || finished),
        },
      );
    });
    if (!ok) failed++;
  }
  return { sent, failed };
}

/** More prefixes than this are not warmed one by one. */
export const MAX_WARM = 1000;
/** Numbers no operation of a run has. */
const WARM_OPERATIONS = 2 ** 40;
