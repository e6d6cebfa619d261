/** Stacked bars over bins, as SVG: few enough to be drawn by the browser, sharp in print. */
import { useRef, useState } from 'preact/hooks';
import { whole } from '../words.ts';
import { useWidth } from './width.ts';

const H = 220;
const PAD = { left: 44, right: 6, top: 8, bottom: 22 };

export interface Part {
  readonly name: string;
  readonly color: string;
  readonly values: ArrayLike<number>;
}

export function StackedBars(props: {
  label: string;
  bins: number;
  at: (bin: number) => string;
  parts: readonly Part[];
  /** In bins. */
  marks?: readonly { readonly at: number; readonly label: string }[];
}) {
  const { bins, parts } = props;
  const box = useRef<HTMLDivElement>(null);
  const W = useWidth(box, 600);
  const [over, setOver] = useState(-1);
  const totals = Array.from({ length: bins }, (_, b) => parts.reduce((sum, p) => sum + p.values[b]!, 0));
  const top = Math.max(1, ...totals);
  const w = (W - PAD.left - PAD.right) / bins;
  const h = H - PAD.top - PAD.bottom;
  const y = (n: number): number => PAD.top + h - (n / top) * h;
  const said =
    over < 0
      ? undefined
      : `${props.at(over)}: ${
          parts
            .filter((p) => p.values[over]! > 0)
            .map((p) => `${whole(p.values[over]!)} ${p.name}`)
            .join(', ') || 'none'
        }`;
  return (
    <div ref={box}>
      <svg
        class="bars"
        viewBox={`0 0 ${W} ${H}`}
        role="img"
        aria-label={props.label}
        onPointerMove={(e) => {
          const r = e.currentTarget.getBoundingClientRect();
          const x = ((e.clientX - r.left) / r.width) * W - PAD.left;
          setOver(x >= 0 && x < bins * w ? Math.floor(x / w) : -1);
        }}
        onPointerLeave={() => setOver(-1)}
      >
        {[0, 0.5, 1].map((s) => (
          <g key={s}>
            <line x1={PAD.left} x2={W - PAD.right} y1={y(s * top)} y2={y(s * top)} class="grid" />
            <text x={PAD.left - 6} y={y(s * top) + 4} class="tick" text-anchor="end">
              {Number((s * top).toPrecision(3))}
            </text>
          </g>
        ))}
        {totals.map((_, b) => {
          let base = 0;
          return parts.map((p) => {
            const n = p.values[b]!;
            if (n === 0) return null;
            const from = base;
            base += n;
            return (
              <rect
                key={`${b}${p.name}`}
                x={PAD.left + b * w}
                width={Math.max(0.5, w - (w > 4 ? 1 : 0))}
                y={y(base)}
                height={Math.max(0, y(from) - y(base))}
                style={{ fill: p.color }}
                opacity={over < 0 || over === b ? 1 : 0.55}
              />
            );
          });
        })}
        {props.marks?.map((m) => (
          <line
            key={m.at}
            x1={PAD.left + m.at * w}
            x2={PAD.left + m.at * w}
            y1={PAD.top}
            y2={PAD.top + h}
            class="mark"
          />
        ))}
        {[0, 0.25, 0.5, 0.75].map((s) => (
          <text key={s} x={PAD.left + s * bins * w} y={H - 6} class="tick">
            {props.at(Math.floor(s * bins))}
          </text>
        ))}
      </svg>
      <p class="legend">
        {said ??
          parts.map((p) => (
            <span key={p.name}>
              <i style={{ background: p.color }} />
              {p.name}{' '}
            </span>
          ))}
      </p>
    </div>
  );
}
