/** The largest batch and what binds it, the step time, the cliff. */
import { useMemo } from 'preact/hooks';
import { formatDuration } from '../../src/base/units.ts';
import {
  batchRow,
  decodeMs,
  devices,
  idealRow,
  kvBytesPerSequence,
  largestBatchUnder,
  prefillMs,
} from '../../src/model/index.ts';
import { Figure } from '../charts/data-table.tsx';
import { Kpi } from '../charts/kpi.tsx';
import { Plot } from '../charts/plot.tsx';
import type { Built } from '../simulate.ts';
import { figure, ms, whole } from '../words.ts';
import type { Asked } from './asked.ts';
import { Frontier } from './frontier.tsx';
import { Load } from './load.tsx';
import { Memory } from './memory.tsx';

export function Answers({ a, b }: { a: Asked; b: Built }) {
  const { on, step } = b;
  const tpot = Number.isNaN(a.tpot) ? undefined : a.tpot;
  const under = largestBatchUnder(on, step, { context: a.context, ...(tpot !== undefined && { tpot }) });
  const { largest, pool } = under;
  const ask = { context: a.context, output: a.output, ...(tpot !== undefined && { tpot }) };
  const compute =
    largest > 0 && under.bound === 'tpot' && idealRow(on, largest, a.context, a.output).bound === 'compute';
  const at = batchRow(on, step, { batch: Math.max(1, largest), ...ask });
  const top = Math.max(8, Math.min(4096, Math.ceil(1.4 * Math.max(largest, Math.min(pool, 2 * largest + 64), 16))));
  const batches = useMemo(() => {
    const set = new Set<number>([1, largest, pool, largest + 1].filter((n) => n >= 1 && n <= top));
    for (let k = 1; k <= 160; k++) set.add(Math.max(1, Math.round((k / 160) * top)));
    return [...set].sort((x, y) => x - y);
  }, [top, largest, pool]);
  const rows = batches.map((batch) => batchRow(on, step, { batch, ...ask }));
  const why =
    pool < 1
      ? 'the weights leave no room for the KV of one sequence: use more devices, a smaller precision or a larger accelerator'
      : largest === 0
        ? `not even one sequence meets a TPOT of ${formatDuration(a.tpot)}`
        : under.bound === 'kv-pool'
          ? `the KV pool binds, not latency: it holds ${whole(pool)} sequences of ${whole(a.context)} tokens`
          : compute
            ? 'compute binds: FLOPs, not bytes, make the step as long as the TPOT'
            : `TPOT binds: at ${whole(largest + 1)} sequences a step takes ${ms(decodeMs(step, largest + 1, a.context))}, and goodput falls to 0 while throughput climbs on`;
  const shown = [...new Set([16, 32, 64, 96, 128, largest].filter((n) => n > 0))].sort((x, y) => x - y);
  return (
    <>
      <section class="card wide headline" aria-label="Answer" aria-live="polite">
        <div class="kpis">
          <Kpi id="largest" name="Largest batch" value={pool < 1 ? 'none' : whole(largest)} more={why} />
          <Kpi
            id="step"
            name="Step there"
            value={largest > 0 ? ms(at.stepMs) : '–'}
            more={`a lone prompt of ${whole(a.context)} takes ${ms(prefillMs(step, a.context))}`}
          />
          <Kpi
            name="Throughput"
            value={largest > 0 ? `${figure(at.tokensPerSecond)} tok/s` : '–'}
            more={`${figure(at.tokensPerSecond / devices(on))} a device`}
          />
          <Kpi
            id="plan-goodput"
            name="Goodput"
            value={largest > 0 ? `${figure(at.goodput)}/s` : '0'}
            more={`requests of ${whole(a.output)} output tokens`}
          />
          <Kpi
            id="pool"
            name="KV pool"
            value={`${whole(pool)}`}
            more={`sequences of ${figure(kvBytesPerSequence(on.model, a.context, on.kv) / 1e6, 3)} MB`}
          />
        </div>
        <Memory b={b} />
        <p class="note">
          {b.error
            ? `Step times ${step.label}: median absolute error on models left out of the fit ${Math.round(100 * b.error.tpot)} % for TPOT, ${Math.round(100 * b.error.ttft)} % for TTFT.`
            : 'Ideal step times: no overheads, no launch costs, links for free; no real engine is this fast.'}
          {b.beyond.map((x) => ` Beyond the data: ${x}.`)}
        </p>
      </section>
      <div class="grid">
        <Figure
          title="Step time over batch"
          note="Where the line crosses the TPOT limit, goodput ends."
          table={() => ({
            head: ['batch', 'step', 'tokens/s', 'goodput', 'meets TPOT', 'in KV pool', 'bound (ideal)'],
            rows: shown.map((batch) => {
              const r = batchRow(on, step, { batch, ...ask });
              return [
                batch,
                ms(r.stepMs),
                figure(r.tokensPerSecond),
                `${figure(r.goodput)}/s`,
                r.meetsTpot ? 'yes' : 'no',
                r.fitsPool ? 'yes' : 'no',
                idealRow(on, batch, a.context, a.output).bound,
              ];
            }),
          })}
        >
          <Plot
            label="Step time over batch size"
            xLabel="batch"
            x={batches}
            lines={[
              { label: 'step', color: '--accent', values: rows.map((r) => r.stepMs) },
              ...(tpot === undefined
                ? []
                : [{ label: 'TPOT limit', color: '--c-late', values: batches.map(() => tpot), dash: true }]),
              { label: 'compute alone', color: '--muted', values: rows.map((r) => r.computeMs), dash: true },
            ]}
            formatX={(x) => figure(x, 4)}
            formatY={(y) => formatDuration(y)}
            marks={pool >= 1 && pool <= top ? [{ x: pool, color: '--c-failed', label: `KV pool ${whole(pool)}` }] : []}
          />
        </Figure>
        <Figure
          title="The cliff"
          note="Goodput rises with the batch, then falls to 0 at once; throughput does not tell."
        >
          <Plot
            label="Goodput and throughput over batch size"
            xLabel="batch"
            x={batches}
            lines={[
              {
                label: 'goodput, requests/s',
                color: '--c-good',
                values: rows.map((r) => r.goodput),
                fill: true,
                stepped: true,
              },
              {
                label: 'tokens/s',
                color: '--muted',
                values: rows.map((r) => r.tokensPerSecond),
                scale: 'y2',
                dash: true,
              },
            ]}
            formatX={(x) => figure(x, 4)}
            formatY={(y) => figure(y, 3)}
            formatY2={(y) => (y >= 1000 ? `${figure(y / 1000, 3)}k` : figure(y, 3))}
          />
        </Figure>
        <Frontier a={a} />
        <Load a={a} />
      </div>
    </>
  );
}
