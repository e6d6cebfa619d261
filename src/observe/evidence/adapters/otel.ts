import type { Adapter, Mapped } from '../adapter.ts';

const FINISH = 'when the request finishes';
const OK = 'failed requests: only successful responses are observed';
const server = (m: Pick<Mapped, 'concept' | 'names' | 'observation'> & Partial<Mapped>): Mapped => ({
  recorded: FINISH,
  unit: 'seconds',
  ...m,
});
const dotted = (...names: string[]): string[] => names.flatMap((n) => [n, `${n}_seconds`]);

/** OpenTelemetry's GenAI conventions, dots or underscores, status Development: Envoy AI Gateway and instrumentations. */
export const OTEL: Adapter = {
  engine: 'OTel GenAI',
  role: 'router',
  local: (name) => (/^gen_ai[._]/.test(name) ? name.slice(7).replaceAll('.', '_') : undefined),
  metrics: [
    server({
      concept: 'ttft',
      names: dotted('server_time_to_first_token'),
      clock: 'received by the server: queue + prefill',
      observation: 'a successful request',
      recorded: 'at the first token',
      misses: OK,
      note: 'gen_ai.server.time_to_first_token covers successful responses only, and its last standard bound is 10 s',
    }),
    server({
      concept: 'tpot',
      names: dotted('server_time_per_output_token'),
      clock: 'first token, to the last, over n − 1',
      observation: 'a successful request',
      misses: OK,
    }),
    server({
      concept: 'e2e',
      names: dotted('server_request_duration'),
      clock: 'received by the server',
      observation: 'a request',
    }),
    server({
      concept: 'e2e',
      names: dotted('client_operation_duration'),
      clock: 'called by the client of the model',
      observation: "a request, on its client's clock",
    }),
    server({
      concept: 'ttft',
      names: dotted('client_operation_time_to_first_chunk'),
      clock: 'called by the client of the model',
      observation: "a request, on its client's clock, to its first chunk: not a token",
    }),
    server({
      concept: 'itl',
      names: dotted('client_operation_time_per_output_chunk'),
      observation: 'a chunk, not a token',
      recorded: 'at each chunk',
    }),
    {
      concept: 'prompt_length',
      names: ['client_token_usage', 'client_token_usage_token'],
      where: { gen_ai_token_type: ['input'], 'gen_ai.token.type': ['input'] },
      observation: 'a request',
      recorded: FINISH,
      unit: 'tokens',
    },
    {
      concept: 'output_length',
      names: ['client_token_usage', 'client_token_usage_token'],
      where: { gen_ai_token_type: ['output', 'completion'], 'gen_ai.token.type': ['output', 'completion'] },
      observation: 'a request',
      recorded: FINISH,
      unit: 'tokens',
    },
  ],
};
