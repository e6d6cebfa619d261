/** The distribution of one metric over the cohort, with its limit to be dragged. */
import { useMemo, useState } from 'preact/hooks';
import { formatDuration } from '../../src/base/units.ts';
import type { Packed } from '../../src/dashboard/packed/index.ts';
import { Figure } from '../charts/data-table.tsx';
import { Plot } from '../charts/plot.tsx';
import { tidy } from '../charts/scatter.tsx';
import { ecdf, sortedCohort } from '../series.ts';
import { contract, move, settle } from '../state.ts';
import { ms, percent, whole } from '../words.ts';

const DISTRIBUTIONS = {
  ttft: 'TTFT',
  tpot: 'TPOT',
  gap: 'max gap',
  latency: 'last token',
  e2e: 'E2E',
} as const;
type Metric = keyof typeof DISTRIBUTIONS;

export function Distribution({ p }: { p: Packed }) {
  const [name, setName] = useState<Metric>('ttft');
  const sorted = useMemo(() => sortedCohort(p, p[name]), [p, name]);
  const curve = useMemo(() => ecdf(sorted), [sorted]);
  const limit = contract.value?.limits[name];
  return (
    <Figure
      title="Distribution"
      aside={
        <label>
          <span class="sr">Metric</span>
          <select value={name} onChange={(e) => setName(e.currentTarget.value as Metric)}>
            {Object.entries(DISTRIBUTIONS).map(([key, word]) => (
              <option value={key} key={key}>
                {word}
              </option>
            ))}
          </select>
        </label>
      }
      note={`Share of the cohort's ${whole(sorted.length)} measured ${DISTRIBUTIONS[name]} values at or below x${limit === undefined ? '' : '; drag the limit'}.`}
      table={() => ({
        head: ['share', DISTRIBUTIONS[name]],
        rows: [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1].map((s) => {
          const k = curve.share.findIndex((x) => x >= s - 1e-12);
          return [percent(s), k < 0 ? '–' : ms(curve.x[k])];
        }),
      })}
    >
      <Plot
        label={`Distribution of ${DISTRIBUTIONS[name]}`}
        xLabel={DISTRIBUTIONS[name]}
        height={300}
        x={curve.x}
        lines={[{ label: 'share', color: '--accent', values: curve.share, fill: true, stepped: true }]}
        formatX={(x) => formatDuration(x)}
        formatY={(y) => percent(y, 3)}
        yRange={[0, 1]}
        logX={curve.x.length > 0 && curve.x[0]! > 0}
        marks={limit === undefined ? [] : [{ x: limit, color: '--c-late', label: `limit ${formatDuration(limit)}` }]}
        onDrag={(_, x) => move({ [name]: tidy(x) })}
        onDragEnd={settle}
      />
    </Figure>
  );
}
