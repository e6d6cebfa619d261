/** Figures that follow from several concepts of one engine's population, each with how. */
import type { Concept } from '../../core/evidence.ts';
import type { Derived, Merged, MergedCount } from './document.ts';

type Concepts = Partial<Record<Concept, Merged & MergedCount>>;

export function derivedOf(c: Concepts): Record<string, Derived> {
  const derived: Record<string, Derived> = {};
  const set = (name: string, value: number, unit: string, how: string): void => {
    if (Number.isFinite(value)) derived[name] = { value, unit, how };
  };
  // Two concepts are of one population only when the same tellers tell both.
  const same = (...concepts: Concept[]): boolean =>
    concepts.every(
      (x) =>
        c[x]?.count !== undefined &&
        c[x]?.meaning?.engine === c[concepts[0]!]?.meaning?.engine &&
        c[x]?.replicas === c[concepts[0]!]?.replicas,
    );
  const [ttft, queue, prefill] = [c.ttft, c.queue, c.prefill];
  if (same('ttft', 'queue', 'prefill') && c.ttft?.meaning?.engine === 'vLLM' && (ttft?.count ?? 0) > 0) {
    if (ttft?.sum !== undefined && queue?.sum !== undefined && prefill?.sum !== undefined) {
      const rest = ttft.sum - queue.sum - prefill.sum;
      set(
        'frontend_seconds',
        rest / ttft.count!,
        'seconds a request',
        `(ttft sum − queue sum − prefill sum) / ttft count = ${tidy(rest)} s / ${ttft.count}; ttft is recorded at the first token (${ttft.count}), queue and prefill at the finish (${queue.count})`,
      );
    }
  }
  if (same('generation_tokens', 'itl', 'ttft') && c.ttft?.meaning?.engine === 'vLLM' && (c.itl?.count ?? 0) > 0) {
    const later = c.generation_tokens!.count! - c.ttft!.count!;
    set(
      'tokens_per_step',
      later / c.itl!.count!,
      'tokens a step of a request',
      '(generation tokens − first tokens) / ITL observations: 1 is one token a step, more is speculative decoding',
    );
  }
  const [hits, queries] = [c.prefix_cache_hits, c.prefix_cache_queries];
  if (
    same('prefix_cache_hits', 'prefix_cache_queries') &&
    hits?.meaning?.unit === queries?.meaning?.unit &&
    queries!.count! > 0
  ) {
    set('prefix_cache_hit_rate', hits!.count! / queries!.count!, 'share', `hits / queries, in ${hits?.meaning?.unit}`);
  }
  if (same('accepted_tokens', 'draft_tokens') && c.draft_tokens!.count! > 0) {
    set('draft_acceptance', c.accepted_tokens!.count! / c.draft_tokens!.count!, 'share', 'accepted / drafted tokens');
  }
  if (same('prompt_tokens', 'prefill_seconds') && c.prefill_seconds!.count! > 0) {
    set(
      'prefill_tokens_per_second',
      c.prompt_tokens!.count! / c.prefill_seconds!.count!,
      'tokens/s',
      'prompt tokens / seconds spent on prompts: a mean, of one slot',
    );
  }
  if (same('generation_tokens', 'decode_seconds') && c.decode_seconds!.count! > 0) {
    set(
      'decode_tokens_per_second',
      c.generation_tokens!.count! / c.decode_seconds!.count!,
      'tokens/s',
      'generated tokens / seconds spent generating: a mean, of one slot',
    );
  }
  if (
    same('inference', 'prefill', 'decode') &&
    c.inference?.sum !== undefined &&
    c.prefill?.sum !== undefined &&
    c.decode?.sum !== undefined
  ) {
    set(
      'inference_less_phases_seconds',
      c.inference.sum - c.prefill.sum - c.decode.sum,
      'seconds',
      'inference sum − prefill sum − decode sum: 0 where the phases are whole',
    );
  }
  return derived;
}

const tidy = (x: number): number => Number(x.toPrecision(6));
