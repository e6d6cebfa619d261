/** What a cause rests on, as a chart: before and after side by side, and how many times as much it is, with the interval. */
import { formatDuration, trim } from '../../src/base/units.ts';
import type { Evidence } from './told.ts';

const W = 240;
const H = 22;

const shown = (x: number, unit: string | undefined): string =>
  unit === 'ms'
    ? formatDuration(x)
    : unit === 'share'
      ? `${trim(100 * x, 3)} %`
      : `${trim(x, 3)}${unit && unit !== 'count' ? ` ${unit}` : ''}`;

export function EvidenceChart({ list, against }: { list: readonly Evidence[]; against: readonly Evidence[] }) {
  const all = [...list.map((e) => ({ e, isFor: true })), ...against.map((e) => ({ e, isFor: false }))];
  const figures = all.filter(({ e }) => e.before !== undefined);
  const sentences = all.filter(({ e }) => e.before === undefined);
  // One scale for all, with × 1 in it: what changed most is seen to.
  const ratios = figures.flatMap(({ e }) => (e.ratio ? [e.ratio.low, e.ratio.high] : []));
  const most = Math.max(1.5, ...ratios.map((r) => Math.max(r, 1 / r)));
  const x = (r: number): number => W / 2 + (Math.log(r) / Math.log(most)) * (W / 2 - 6);
  return (
    <>
      {figures.length > 0 && (
        <table class="evidence">
          <thead>
            <tr>
              <th scope="col">evidence</th>
              <th scope="col" class="num">
                before
              </th>
              <th scope="col" class="num">
                after
              </th>
              <th scope="col" class="num">
                times
              </th>
              <th scope="col">less ← × 1 → more</th>
            </tr>
          </thead>
          <tbody>
            {figures.map(({ e, isFor }, i) => (
              <tr key={i}>
                <th scope="row">
                  {isFor ? '' : 'against it: '}
                  {e.label ?? e.text}
                </th>
                <td class="num">{shown(e.before as number, e.unit)}</td>
                <td class="num">{shown(e.after as number, e.unit)}</td>
                <td class="num">
                  {e.ratio ? `${trim(e.ratio.at, 3)} (${trim(e.ratio.low, 3)} to ${trim(e.ratio.high, 3)})` : '–'}
                </td>
                <td>
                  {e.ratio ? (
                    <svg
                      viewBox={`0 0 ${W} ${H}`}
                      class={isFor ? '' : 'against'}
                      role="img"
                      aria-label={`${trim(e.ratio.at, 3)} times, ${trim(e.ratio.low, 3)} to ${trim(e.ratio.high, 3)}`}
                    >
                      <line x1={W / 2} x2={W / 2} y1={0} y2={H} class="grid" />
                      <line x1={x(e.ratio.low)} x2={x(e.ratio.high)} y1={H / 2} y2={H / 2} class="interval" />
                      <circle cx={x(e.ratio.at)} cy={H / 2} r={4.5} class="point" />
                    </svg>
                  ) : (
                    <Pair before={e.before as number} after={e.after as number} unit={e.unit} />
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {sentences.length > 0 && (
        <ul>
          {sentences.map(({ e, isFor }, i) => (
            <li key={i}>
              {isFor ? '' : 'Against it: '}
              {e.text}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

/** A figure before and after, as two bars. */
function Pair({ before, after, unit }: { before: number; after: number; unit: string | undefined }) {
  const top = Math.max(Math.abs(before), Math.abs(after), 1e-12);
  return (
    <span class="pair" role="img" aria-label={`before ${shown(before, unit)}, after ${shown(after, unit)}`}>
      <i style={{ width: `${(100 * Math.abs(before)) / top}%` }} />
      <i class="after" style={{ width: `${(100 * Math.abs(after)) / top}%` }} />
    </span>
  );
}
