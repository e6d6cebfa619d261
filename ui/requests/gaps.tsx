/** The gaps of one request: a bar each, from receipt to receipt, as high as it is long. */
import { useRef } from 'preact/hooks';
import { formatDuration } from '../../src/base/units.ts';
import { OUTPUT_KINDS } from '../../src/core/stream.ts';
import { DataTable } from '../charts/data-table.tsx';
import { useWidth } from '../charts/width.ts';
import { ms, whole } from '../words.ts';

const H = 120;
/** Room for the height's figures, left. */
const PAD = 54;

interface Receipts {
  readonly at: readonly number[];
  /** Of each, where it is known. */
  readonly kind?: readonly number[];
  readonly tokens?: readonly number[];
}

/**
 * @param of chunks there were: more than are here where a page was thinned, and then no bar is drawn over left-out ones.
 * @param start when the request was due, @param limit of a gap; ms.
 */
export function Gaps(props: { receipts: Receipts; of: number; start: number; limit: number | undefined }) {
  const { receipts, of, start, limit } = props;
  const box = useRef<HTMLDivElement>(null);
  const W = useWidth(box, 900);
  const { at, kind, tokens } = receipts;
  if (at.length < 2) return <p class="note">{at.length === 0 ? 'No output came.' : 'One chunk: there is no gap.'}</p>;
  const isThinned = at.length < of;
  const from = at[0]!;
  const span = Math.max(0.001, at.at(-1)! - from);
  const gaps = at.slice(1).map((t, k) => t - at[k]!);
  const top = gaps.reduce((a, b) => Math.max(a, b), 0.001);
  const largest = gaps.indexOf(top);
  const x = (t: number): number => PAD + ((t - from) / span) * (W - PAD);
  const y = (g: number): number => H - (g / top) * (H - 12);
  return (
    <div ref={box}>
      <p class="note">
        {isThinned
          ? `${whole(at.length)} of its ${whole(of)} chunks are in this page: the first, the last, both ends of the largest gaps, and some between. Bars span what was left out, so short gaps look longer than they were.`
          : `${whole(gaps.length)} gaps from the first chunk to the last; the largest, ${ms(top)}, begins ${ms(at[largest]! - start)} after the request was due.`}
      </p>
      <svg
        class="gaps"
        viewBox={`0 0 ${W} ${H + 18}`}
        role="img"
        aria-label={`Gaps between chunks, the largest ${formatDuration(top)}`}
      >
        <text x={PAD - 6} y={y(top) + 8} class="tick" text-anchor="end">
          {formatDuration(top)}
        </text>
        <line x1={PAD} x2={W} y1={H} y2={H} class="grid" />
        {gaps.map((g, k) => (
          <rect
            key={k}
            x={x(at[k]!)}
            width={Math.max(0.6, (g / span) * (W - PAD) - 0.5)}
            y={Math.min(H - 1, y(g))}
            height={Math.max(1, H - y(g))}
            class={
              limit !== undefined && g > limit
                ? 'over'
                : kind && OUTPUT_KINDS[kind[k + 1]!] === 'reasoning'
                  ? 'reasoning'
                  : 'gap'
            }
          />
        ))}
        {limit !== undefined && limit <= top && (
          <>
            <line x1={PAD} x2={W} y1={y(limit)} y2={y(limit)} class="mark" />
            <text x={PAD - 6} y={Math.max(y(limit) + 4, y(top) + 22)} class="tick" text-anchor="end">
              limit
            </text>
          </>
        )}
        <text x={PAD} y={H + 14} class="tick">
          {formatDuration(from - start)}
        </text>
        <text x={W} y={H + 14} class="tick" text-anchor="end">
          {formatDuration(at.at(-1)! - start)} after it was due
        </text>
      </svg>
      <DataTable
        label="Chunks"
        cells={() => ({
          head: ['chunk', 'after start', 'after the one before', 'tokens', 'kind'],
          rows: at
            .slice(0, 5000)
            .map((t, k) => [
              k + 1,
              ms(t - start),
              k === 0 ? '–' : ms(t - at[k - 1]!),
              tokens === undefined || tokens[k]! < 0 ? '?' : tokens[k]!,
              (kind && OUTPUT_KINDS[kind[k]!]) ?? '?',
            ]),
        })}
      />
    </div>
  );
}
