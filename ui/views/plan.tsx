/** What a model on an accelerator can do, and where the cliff is: the step-time model and the simulator, in the page. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { messageOf } from '../../src/base/errors.ts';
import { formatDuration } from '../../src/base/units.ts';
import { contractOf } from '../../src/core/contract.ts';
import {
  ACCELERATORS,
  batchRow,
  type Dtype,
  decodeMs,
  devices,
  idealRow,
  kvBytesPerSequence,
  kvPoolBytesPerDevice,
  largestBatchUnder,
  MODELS,
  prefillMs,
  RESERVES,
  weightBytesPerDevice,
} from '../../src/model/index.ts';
import { AttainmentCurve, type CurveDot, GoodputCurve } from '../charts/curve.tsx';
import { Figure } from '../charts/data-table.tsx';
import { Kpi } from '../charts/kpi.tsx';
import { Plot } from '../charts/plot.tsx';
import { Problem } from '../charts/problem.tsx';
import { adjust, param } from '../route.ts';
import { type Built, build, type Engine, simulateRate } from '../simulate.ts';
import { figure, ms, whole } from '../words.ts';

const DTYPES: readonly Dtype[] = ['bf16', 'fp8', 'int8', 'fp4', 'int4'];

interface Asked extends Engine {
  readonly context: number;
  readonly output: number;
  /** ms; NaN: no limit. */
  readonly tpot: number;
}

function asked(): Asked {
  const number = (name: string, usual: number): number => {
    const x = Number(param(name) ?? usual);
    return Number.isFinite(x) && x > 0 ? x : usual;
  };
  const weights = param('weights');
  return {
    model: param('model') ?? 'llama-3.1-8b',
    gpu: param('gpu') ?? 'h100-sxm',
    tp: Math.round(number('tp', 1)),
    weights: DTYPES.find((d) => d === weights),
    kv: DTYPES.find((d) => d === param('kv')) ?? 'bf16',
    basis: param('basis') === 'ideal' ? 'ideal' : 'calibrated',
    maxSeqs: Math.round(number('seqs', 256)),
    replicas: 1,
    context: Math.round(number('context', 2048)),
    output: Math.round(number('output', 256)),
    tpot: param('tpot') === 'none' ? Number.NaN : number('tpot', 10),
  };
}

export default function PlanView() {
  const a = asked();
  const key = JSON.stringify(a);
  const built = useMemo(() => {
    try {
      return { is: build(a) };
    } catch (error) {
      return { problem: messageOf(error) };
    }
  }, [key]);
  return (
    <div class="page">
      <header class="heading">
        <h1>Plan</h1>
        <p class="note">A full batch decodes. Computed here, by the code of goodput model and goodput simulate.</p>
      </header>
      <Form a={a} />
      {built.problem !== undefined ? (
        <Problem what="This cannot be built" why={built.problem} />
      ) : (
        <Answers a={a} b={built.is as Built} />
      )}
    </div>
  );
}

function Form({ a }: { a: Asked }) {
  const pick = (name: string, label: string, value: string, options: readonly (readonly [string, string])[]) => (
    <div class="term">
      <label for={`plan-${name}`}>{label}</label>
      <select id={`plan-${name}`} value={value} onChange={(e) => adjust({ [name]: e.currentTarget.value })}>
        {options.map(([v, word]) => (
          <option value={v} key={v}>
            {word}
          </option>
        ))}
      </select>
    </div>
  );
  const number = (name: string, label: string, value: number, step = 1) => (
    <div class="term">
      <label for={`plan-${name}`}>{label}</label>
      <input
        id={`plan-${name}`}
        type="number"
        min={step}
        step="any"
        value={Number.isNaN(value) ? '' : value}
        placeholder="none"
        onInput={(e) => adjust({ [name]: e.currentTarget.value === '' ? 'none' : e.currentTarget.value })}
      />
    </div>
  );
  const same = (list: readonly string[]) => list.map((x) => [x, x] as const);
  return (
    <section class="card wide" aria-label="Deployment">
      <div class="terms">
        {pick('model', 'model', a.model, same(MODELS.map((m) => m.name).sort()))}
        {pick('gpu', 'accelerator', a.gpu, same(ACCELERATORS.map((x) => x.id).sort()))}
        {pick('tp', 'tensor parallel', String(a.tp), same(['1', '2', '4', '8', '16']))}
        {pick('weights', 'weights', a.weights ?? '', [['', 'as published'], ...same(DTYPES)])}
        {pick('kv', 'KV cache', a.kv, same(['bf16', 'fp8']))}
        {number('context', 'context, tokens', a.context)}
        {number('output', 'output, tokens', a.output)}
        {number('tpot', 'TPOT ≤, ms', a.tpot, 0.1)}
        {pick('basis', 'step times', a.basis, [
          ['calibrated', 'calibrated'],
          ['ideal', 'ideal'],
        ])}
      </div>
    </section>
  );
}

function Answers({ a, b }: { a: Asked; b: Built }) {
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

/** One device's memory as a bar. */
function Memory({ b: { on } }: { b: Built }) {
  const total = on.accelerator.memory;
  const weights = weightBytesPerDevice(on);
  const kv = Math.max(0, kvPoolBytesPerDevice(on));
  const parts: [string, number, string][] = [
    ['weights', weights, '--s-1'],
    ['KV pool', kv, '--c-good'],
    ['activations and runtime', RESERVES.other, '--s-4'],
    ['kept free', (1 - RESERVES.share) * total, '--line'],
  ];
  const gb = (x: number): string => `${figure(x / 1e9, 3)} GB`;
  return (
    <div class="cohort">
      <div
        class="bar"
        role="img"
        aria-label={`Memory of one device: ${parts.map(([n, x]) => `${n} ${gb(x)}`).join(', ')}`}
      >
        {parts.map(([name, x, c]) => (
          <span key={name} style={{ flexGrow: String(x), background: `var(${c})` }} title={`${name} ${gb(x)}`} />
        ))}
      </div>
      <p class="legend">
        {gb(total)} a device:{' '}
        {parts.map(([name, x, c]) => (
          <span key={name}>
            <i style={{ background: `var(${c})` }} />
            {name} {gb(x)}{' '}
          </span>
        ))}
        {weights > RESERVES.share * total - RESERVES.other && <strong>The weights do not fit.</strong>}
      </p>
    </div>
  );
}

/** Every accelerator at 1, 2, 4 and 8 devices under the same limit: what a device yields against what a user waits. */
function Frontier({ a }: { a: Asked }) {
  const rows = useMemo(() => {
    const found: { label: string; gpu: string; tp: number; perDevice: number; step: number; batch: number }[] = [];
    for (const gpu of ACCELERATORS) {
      for (const tp of [1, 2, 4, 8]) {
        if (tp > gpu.domain) continue;
        try {
          const b = build({ ...a, gpu: gpu.id, tp });
          const { largest } = largestBatchUnder(b.on, b.step, {
            context: a.context,
            ...(!Number.isNaN(a.tpot) && { tpot: a.tpot }),
          });
          const batch = Math.min(largest, 1024);
          if (batch < 1) continue;
          const r = batchRow(b.on, b.step, { batch, context: a.context, output: a.output });
          found.push({ label: `${tp} × ${gpu.id}`, gpu: gpu.id, tp, perDevice: r.goodput / tp, step: r.stepMs, batch });
        } catch {
          // this model does not divide so
        }
      }
    }
    return found.sort((x, y) => y.perDevice - x.perDevice).slice(0, 12);
  }, [JSON.stringify(a)]);
  const top = Math.max(1e-9, ...rows.map((r) => r.perDevice));
  return (
    <Figure
      title="Frontier"
      note="Goodput a device at the largest batch that holds the limit, over accelerators; a full batch, queueing left out. Choose one to look at it."
      table={() => ({
        head: ['deployment', 'goodput a device', 'batch', 'step'],
        rows: rows.map((r) => [r.label, `${figure(r.perDevice)}/s`, r.batch, ms(r.step)]),
      })}
    >
      {rows.length === 0 && <p class="wait">Nothing holds this limit.</p>}
      <ul class="ranked">
        {rows.map((r) => (
          <li key={r.label}>
            <button
              type="button"
              aria-current={r.gpu === a.gpu && r.tp === a.tp}
              onClick={() => adjust({ gpu: r.gpu, tp: r.tp })}
            >
              <span>{r.label}</span>
              <span class="track">
                <i style={{ width: `${(100 * r.perDevice) / top}%` }} />
              </span>
              <span class="num">{figure(r.perDevice, 3)}/s</span>
            </button>
          </li>
        ))}
      </ul>
    </Figure>
  );
}

/** Requests that arrive by chance, queue and are prefilled: the simulator. */
function Load({ a }: { a: Asked }) {
  const [dots, setDots] = useState<readonly CurveDot[]>([]);
  const [said, setSaid] = useState('');
  const stop = useRef<AbortController | undefined>(undefined);
  const input = Math.max(1, a.context - Math.round(a.output / 2));
  const ttft = Number(param('ttft') ?? 500);
  const tpot = Number.isNaN(a.tpot) ? 1000 : a.tpot;
  useEffect(() => {
    setDots([]);
    setSaid('');
    return () => stop.current?.abort();
  }, [JSON.stringify(a), ttft]);
  const run = (): void => {
    stop.current?.abort();
    const control = new AbortController();
    stop.current = control;
    void (async () => {
      try {
        const { on, step } = build(a);
        const { largest } = largestBatchUnder(on, step, {
          context: a.context,
          ...(!Number.isNaN(a.tpot) && { tpot: a.tpot }),
        });
        if (largest < 1) throw new Error('no batch meets the limit');
        const batch = Math.min(largest, a.maxSeqs);
        const most = batchRow(on, step, { batch, context: a.context, output: a.output }).goodput;
        const got: CurveDot[] = [];
        const shares = [0.2, 0.4, 0.55, 0.7, 0.8, 0.9, 1, 1.15, 1.4];
        for (const [k, share] of shares.entries()) {
          setSaid(`simulating ${k + 1} of ${shares.length}…`);
          got.push(
            await simulateRate(
              {
                engine: { ...a, maxSeqs: batch },
                contract: contractOf({ ttft, tpot }, { deadline: 120_000 }),
                input,
                output: a.output,
                rate: share * most,
                requests: 500,
                seed: 1,
              },
              control.signal,
            ),
          );
          setDots([...got]);
        }
        setSaid(`500 requests a rate, batches of at most ${whole(batch)}`);
      } catch (error) {
        if ((error as Error).name !== 'AbortError') setSaid(messageOf(error));
      }
    })();
  };
  const series = [{ name: 'simulated', color: '--accent', points: dots }];
  return (
    <Figure
      title="Under load"
      note={
        <>
          Poisson arrivals of {whole(input)} prompt tokens, TTFT ≤{' '}
          <input
            type="number"
            class="short"
            aria-label="TTFT limit, ms"
            min="1"
            value={ttft}
            onChange={(e) => adjust({ ttft: e.currentTarget.value })}
          />{' '}
          ms and the TPOT limit together, the batch capped where TPOT allows.
        </>
      }
      {...(dots.length > 0 && {
        table: () => ({
          head: ['rate', 'attainment', 'goodput', 'tokens/s'],
          rows: dots.map((d) => [
            `${figure(d.rate)}/s`,
            `${figure(100 * d.attainment)} %`,
            `${figure(d.goodput)}/s`,
            figure(d.throughput),
          ]),
        }),
      })}
    >
      <p>
        <button type="button" onClick={run}>
          Simulate
        </button>{' '}
        <span role="status">{said}</span>
      </p>
      {dots.length > 0 && (
        <>
          <AttainmentCurve series={series} target={0.9} />
          <GoodputCurve series={series} />
        </>
      )}
    </Figure>
  );
}
