/** Attainment over offered rate, with intervals; goodput and throughput under it on the same rates. SVG, a log axis. */
import { useRef } from 'preact/hooks';
import { figure, percent } from '../words.ts';
import { useWidth } from './width.ts';

export interface CurveSeries {
  readonly name: string;
  readonly color: string;
  readonly dashed?: boolean;
  readonly points: readonly CurveDot[];
  readonly capacity?: { readonly low: number | null; readonly high: number | null };
}

export interface CurveDot {
  readonly rate: number;
  readonly attainment: number;
  readonly low?: number;
  readonly high?: number;
  readonly goodput?: number;
  /** Tokens/s; null where unknown. */
  readonly throughput?: number | null;
  readonly verdict?: string;
  /** Rests on several runs. */
  readonly confirmed?: boolean;
}

const PAD = { left: 52, right: 58, top: 14, bottom: 26 };

interface Axis {
  readonly x: (rate: number) => number;
  readonly ticks: readonly number[];
}

function axisOf(series: readonly CurveSeries[], W: number): Axis {
  const rates = series.flatMap((s) => s.points.map((p) => p.rate)).filter((r) => r > 0);
  let low = Math.min(...rates);
  let high = Math.max(...rates);
  if (!(high > low)) {
    low = (low || 1) / 2;
    high = 4 * low;
  }
  low /= 1.08;
  high *= 1.08;
  const w = W - PAD.left - PAD.right;
  const x = (rate: number): number => PAD.left + (Math.log(rate / low) / Math.log(high / low)) * w;
  const ticks: number[] = [];
  for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++) {
    for (const m of [1, 2, 3, 5, 7]) {
      const t = Number(`${m}e${e}`);
      if (t < low || t > high) continue;
      const before = ticks.at(-1);
      if (before === undefined || x(t) - x(before) > 44) ticks.push(t);
    }
  }
  return { x, ticks };
}

export function AttainmentCurve({ series, target }: { series: readonly CurveSeries[]; target: number }) {
  const box = useRef<HTMLDivElement>(null);
  const W = useWidth(box, 900);
  const H = 290;
  const { x, ticks } = axisOf(series, W);
  const lows = series.flatMap((s) => s.points.map((p) => p.low ?? p.attainment));
  const floor = Math.max(0, Math.min(target - 0.15, Math.floor(Math.min(...lows, 1) * 10) / 10));
  const y = (share: number): number => PAD.top + ((1 - share) / (1 - floor)) * (H - PAD.top - PAD.bottom);
  const shares = [1, 0.75, 0.5, 0.25, 0].map((s) => floor + s * (1 - floor));
  return (
    <div ref={box}>
      {' '}
      <svg
        class="curve"
        viewBox={`0 0 ${W} ${H}`}
        role="img"
        aria-label={`Attainment over offered rate, target ${percent(target)}`}
      >
        {shares.map((s) => (
          <g key={s}>
            <line x1={PAD.left} x2={W - PAD.right} y1={y(s)} y2={y(s)} class="grid" />
            <text x={PAD.left - 6} y={y(s) + 4} class="tick" text-anchor="end">
              {percent(s, 3)}
            </text>
          </g>
        ))}
        <XTicks x={x} ticks={ticks} height={H} />
        {series.map((s) => {
          const { low, high } = s.capacity ?? { low: null, high: null };
          if (low === null || high === null) return null;
          return (
            <rect
              key={s.name}
              x={x(low)}
              width={Math.max(2, x(high) - x(low))}
              y={PAD.top}
              height={H - PAD.top - PAD.bottom}
              style={{ fill: `var(${s.color})` }}
              opacity={0.16}
            >
              <title>{`${s.name}: capacity ${figure(low)} to ${figure(high)}/s`}</title>
            </rect>
          );
        })}
        <line x1={PAD.left} x2={W - PAD.right} y1={y(target)} y2={y(target)} class="mark" />
        <text x={W - PAD.right + 4} y={y(target) + 4} class="tick">
          target
        </text>
        {series.map((s) => (
          <g key={s.name} style={{ stroke: `var(${s.color})`, fill: `var(${s.color})` }}>
            <path
              d={pathOf(
                s.points,
                (p) => x(p.rate),
                (p) => y(p.attainment),
              )}
              fill="none"
              stroke-width={1.5}
              stroke-dasharray={s.dashed ? '6 4' : undefined}
              opacity={0.7}
            />
            {s.points.map((p) => (
              <g key={`${p.rate}${p.attainment}`}>
                {p.low !== undefined && p.high !== undefined && (
                  <path
                    d={`M${x(p.rate)} ${y(p.high)}V${y(p.low)}M${x(p.rate) - 4} ${y(p.high)}h8M${x(p.rate) - 4} ${y(p.low)}h8`}
                    stroke-width={p.confirmed ? 2 : 1}
                    stroke-dasharray={p.confirmed ? undefined : '2 2'}
                    fill="none"
                  />
                )}
                <Mark x={x(p.rate)} y={y(p.attainment)} of={p} />
              </g>
            ))}
          </g>
        ))}
      </svg>
    </div>
  );
}

/** A disc passes, a cross fails, a diamond is undecided; hollow where it rests on one run. */
function Mark({ x, y, of }: { x: number; y: number; of: CurveDot }) {
  const r = of.confirmed ? 5 : 4;
  const title = `${figure(of.rate)}/s: ${percent(of.attainment, 3)}${of.verdict ? `, ${of.verdict}` : ''}`;
  if (of.verdict === 'fail') {
    return (
      <path
        d={`M${x - r} ${y - r}L${x + r} ${y + r}M${x - r} ${y + r}L${x + r} ${y - r}`}
        stroke-width={of.confirmed ? 2.5 : 1.5}
      >
        <title>{title}</title>
      </path>
    );
  }
  if (of.verdict === 'undecided' || of.verdict === 'void') {
    return (
      <path d={`M${x} ${y - r}L${x + r} ${y}L${x} ${y + r}L${x - r} ${y}Z`} fill="none" stroke-width={1.5}>
        <title>{title}</title>
      </path>
    );
  }
  return (
    <circle
      cx={x}
      cy={y}
      r={r}
      style={of.confirmed || of.verdict === undefined ? undefined : { fill: 'var(--surface)' }}
      stroke-width={1.5}
    >
      <title>{title}</title>
    </circle>
  );
}

export function GoodputCurve({ series }: { series: readonly CurveSeries[] }) {
  const box = useRef<HTMLDivElement>(null);
  const W = useWidth(box, 900);
  const H = 240;
  const { x, ticks } = axisOf(series, W);
  const top = Math.max(1e-9, ...series.flatMap((s) => s.points.map((p) => p.goodput ?? 0))) * 1.1;
  const topTokens = Math.max(1e-9, ...series.flatMap((s) => s.points.map((p) => p.throughput ?? 0))) * 1.1;
  const h = H - PAD.top - PAD.bottom;
  const y = (v: number): number => PAD.top + h - (v / top) * h;
  const y2 = (v: number): number => PAD.top + h - (v / topTokens) * h;
  return (
    <div ref={box}>
      {' '}
      <svg class="curve" viewBox={`0 0 ${W} ${H}`} role="img" aria-label="Goodput and throughput over offered rate">
        {[0, 0.25, 0.5, 0.75, 1].map((s) => (
          <g key={s}>
            <line x1={PAD.left} x2={W - PAD.right} y1={y((s * top) / 1.1)} y2={y((s * top) / 1.1)} class="grid" />
            <text x={PAD.left - 6} y={y((s * top) / 1.1) + 4} class="tick" text-anchor="end">
              {figure((s * top) / 1.1, 3)}
            </text>
            {topTokens > 1e-8 && (
              <text x={W - PAD.right + 6} y={y2((s * topTokens) / 1.1) + 4} class="tick">
                {figure((s * topTokens) / 1.1, 3)}
              </text>
            )}
          </g>
        ))}
        <XTicks x={x} ticks={ticks} height={H} />
        <text x={PAD.left + 4} y={PAD.top + 8} class="tick">
          {W < 520 ? 'good/s' : 'goodput, requests/s'}
        </text>
        <text x={W - PAD.right - 4} y={PAD.top + 8} class="tick" text-anchor="end">
          {W < 520 ? 'tokens/s' : 'throughput, tokens/s (thin)'}
        </text>
        {series.map((s) => {
          const best = s.points.reduce<CurveDot | undefined>(
            (b, p) => ((p.goodput ?? 0) > (b?.goodput ?? 0) ? p : b),
            undefined,
          );
          return (
            <g key={s.name} style={{ stroke: `var(${s.color})`, fill: `var(${s.color})` }}>
              <path
                d={pathOf(
                  s.points.filter((p) => p.throughput != null),
                  (p) => x(p.rate),
                  (p) => y2(p.throughput ?? 0),
                )}
                fill="none"
                stroke-width={1}
                opacity={0.55}
                stroke-dasharray="3 3"
              />
              <path
                d={pathOf(
                  s.points.filter((p) => p.goodput !== undefined),
                  (p) => x(p.rate),
                  (p) => y(p.goodput ?? 0),
                )}
                fill="none"
                stroke-width={2.25}
                stroke-dasharray={s.dashed ? '6 4' : undefined}
              />
              {s.points.map((p) =>
                p.goodput === undefined ? null : (
                  <circle key={`${p.rate}${p.goodput}`} cx={x(p.rate)} cy={y(p.goodput)} r={p === best ? 5 : 2.5} />
                ),
              )}
              {best?.goodput !== undefined && (
                <text x={x(best.rate)} y={y(best.goodput) - 9} class="tick" text-anchor="middle">
                  {`peak ${figure(best.goodput, 3)}/s`}
                </text>
              )}
            </g>
          );
        })}
      </svg>
    </div>
  );
}

function XTicks({ x, ticks, height }: Axis & { height: number }) {
  return (
    <>
      {ticks.map((t) => (
        <g key={t}>
          <line x1={x(t)} x2={x(t)} y1={PAD.top} y2={height - PAD.bottom} class="grid" />
          <text x={x(t)} y={height - 8} class="tick" text-anchor="middle">
            {figure(t, 3)}/s
          </text>
        </g>
      ))}
    </>
  );
}

function pathOf(points: readonly CurveDot[], x: (p: CurveDot) => number, y: (p: CurveDot) => number): string {
  return [...points]
    .sort((a, b) => a.rate - b.rate)
    .map((p, i) => `${i === 0 ? 'M' : 'L'}${x(p).toFixed(1)} ${y(p).toFixed(1)}`)
    .join('');
}
