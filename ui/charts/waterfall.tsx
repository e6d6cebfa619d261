/** Parts of a change, one after the other, and their sum. */
import { useRef } from 'preact/hooks';
import { ms } from '../words.ts';
import { useWidth } from './width.ts';

const ROW = 30;

export function Waterfall({
  parts,
  total,
}: {
  parts: readonly { readonly name: string; readonly ms: number }[];
  total: number;
}) {
  const box = useRef<HTMLDivElement>(null);
  const W = useWidth(box, 900);
  const LABEL = Math.min(190, 0.36 * W);
  let at = 0;
  const bars = parts.map((p) => {
    const from = at;
    at += p.ms;
    return { ...p, from, to: at };
  });
  bars.push({ name: 'change', ms: total, from: 0, to: total });
  const low = Math.min(0, ...bars.map((b) => Math.min(b.from, b.to)));
  const high = Math.max(0, ...bars.map((b) => Math.max(b.from, b.to)));
  const x = (v: number): number => LABEL + ((v - low) / (high - low || 1)) * (W - LABEL - 90);
  const H = bars.length * ROW + 6;
  return (
    <div ref={box}>
      <svg class="waterfall" viewBox={`0 0 ${W} ${H}`} role="img" aria-label={`Change of ${ms(total)} by part`}>
        <line x1={x(0)} x2={x(0)} y1={0} y2={H} class="grid" />
        {bars.map((b, i) => (
          <g key={b.name}>
            <text x={LABEL - 10} y={i * ROW + 20} class="tick" text-anchor="end">
              {b.name}
            </text>
            <rect
              x={Math.min(x(b.from), x(b.to))}
              width={Math.max(1, Math.abs(x(b.to) - x(b.from)))}
              y={i * ROW + 6}
              height={ROW - 10}
              class={i === bars.length - 1 ? 'sum' : b.ms >= 0 ? 'up' : 'down'}
            />
            <text x={Math.max(x(b.from), x(b.to)) + 6} y={i * ROW + 20} class="tick">
              {b.ms >= 0 ? '+' : '−'}
              {ms(Math.abs(b.ms))}
            </text>
          </g>
        ))}
      </svg>
    </div>
  );
}
