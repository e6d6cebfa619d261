/** Asking before a large load leaves this machine. */
import { InputError } from '../base/errors.ts';
import type { OpenTarget } from './target.ts';

/** Off loopback, a plan beyond one of these asks first. */
const ASK_BEYOND = { requests: 1000, tokens: 1_000_000 } as const;

/** @param yes it was said beforehand. @throws InputError when the answer is no, or nobody can be asked. */
export async function confirmPlan(
  target: OpenTarget,
  yes: boolean,
  plan: { readonly requests: number; readonly tokens: number },
): Promise<void> {
  if (target.local || yes || (plan.requests <= ASK_BEYOND.requests && plan.tokens <= ASK_BEYOND.tokens)) return;
  const what = `this puts about ${plan.requests} requests and ${plan.tokens} tokens on ${target.name}`;
  if (!process.stdin.isTTY) throw new InputError(`${what}; add --yes to do it`);
  const { createInterface } = await import('node:readline/promises');
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await asking.question(`${what[0]?.toUpperCase()}${what.slice(1)}. Go on? [y/N] `);
  asking.close();
  if (!/^y(es)?$/i.test(answer.trim())) throw new InputError('nothing was sent');
}
