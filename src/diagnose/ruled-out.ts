/** Tempting explanations that the evidence rules out, and by what. */
import type { Fact, FactId, Facts } from './facts.ts';
import type { Scores } from './score.ts';

export interface RuledOut {
  readonly id: string;
  readonly label: string;
  readonly because: readonly Fact[];
}

const RULED = 0.02;

export function ruledOut(facts: Facts, scores: Scores): RuledOut[] {
  const out: RuledOut[] = [];
  const decode = decodeOut(facts);
  if (decode) out.push(decode);
  for (const { cause, probability, support } of scores.causes) {
    if (probability > RULED) continue;
    // Only by facts the cause itself calls deciding, or that speak very strongly: an absence of signs rules nothing out.
    const because = support
      .filter((s) => s.weight < (cause.deciding.includes(s.fact.id) ? -0.7 : -1.8))
      .slice(0, 3)
      .map((s) => s.fact);
    if (because.some((f) => cause.deciding.includes(f.id)) || because.length >= 2)
      out.push({ id: cause.id, label: cause.label, because });
  }
  return out;
}

/** Decode has no direct term in TTFT, but holds slots and KV: out only when TPOT and output length are both flat. */
function decodeOut(facts: Facts): RuledOut | undefined {
  const flat = (id: FactId): Fact | undefined => {
    const fact = facts.get(id);
    return fact && fact.states[3] + fact.states[4] < 0.1 ? fact : undefined;
  };
  const [tpot, output, ttft] = [flat('tpot'), flat('output'), facts.get('ttft')];
  if (!tpot || !output || !ttft || ttft.states[3] + ttft.states[4] < 0.9) return undefined;
  return {
    id: 'decode',
    label: 'slower or longer decoding (it has no term in TTFT, and holds slots and KV only when slower or longer)',
    because: [tpot, output],
  };
}
