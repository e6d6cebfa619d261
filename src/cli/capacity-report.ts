/** From a search's outcome to the report: the published keys. */
import type { CapacityOutcome, CurvePoint } from '../drive/capacity/index.ts';
import { curveOf } from '../drive/capacity/outcome.ts';
import type { CapacityReport, CurveRow } from '../report/curve-report.ts';

export function capacityReport(
  outcome: CapacityOutcome,
  about: Readonly<Record<string, string>>,
  gpus?: number,
  unit: 'requests' | 'sessions' = 'requests',
): CapacityReport {
  const { low, high, goodputAtCapacity: goodput, binding } = outcome;
  return {
    schema: 'goodput.capacity/1',
    end: outcome.end,
    unit,
    capacity: { low, high, confidence: outcome.confidence },
    target: outcome.target,
    probes: outcome.points.map((p) => rowOf(p)),
    curve: curveOf(outcome.points).map((p) => rowOf(p)),
    goodput_at_capacity_rps: goodput,
    per_gpu_rps: gpus !== undefined && low !== null ? low / gpus : null,
    goodput_per_gpu_rps: gpus !== undefined && goodput !== null ? goodput / gpus : null,
    gpus: gpus ?? null,
    bracket: outcome.bracket,
    binding: binding && { limit: binding.limit, class: binding.class, share: binding.count / binding.offered },
    notes: outcome.notes,
    runs: outcome.runs,
    offered: outcome.offered,
    seconds: outcome.elapsed / 1000,
    about,
  };
}

export function rowOf(p: CurvePoint, sweep = false): CurveRow {
  return {
    rate: p.rate,
    verdict: p.verdict,
    attainment: p.attainment,
    low: p.low,
    high: p.high,
    level: p.level,
    goodput_rps: p.goodput,
    offered: p.offered,
    unstable: p.unstable,
    throughput_tps: p.throughput,
    ttft_ms: p.ttft,
    tpot_ms: p.tpot,
    role: sweep ? 'sweep' : p.role,
    replications: p.replications,
    shed: p.shed,
    because: p.because,
    why: p.why,
  };
}
