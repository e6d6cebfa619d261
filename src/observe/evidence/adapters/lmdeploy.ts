import { type Adapter, prefixed } from '../adapter.ts';
import { FINISH, lengths, phases, STATE, STEP_TOKENS } from './vllm-names.ts';

/** vLLM's names; its time per output token is one observation a step, as vLLM's of that name was. */
export const LMDEPLOY: Adapter = {
  engine: 'LMDeploy',
  role: 'engine',
  local: prefixed('lmdeploy:'),
  mend(told, notes) {
    const total = told.get('generation_tokens');
    const finished = told.get('output_length')?.sum;
    if (total?.count === undefined || finished === undefined || !(finished > 0)) return;
    if (Math.abs(total.count / finished - 2) > 0.02) return;
    notes.push(
      `generation_tokens_total (${total.count}) is twice the tokens of finished requests (${finished}): LMDeploy counted each twice in some versions, so the sum over finished requests is told`,
    );
    told.set('generation_tokens', { ...total, count: finished });
  },
  metrics: [
    ...phases({
      arrival: 'received by the frontend',
      queued: 'queued',
      ttft: { recorded: 'at the first token' },
    }),
    {
      concept: 'itl',
      // The last two are the same steps, in later versions each divided by its tokens.
      names: ['iter_token_latency', 'inter_token_latency_seconds', 'time_per_output_token_seconds'],
      clock: 'the previous step with output of the request',
      observation: 'an engine step with output of a request',
      recorded: 'at each step',
      unit: 'seconds',
    },
    {
      concept: 'tpot',
      names: ['request_time_per_output_token_seconds'],
      clock: 'first token, to the last, over n − 1',
      observation: 'a request',
      recorded: FINISH,
      unit: 'seconds',
    },
    ...lengths(),
    STEP_TOKENS,
    { concept: 'prompt_tokens', names: ['prompt_tokens'], observation: 'a prompt token', unit: 'tokens' },
    { concept: 'generation_tokens', names: ['generation_tokens'], observation: 'a generated token', unit: 'tokens' },
    {
      concept: 'finishes',
      names: ['request_success'],
      by: 'finished_reason',
      observation: 'a finished request',
      recorded: FINISH,
      unit: 'requests',
    },
    ...STATE,
  ],
};
