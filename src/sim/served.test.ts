/**
 * The calibrated model against served measurements of others (skipped where the data are not at hand): each row's closed
 * loop simulated at its concurrency. A guard against regressions, on a sample; the fit saw these rows, so the error here
 * is not an estimate of the error elsewhere (`LEFT_OUT` is).
 */
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { keyed } from '../base/random.ts';
import type { Workload } from '../core/request.ts';
import { accelerator } from '../model/accelerator.ts';
import { calibrated } from '../model/calibrated.ts';
import { type Deployment, deployment } from '../model/deployment.ts';
import { parseDtype } from '../model/dtype.ts';
import { IdealStepModel } from '../model/ideal.ts';
import { model } from '../model/lookup.ts';
import type { StepModel } from '../model/step.ts';
import { ContinuousReplica } from './continuous.ts';
import { limitsFor } from './limits.ts';
import { simulate } from './simulate.ts';
import { spec } from './testing.ts';

const FILE = new URL('../../../shared/data/served/measured_ttft_tpot.csv', import.meta.url);

interface Row {
  readonly on: Deployment;
  readonly concurrency: number;
  readonly isl: number;
  readonly osl: number;
  readonly tpot: number;
}

/** Aggregated rows of models the catalogue has, on 8 devices at most; one of each configuration, every `stride`-th. */
function rows(stride: number): Row[] {
  if (!existsSync(FILE)) return []; // a skipped suite is still collected
  const [head, ...lines] = readFileSync(FILE, 'utf8').trim().split('\n');
  const names = (head as string).trim().split(',');
  const seen = new Set<string>();
  const found: Row[] = [];
  for (const line of lines) {
    const cells = line.trim().split(',');
    const cell = (name: string): string => cells[names.indexOf(name)] ?? '';
    const concurrency = /silicon_concurrency=(\d+)/.exec(cell('silicon_data_source'))?.[1];
    const tp = Number(cell('tp_size'));
    const dp = Number(cell('attention_dp_size')) || 1;
    if (cell('mode') !== 'agg' || concurrency === undefined || tp * dp > 8) continue;
    try {
      const m = model(cell('model_path').replace('zhipuai', 'zai-org'));
      const precision = cell('precision');
      const weights =
        precision === '' || precision === 'int4' || m.expertWeights ? m.weights : parseDtype(precision, 'row');
      const kv = cell('backend') === 'trtllm' && precision.startsWith('fp') ? 'fp8' : 'bf16';
      const on = deployment(m, accelerator(cell('system').replace('_', '-')), { tp, dp, weights, kv });
      const key = [
        m.name,
        on.accelerator.id,
        cell('backend'),
        precision,
        tp,
        dp,
        concurrency,
        cell('isl'),
        cell('osl'),
      ].join();
      if (seen.has(key)) continue;
      seen.add(key);
      found.push({
        on,
        concurrency: Number(concurrency),
        isl: Number(cell('isl')),
        osl: Number(cell('osl')),
        tpot: Number(cell('silicon_tpot_ms')),
      });
    } catch {
      // a model or a parallelism that is not modelled
    }
  }
  return found.filter((_, i) => i % stride === 0);
}

/** Mean TPOT of a closed loop from a simultaneous start; lengths vary a little, so that requests fall out of step. */
function simulatedTpot(row: Row, step: StepModel): number | undefined {
  const total = 4 * row.concurrency + 8;
  let next = 0;
  const offer = (at: number): { at: number; spec: ReturnType<typeof spec> } => {
    const u = keyed(1, 'served-lengths', next);
    return { at, spec: spec(next++, row.isl, Math.max(2, Math.round(row.osl * (0.9 + 0.2 * u())))) };
  };
  const workload: Workload = {
    next: () => (next < row.concurrency ? offer(0) : undefined),
    ended: (_, t) => (next < total ? [offer(t)] : []),
  };
  let sum = 0;
  let n = 0;
  simulate(workload, new ContinuousReplica(step, limitsFor(row.on, { maxSeqs: 1024 })), ({ finished: f }) => {
    if (!f) return;
    sum += (f.lastToken - f.firstToken) / (f.generated - 1);
    n++;
  });
  return n > 0 ? sum / n : undefined;
}

describe.skipIf(!existsSync(FILE))('served rows (skipped where the data are not at hand)', () => {
  const median = (xs: readonly number[]): number => [...xs].sort((a, b) => a - b)[Math.floor(xs.length / 2)] as number;
  const errors = (list: readonly Row[], stepOf: (d: Deployment) => StepModel): number =>
    median(
      list.flatMap((row) => {
        try {
          const tpot = simulatedTpot(row, stepOf(row.on));
          return tpot === undefined ? [] : [Math.abs(tpot / row.tpot - 1)];
        } catch {
          return []; // says it does not fit its devices
        }
      }),
    );
  const sample = rows(7);
  const dense = sample.filter((r) => !r.on.model.moe);
  const experts = sample.filter((r) => r.on.model.moe);

  it('gives TPOT within the errors on record, far below the ideal', () => {
    expect(dense.length).toBeGreaterThan(40);
    expect(experts.length).toBeGreaterThan(60);
    expect(errors(dense, (d) => calibrated(d).step)).toBeLessThan(0.17);
    expect(errors(experts, (d) => calibrated(d).step)).toBeLessThan(0.25);
    expect(errors(dense, (d) => new IdealStepModel(d))).toBeGreaterThan(0.4);
  });
});
