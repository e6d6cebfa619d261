/** `usage` and its relatives in OpenAI-style answers, and what servers say of their own times. */
import type { ServerTimes, Usage } from '../../core/stream.ts';
import { countOf, isObject, type Json, objectOf, present } from '../json.ts';

export function usageOf(usage: unknown): Usage | undefined {
  if (!isObject(usage)) return undefined;
  const inputDetails = objectOf(usage.prompt_tokens_details) ?? objectOf(usage.input_tokens_details);
  const outputDetails = objectOf(usage.completion_tokens_details) ?? objectOf(usage.output_tokens_details);
  return present<Usage>({
    input: countOf(usage.prompt_tokens) ?? countOf(usage.input_tokens),
    output: countOf(usage.completion_tokens) ?? countOf(usage.output_tokens),
    reasoning: countOf(outputDetails?.reasoning_tokens) ?? countOf(usage.reasoning_tokens),
    cachedInput:
      countOf(inputDetails?.cached_tokens) ?? countOf(usage.prompt_cache_hit_tokens) ?? countOf(usage.cached_tokens),
  });
}

/** Groq's usage carries seconds beside the counts. */
export function timesInUsage(usage: unknown): ServerTimes | undefined {
  if (!isObject(usage) || usage.total_time === undefined) return undefined;
  return present<ServerTimes>({
    queue: seconds(usage.queue_time),
    prefill: seconds(usage.prompt_time),
    decode: seconds(usage.completion_time),
    e2e: seconds(usage.total_time),
  });
}

/** llama.cpp's `timings`, milliseconds. */
export function llamaTimes(timings: unknown): ServerTimes | undefined {
  if (!isObject(timings)) return undefined;
  return present<ServerTimes>({ prefill: countOf(timings.prompt_ms), decode: countOf(timings.predicted_ms) });
}

/** vLLM's per-request `metrics`, milliseconds. */
export function vllmTimes(metrics: unknown): ServerTimes | undefined {
  if (!isObject(metrics)) return undefined;
  return present<ServerTimes>({
    queue: countOf(metrics.queue_time_ms),
    prefill: countOf(metrics.time_to_first_token_ms),
    decode: countOf(metrics.generation_time_ms),
  });
}

export function serverTimes(json: Json, usage: unknown): ServerTimes | undefined {
  if (json.timings === undefined && json.metrics === undefined && !isObject(usage)) return undefined;
  return llamaTimes(json.timings) ?? vllmTimes(json.metrics) ?? timesInUsage(usage);
}

function seconds(x: unknown): number | undefined {
  const s = countOf(x);
  return s === undefined ? undefined : s * 1000;
}
