/** Lines over x, by uPlot: axes in our units, colours of the theme, a cursor that reads values out. */
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { color, isDark } from '../theme.ts';

export interface Line {
  readonly label: string;
  /** A custom property of the style sheet: `--c-good`. */
  readonly color: string;
  readonly values: ArrayLike<number | null>;
  readonly fill?: boolean;
  readonly dash?: boolean;
  /** Drawn as steps. */
  readonly stepped?: boolean;
  readonly scale?: 'y' | 'y2';
}

export interface PlotProps {
  readonly label: string;
  readonly x: ArrayLike<number>;
  /** What x is, for the legend: `time` unless told. */
  readonly xLabel?: string;
  readonly lines: readonly Line[];
  readonly height?: number;
  readonly formatX: (x: number) => string;
  readonly formatY: (y: number) => string;
  readonly formatY2?: (y: number) => string;
  readonly logX?: boolean;
  /** Vertical marks: limits, the window. */
  readonly marks?: readonly { readonly x: number; readonly color: string; readonly label: string }[];
  readonly yRange?: readonly [number, number];
  /** A mark was dragged to x. */
  readonly onDrag?: (mark: number, x: number) => void;
  readonly onDragEnd?: () => void;
}

export function Plot(props: PlotProps) {
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | undefined>(undefined);
  const latest = useRef(props);
  latest.current = props;
  const dark = isDark.value;
  const shape = `${dark}|${props.lines.map((l) => `${l.label}${l.color}${l.scale}`).join()}|${props.logX}|${props.height}|${props.xLabel}`;

  useEffect(() => {
    const el = box.current;
    if (!el) return;
    const made = new uPlot(optionsOf(latest, el.clientWidth || 400), dataOf(latest.current), el);
    chart.current = made;
    const seen = new ResizeObserver(() => {
      if (el.clientWidth > 0) made.setSize({ width: el.clientWidth, height: latest.current.height ?? 220 });
    });
    seen.observe(el);
    return () => {
      seen.disconnect();
      made.destroy();
      chart.current = undefined;
    };
  }, [shape]);

  useEffect(() => {
    chart.current?.setData(dataOf(props));
  }, [props.x, ...props.lines.map((l) => l.values)]);

  useEffect(() => {
    chart.current?.redraw(false);
  }, [JSON.stringify(props.marks)]);

  return <div class="plot" ref={box} role="img" aria-label={props.label} />;
}

function dataOf({ x, lines }: PlotProps): uPlot.AlignedData {
  const plain = (a: ArrayLike<number | null>): (number | null)[] => Array.from(a);
  return [plain(x) as number[], ...lines.map((l) => plain(l.values))];
}

function optionsOf(latest: { current: PlotProps }, width: number): uPlot.Options {
  const p = latest.current;
  const grid = { stroke: color('--line'), width: 1 };
  const axis = { stroke: color('--muted'), grid, ticks: grid, font: '11px system-ui, sans-serif' };
  const y2 = p.lines.some((l) => l.scale === 'y2');
  return {
    width,
    height: p.height ?? 220,
    pxAlign: false,
    cursor: { drag: { x: false, y: false }, y: false, bind: { mousedown: (u) => dragOf(u, latest) } },
    legend: { live: true },
    scales: {
      x: p.logX
        ? { time: false, distr: 3, range: (_u, min, max) => [min / 1.05, max * 1.05] }
        : { time: false, distr: 1 },
      y: p.yRange ? { range: [p.yRange[0], p.yRange[1]] } : { range: (_u, _min, max) => [0, max > 0 ? max * 1.08 : 1] },
      ...(y2 && {
        y2: { range: (_u: uPlot, _min: number, max: number) => [0, max > 0 ? max * 1.08 : 1] as [number, number] },
      }),
    },
    axes: [
      {
        ...axis,
        // Room for a label like 12:30:45 each.
        space: 70,
        values: (_u, ticks) => ticks.map((t) => (t === null ? '' : latest.current.formatX(t))),
        // Of a decade 1, 2 and 5 are named.
        ...(p.logX && {
          filter: (_u: uPlot, ticks: number[]) =>
            ticks.map((t) =>
              /^[125]/.test(t.toExponential()) && /^.(\.0*)?e/.test(Number(t.toPrecision(6)).toExponential())
                ? t
                : null,
            ),
        }),
      },
      { ...axis, size: 56, values: (_u, ticks) => ticks.map((t) => latest.current.formatY(t)) },
      ...(y2
        ? [
            {
              ...axis,
              scale: 'y2',
              side: 1 as const,
              size: 56,
              grid: { show: false },
              values: (_u: uPlot, ticks: number[]) =>
                ticks.map((t) => (latest.current.formatY2 ?? latest.current.formatY)(t)),
            },
          ]
        : []),
    ],
    series: [
      { label: p.xLabel ?? 'time', value: (_u, v) => (v === null ? '–' : latest.current.formatX(v)) },
      ...p.lines.map((l): uPlot.Series => {
        const stroke = color(l.color);
        return {
          label: l.label,
          stroke,
          width: 1.75,
          points: { show: false },
          ...(l.fill && { fill: `${stroke}33` }),
          ...(l.dash && { dash: [5, 4] }),
          ...(l.stepped && uPlot.paths.stepped && { paths: uPlot.paths.stepped({ align: 1 }) }),
          scale: l.scale ?? 'y',
          value: (_u, v) =>
            v === null || v === undefined
              ? '–'
              : l.scale === 'y2'
                ? (latest.current.formatY2 ?? latest.current.formatY)(v)
                : latest.current.formatY(v),
        };
      }),
    ],
    hooks: { draw: [(u) => drawMarks(u, latest.current)] },
  };
}

function drawMarks(u: uPlot, { marks = [] }: PlotProps): void {
  const { ctx, bbox } = u;
  ctx.save();
  for (const mark of marks) {
    const x = u.valToPos(mark.x, 'x', true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.strokeStyle = color(mark.color);
    ctx.fillStyle = ctx.strokeStyle;
    ctx.lineWidth = 1.5 * devicePixelRatio;
    ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    const wide = ctx.measureText(mark.label).width;
    const left = x + wide + 8 * devicePixelRatio > bbox.left + bbox.width;
    ctx.textAlign = left ? 'right' : 'left';
    ctx.fillText(mark.label, x + (left ? -5 : 5) * devicePixelRatio, bbox.top + 12 * devicePixelRatio);
  }
  ctx.restore();
}

/** Takes hold of the nearest mark within a few pixels. */
function dragOf(u: uPlot, latest: { current: PlotProps }) {
  return (e: MouseEvent): null => {
    const { marks = [], onDrag, onDragEnd } = latest.current;
    if (!onDrag || marks.length === 0) return null;
    const rect = u.over.getBoundingClientRect();
    const at = e.clientX - rect.left;
    const near = marks.map((m, i) => ({ i, d: Math.abs(u.valToPos(m.x, 'x') - at) })).sort((a, b) => a.d - b.d)[0];
    if (!near || near.d > 14) return null;
    e.preventDefault();
    const follow = (m: MouseEvent): void => {
      const x = u.posToVal(Math.max(0, Math.min(rect.width, m.clientX - rect.left)), 'x');
      onDrag(near.i, x);
    };
    const done = (): void => {
      removeEventListener('mousemove', follow);
      removeEventListener('mouseup', done);
      onDragEnd?.();
    };
    addEventListener('mousemove', follow);
    addEventListener('mouseup', done);
    return null;
  };
}
