/** The timeline on the page: the painter's pixels, the band above them, the axis, the pointer and the wheel. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { formatDuration } from '../../src/base/units.ts';
import { rgba } from '../pixels.ts';
import { color, isDark } from '../theme.ts';
import { linesOf } from './lines.ts';
import { type Painted, type Palette, paint } from './paint.ts';
import type { Rows } from './rows.ts';
import { findStalls } from './stalls.ts';

const HEIGHT = 560;
const BAND = 34;

export function Canvas(props: {
  rows: Rows;
  outcome: Uint32Array;
  from: number;
  to: number;
  stall: number;
  selected: number;
  label: string;
  onKey: (e: KeyboardEvent) => void;
  onPick: (row: number) => void;
  onZoom: (by: number, at?: number) => void;
  onPan: (by: number) => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const bands = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(900);
  const stalls = useMemo(() => findStalls(props.rows, props.stall), [props.rows, props.stall]);
  const image = useRef<{ image: ImageData; pixels: Uint32Array; painted: Painted } | undefined>(undefined);
  const dark = isDark.value;
  const { rows, from, to, selected, outcome } = props;
  const n = rows.scheduled.length;
  const height = Math.min(HEIGHT, Math.max(60, n * 14));
  const lines = useMemo(() => linesOf(rows, height), [rows, height]);

  useEffect(() => {
    const el = box.current;
    if (!el) return;
    const seen = new ResizeObserver(() => setWidth(Math.max(200, Math.floor(el.clientWidth))));
    seen.observe(el);
    return () => seen.disconnect();
  }, []);

  useEffect(() => {
    const g = canvas.current?.getContext('2d');
    if (!g) return;
    if (image.current?.image.width !== width || image.current.image.height !== height) {
      const made = g.createImageData(width, height);
      image.current = {
        image: made,
        pixels: new Uint32Array(made.data.buffer),
        painted: { stalled: new Uint32Array(width), streaming: new Uint32Array(width) },
      };
    }
    const { image: data, pixels, painted } = image.current;
    const began = performance.now();
    paint(pixels, lines, stalls, { width, from, to, outcome, selected }, paletteOf(), painted);
    g.putImageData(data, 0, 0);
    if (canvas.current) canvas.current.dataset.paint = (performance.now() - began).toFixed(2);
    drawBands(bands.current, painted, width);
  }, [lines, stalls, outcome, from, to, selected, width, dark]);

  const timeAt = (x: number): number => from + (x / width) * (to - from);
  const down = (e: PointerEvent): void => {
    const rect = (e.currentTarget as HTMLElement).getBoundingClientRect();
    const x0 = e.clientX;
    let dragged = false;
    let last = x0;
    const follow = (m: PointerEvent): void => {
      if (Math.abs(m.clientX - x0) > 4) dragged = true;
      if (!dragged) return;
      props.onPan(((last - m.clientX) / width) * (to - from));
      last = m.clientX;
    };
    const done = (m: PointerEvent): void => {
      removeEventListener('pointermove', follow);
      removeEventListener('pointerup', done);
      if (!dragged) props.onPick(Math.floor(((m.clientY - rect.top) / height) * n));
    };
    addEventListener('pointermove', follow);
    addEventListener('pointerup', done);
  };
  return (
    <div class="timeline" ref={box} tabIndex={0} role="group" aria-label={props.label} onKeyDown={props.onKey}>
      <canvas
        ref={bands}
        class="bands"
        width={width}
        height={BAND}
        role="img"
        aria-label="Share of streams that stand still, over time"
      />
      <div class="area" style={{ height: `${height}px` }}>
        <canvas
          ref={canvas}
          width={width}
          height={height}
          role="img"
          aria-label={props.label}
          onPointerDown={down}
          onWheel={(e) => {
            if (!e.ctrlKey && !e.metaKey && !e.shiftKey) return;
            e.preventDefault();
            props.onZoom(e.deltaY > 0 ? 1.25 : 0.8, timeAt(e.offsetX));
          }}
        />
        {selected >= 0 && (
          <div class="row-mark" style={{ top: `${((selected + 0.5) / n) * height}px` }} aria-hidden="true" />
        )}
      </div>
      <div class="axis" aria-hidden="true">
        {[0, 0.2, 0.4, 0.6, 0.8].map((s) => (
          <span key={s}>{formatDuration(timeAt(s * width))}</span>
        ))}
        <span>{formatDuration(to)}</span>
      </div>
    </div>
  );
}

function paletteOf(): Palette {
  return {
    background: rgba(color('--surface')),
    unsent: rgba(color('--c-unsent')),
    waiting: rgba(color('--t-waiting')),
    streaming: rgba(color('--t-streaming')),
    tick: rgba(color('--t-tick')),
    stall: rgba(color('--t-stall')),
    selected: rgba(color('--accent')),
  };
}

function drawBands(canvas: HTMLCanvasElement | null, { stalled, streaming }: Painted, width: number): void {
  const g = canvas?.getContext('2d');
  if (!g || !canvas) return;
  g.clearRect(0, 0, width, BAND);
  g.fillStyle = color('--t-stall');
  for (let x = 0; x < width; x++) {
    const share = streaming[x]! > 0 ? Math.min(1, stalled[x]! / streaming[x]!) : 0;
    if (share > 0) g.fillRect(x, BAND - share * BAND, 1, share * BAND);
  }
  g.fillStyle = color('--line');
  g.fillRect(0, BAND - 1, width, 1);
}
