/** A span of an engine as evidence of one request: vLLM's `llm_request`, and whoever uses the same attributes. */
import type { DurationConcept, RequestEvidence } from '../../core/evidence.ts';
import type { Span } from './otlp.ts';

/** Seconds on the engine's clock. */
const LATENCIES: Readonly<Record<string, DurationConcept>> = {
  'gen_ai.latency.time_in_queue': 'queue',
  'gen_ai.latency.time_in_model_prefill': 'prefill',
  'gen_ai.latency.time_in_model_decode': 'decode',
  'gen_ai.latency.time_in_model_inference': 'inference',
  'gen_ai.latency.time_to_first_token': 'ttft',
  'gen_ai.latency.e2e': 'e2e',
};

const PROMPT = ['gen_ai.usage.prompt_tokens', 'gen_ai.usage.input_tokens'];
const OUTPUT = ['gen_ai.usage.completion_tokens', 'gen_ai.usage.output_tokens'];
const CACHED = ['gen_ai.usage.cache_read.input_tokens', 'gen_ai.usage.cached_tokens'];

/** Beside what core names: the trace, by which a proxy's own records can be joined. */
export interface SpanEvidence extends RequestEvidence {
  readonly trace?: string;
  readonly service?: string;
  /** Unix ms the span ended. */
  readonly ended?: number;
}

/** Undefined for spans that tell nothing of a request: they are counted, not kept. */
export function requestOf(span: Span): SpanEvidence | undefined {
  const durations: Partial<Record<DurationConcept, number>> = {};
  for (const [name, concept] of Object.entries(LATENCIES)) {
    const value = span.attributes.get(name);
    if (typeof value === 'number' && Number.isFinite(value) && value >= 0) durations[concept] = value;
  }
  const id = span.attributes.get('gen_ai.request.id') ?? span.attributes.get('gen_ai.response.id');
  const request = typeof id === 'string' ? id : '';
  if (Object.keys(durations).length === 0 || (request === '' && span.trace === '')) return undefined;
  const count = (names: readonly string[]): number | undefined => {
    for (const name of names) {
      const value = span.attributes.get(name);
      if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
    }
    return undefined;
  };
  const [promptTokens, outputTokens, cachedTokens] = [count(PROMPT), count(OUTPUT), count(CACHED)];
  return {
    request,
    durations,
    ...(promptTokens !== undefined && { promptTokens }),
    ...(cachedTokens !== undefined && { cachedTokens }),
    ...(outputTokens !== undefined && { outputTokens }),
    ...(span.trace !== '' && { trace: span.trace }),
    ...(span.service !== undefined && { service: span.service }),
    ...(span.end > 0n && { ended: Number(span.end / 1_000_000n) }),
  };
}
