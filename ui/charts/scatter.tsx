/**
 * TTFT against TPOT, a dot an operation, on log axes with the contract's box: the joint misses that two separate
 * percentiles hide. Dots are added up in a pixel buffer, so that a million are drawn like a hundred.
 */
import { useEffect, useRef, useState } from 'preact/hooks';
import { formatDuration } from '../../src/base/units.ts';
import type { Limits } from '../../src/core/contract.ts';
import type { Quadrants } from '../series.ts';
import { type Judgement, move, settle } from '../state.ts';
import { isDark } from '../theme.ts';
import { whole } from '../words.ts';
import { type Dots, drawDots, rangeOf } from './dots.ts';

const HEIGHT = 360;
const PAD = { left: 58, right: 12, top: 10, bottom: 34 };
/** Its lines and counts are of the contract in force, its dots of the judgement given, which may be a frame behind. */
export function Scatter({ of, limits, q }: { of: Judgement; limits: Limits; q: Quadrants }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const dots = useRef<Dots | undefined>(undefined);
  const [width, setWidth] = useState(600);
  const dark = isDark.value;
  const { ttft, tpot } = limits;
  const range = rangeOf(of.packed, limits);
  const w = width - PAD.left - PAD.right;
  const h = HEIGHT - PAD.top - PAD.bottom;
  const px = (x: number): number => (Math.log(x / range.x[0]) / Math.log(range.x[1] / range.x[0])) * w;
  const py = (y: number): number => h - (Math.log(y / range.y[0]) / Math.log(range.y[1] / range.y[0])) * h;

  useEffect(() => {
    const el = box.current;
    if (!el) return;
    const seen = new ResizeObserver(() => setWidth(Math.max(280, el.clientWidth)));
    seen.observe(el);
    return () => seen.disconnect();
  }, []);

  useEffect(() => {
    const c = canvas.current;
    const g = c?.getContext('2d');
    if (!c || !g || w < 10) return;
    const ratio = Math.min(2, devicePixelRatio || 1);
    // To set a size clears the canvas, even to the same.
    if (c.width !== Math.round(w * ratio)) c.width = Math.round(w * ratio);
    if (c.height !== Math.round(h * ratio)) c.height = Math.round(h * ratio);
    dots.current = drawDots(g, of, range, c.width, c.height, Math.max(1, Math.round(1.6 * ratio)), dots.current);
  }, [of, width, dark]);

  const drag = (which: 'ttft' | 'tpot') => (e: PointerEvent) => {
    const el = box.current;
    if (!el) return;
    e.preventDefault();
    const rect = el.getBoundingClientRect();
    let frame = 0;
    const follow = (m: PointerEvent): void => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => {
        if (which === 'ttft') {
          const at = Math.max(0, Math.min(1, (m.clientX - rect.left - PAD.left) / w));
          move({ ttft: tidy(range.x[0] * (range.x[1] / range.x[0]) ** at) });
        } else {
          const at = 1 - Math.max(0, Math.min(1, (m.clientY - rect.top - PAD.top) / h));
          move({ tpot: tidy(range.y[0] * (range.y[1] / range.y[0]) ** at) });
        }
      });
    };
    const done = (): void => {
      removeEventListener('pointermove', follow);
      removeEventListener('pointerup', done);
      cancelAnimationFrame(frame);
      settle();
    };
    addEventListener('pointermove', follow);
    addEventListener('pointerup', done);
  };
  const key = (which: 'ttft' | 'tpot', now: number) => (e: KeyboardEvent) => {
    const up = which === 'ttft' ? 'ArrowRight' : 'ArrowUp';
    const down = which === 'ttft' ? 'ArrowLeft' : 'ArrowDown';
    if (e.key !== up && e.key !== down) return;
    e.preventDefault();
    const by = (e.shiftKey ? 1.1 : 1.02) ** (e.key === up ? 1 : -1);
    move({ [which]: tidy(now * by) });
    settle();
  };
  const inX = ttft !== undefined && ttft >= range.x[0] && ttft <= range.x[1];
  const inY = tpot !== undefined && tpot >= range.y[0] && tpot <= range.y[1];
  return (
    <div class="scatter" ref={box} style={{ height: `${HEIGHT}px` }}>
      <canvas
        ref={canvas}
        role="img"
        aria-label={`TTFT against TPOT: ${whole(q.both)} operations within both limits, ${whole(q.ttftOnly + q.tpotOnly + q.neither)} outside one or both`}
        style={{ left: `${PAD.left}px`, top: `${PAD.top}px`, width: `${w}px`, height: `${h}px` }}
      />
      <svg width={width} height={HEIGHT} aria-hidden="true">
        <rect x={PAD.left} y={PAD.top} width={w} height={h} class="frame" />
        {ticksOf(range.x).map((t) => (
          <g key={t}>
            <line x1={PAD.left + px(t)} x2={PAD.left + px(t)} y1={PAD.top} y2={PAD.top + h} class="grid" />
            <text x={PAD.left + px(t)} y={HEIGHT - 18} class="tick" text-anchor="middle">
              {formatDuration(t)}
            </text>
          </g>
        ))}
        {ticksOf(range.y).map((t) => (
          <g key={t}>
            <line x1={PAD.left} x2={PAD.left + w} y1={PAD.top + py(t)} y2={PAD.top + py(t)} class="grid" />
            <text x={PAD.left - 6} y={PAD.top + py(t) + 4} class="tick" text-anchor="end">
              {formatDuration(t)}
            </text>
          </g>
        ))}
        <text x={PAD.left + w / 2} y={HEIGHT - 3} class="tick" text-anchor="middle">
          TTFT
        </text>
        <text
          x={12}
          y={PAD.top + h / 2}
          class="tick"
          text-anchor="middle"
          transform={`rotate(-90 12 ${PAD.top + h / 2})`}
        >
          TPOT
        </text>
        {(inX || inY) && (
          <path
            class="box"
            d={`M${PAD.left} ${PAD.top + (inY ? py(tpot) : 0)}H${PAD.left + (inX ? px(ttft) : w)}V${PAD.top + h}`}
          />
        )}
      </svg>
      {ttft !== undefined && tpot !== undefined && (
        <>
          <span
            class="quad"
            style={{ left: `${PAD.left + 8}px`, bottom: `${PAD.bottom + 6}px`, color: 'var(--c-good-text)' }}
          >
            {whole(q.both)} within both
          </span>
          <span
            class="quad"
            style={{ right: `${PAD.right + 8}px`, bottom: `${PAD.bottom + 6}px`, color: 'var(--c-miss-ttft)' }}
          >
            {whole(q.tpotOnly)} miss TTFT alone
          </span>
          <span
            class="quad"
            style={{ left: `${PAD.left + 8}px`, top: `${PAD.top + 6}px`, color: 'var(--c-miss-tpot)' }}
          >
            {whole(q.ttftOnly)} miss TPOT alone
          </span>
          <span
            class="quad"
            style={{ right: `${PAD.right + 8}px`, top: `${PAD.top + 6}px`, color: 'var(--c-miss-both)' }}
          >
            {whole(q.neither)} miss both
          </span>
        </>
      )}
      {inX && (
        <div
          class="grip x"
          role="slider"
          tabIndex={0}
          aria-label="TTFT limit"
          aria-valuemin={range.x[0]}
          aria-valuemax={range.x[1]}
          aria-valuenow={ttft}
          aria-valuetext={formatDuration(ttft)}
          style={{ left: `${PAD.left + px(ttft)}px`, top: `${PAD.top}px`, height: `${h}px` }}
          onPointerDown={drag('ttft')}
          onKeyDown={key('ttft', ttft)}
        />
      )}
      {inY && (
        <div
          class="grip y"
          role="slider"
          tabIndex={0}
          aria-orientation="vertical"
          aria-label="TPOT limit"
          aria-valuemin={range.y[0]}
          aria-valuemax={range.y[1]}
          aria-valuenow={tpot}
          aria-valuetext={formatDuration(tpot)}
          style={{ top: `${PAD.top + py(tpot)}px`, left: `${PAD.left}px`, width: `${w}px` }}
          onPointerDown={drag('tpot')}
          onKeyDown={key('tpot', tpot)}
        />
      )}
    </div>
  );
}

/** A limit of three figures. */
export const tidy = (x: number): number => Number(x.toPrecision(3));

/** 1, 2, 5 times powers of ten. */
function ticksOf([low, high]: readonly [number, number]): number[] {
  const found: number[] = [];
  const decades = Math.log10(high / low);
  const steps = decades > 4 ? [1] : decades > 2 ? [1, 3] : decades > 0.7 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9];
  for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++) {
    for (const m of steps) {
      const t = Number(`${m}e${e}`);
      if (t >= low && t <= high) found.push(t);
    }
  }
  return found.length > 8 ? found.filter((_, i) => i % 2 === 0) : found;
}
