/**
 * "What would fix it", checked by simulation: the later run's own arrivals and lengths on a calibrated profile, with the
 * setting it ran with and with the knob turned. Where no profile is given it says that nothing was checked.
 */
import { InputError, oneLine } from '../base/errors.ts';
import type { Diagnosis, FixCheck, RequestRow } from '../diagnose/index.ts';
import { NAMED } from '../diagnose/index.ts';
import type { SystemPlan } from '../sim/build.ts';
import type { ReplicaLimits } from '../sim/limits.ts';

export interface FixFlags {
  readonly profile?: string;
  readonly maxNumSeqs?: number;
  readonly maxNumBatchedTokens?: number;
  readonly kvBlocks?: number;
}

interface Turned {
  readonly limits: Partial<ReplicaLimits>;
  readonly replicas?: number;
  readonly text: string;
}

/** Causes whose knob the simulator has, and what turning it is. */
const KNOBS: Readonly<Record<string, (l: ReplicaLimits) => Turned>> = {
  admission: (l) => ({
    limits: { maxSeqs: 4 * l.maxSeqs, maxBatchedTokens: Math.max(l.maxBatchedTokens, 4 * l.maxSeqs) },
    text: `max_num_seqs ${l.maxSeqs} → ${4 * l.maxSeqs}`,
  }),
  'kv-pressure': (l) => ({
    limits: { kvBlocks: 2 * l.kvBlocks },
    text: `KV blocks ${l.kvBlocks} → ${2 * l.kvBlocks} (FP8 KV, or more memory)`,
  }),
  'chunk-budget': (l) => ({
    limits: { maxBatchedTokens: 4 * l.maxBatchedTokens },
    text: `max_num_batched_tokens ${l.maxBatchedTokens} → ${4 * l.maxBatchedTokens}`,
  }),
  'chunked-prefill-interference': (l) => {
    const to = Math.max(l.maxSeqs, Math.round(l.maxBatchedTokens / 4));
    return { limits: { maxBatchedTokens: to }, text: `max_num_batched_tokens ${l.maxBatchedTokens} → ${to}` };
  },
  'batch-growth': (l) => ({
    limits: { maxSeqs: Math.max(1, Math.round(l.maxSeqs / 2)) },
    text: `max_num_seqs ${l.maxSeqs} → ${Math.max(1, Math.round(l.maxSeqs / 2))}`,
  }),
  ...Object.fromEntries(
    ['load-rise', 'burstier-arrivals', 'longer-outputs', 'longer-prompts', 'lost-replica', 'retry-storm'].map((id) => [
      id,
      () => ({ limits: {}, replicas: 2, text: 'one replica → two' }),
    ]),
  ),
};

/** @throws InputError for a profile that cannot be read, or a later side without records. */
export async function checkFixes(d: Diagnosis, flags: FixFlags): Promise<FixCheck[]> {
  const top = d.causes[0];
  if (!top || d.verdict === 'not-shown' || d.verdict === 'unknown' || d.reversed) return [];
  const named = d.causes.filter((c) => c.confidence >= NAMED).slice(0, 2);
  if (flags.profile === undefined) {
    return named.map(({ cause }) => ({
      cause: cause.id,
      knob: cause.knob,
      simulated: false,
      text: `${cause.knob} (not checked by simulation: give --profile FILE of 'goodput calibrate')`,
    }));
  }
  const rows = d.b.requests?.rows.filter((r) => r.prompt !== undefined && r.output !== undefined);
  if (!rows || rows.length < 50) {
    throw new InputError(
      '--profile: the later side has no records with lengths to simulate; give a run folder as --after',
    );
  }
  const [{ parseProfile, ProfileStepModel }, { limitsOf }, { readText }] = await Promise.all([
    import('../plan/index.ts'),
    import('../sim/index.ts'),
    import('./diagnose-files.ts'),
  ]);
  const profile = parseProfile(readText(flags.profile, '--profile'), flags.profile);
  const step = new ProfileStepModel(profile);
  const told = profile.limits;
  const maxSeqs = flags.maxNumSeqs ?? told.max_seqs ?? 256;
  const limits = limitsOf({
    kvBlocks: flags.kvBlocks ?? (told.kv_tokens === undefined ? 1_000_000 : Math.ceil(told.kv_tokens / 16)),
    maxSeqs,
    maxBatchedTokens: Math.max(maxSeqs, flags.maxNumBatchedTokens ?? told.max_batched_tokens),
  });
  const checks: FixCheck[] = [];
  for (const { cause } of named) {
    const turn = KNOBS[cause.id];
    if (!turn) {
      checks.push({
        cause: cause.id,
        knob: cause.knob,
        simulated: false,
        text: `${cause.knob} (the simulator has no such knob: not checked)`,
      });
      continue;
    }
    const turned = turn(limits);
    const system = { step, limits, frontend: step.frontendMs, ...(told.scheduler && { scheduler: told.scheduler }) };
    const before = await simulateRows(rows, system);
    const after = await simulateRows(rows, {
      ...system,
      limits: limitsOf({ ...limits, ...turned.limits }),
      replicas: turned.replicas ?? 1,
    });
    const change = (x: number, y: number): string => `${x.toFixed(x < 100 ? 1 : 0)} → ${y.toFixed(y < 100 ? 1 : 0)} ms`;
    checks.push({
      cause: cause.id,
      knob: turned.text,
      simulated: true,
      before,
      after,
      text: `${turned.text}: simulated on ${oneLine(step.label, 80)} with the later run's arrivals and lengths, mean TTFT ${change(before.ttft_ms, after.ttft_ms)}, mean TPOT ${change(before.tpot_ms, after.tpot_ms)}. ${after.ttft_ms < 0.9 * before.ttft_ms || after.tpot_ms < 0.9 * before.tpot_ms ? 'It helps' : 'It does not help there'}; price: ${cause.price}${beyond(step)}`,
    });
  }
  return checks;
}

async function simulateRows(
  rows: readonly RequestRow[],
  system: SystemPlan,
): Promise<{ ttft_ms: number; tpot_ms: number }> {
  const { metricsOf, simulate, systemOf } = await import('../sim/index.ts');
  let i = 0;
  const first = rows[0]!.at;
  let [ttft, n, tpot, m] = [0, 0, 0, 0];
  simulate(
    {
      next: () => {
        const row = rows[i];
        if (!row) return undefined;
        const operation = i++;
        return {
          at: row.at - first,
          spec: {
            operation,
            attempt: 0,
            class: row.class,
            inputTokens: Math.max(1, Math.round(row.prompt! - (row.cached ?? 0))),
            outputTokens: Math.max(1, Math.round(row.output!)),
            choices: 1,
            stream: true,
            ignoreEos: true,
          },
        };
      },
      ended: () => [],
    },
    systemOf(system),
    (done) => {
      const metrics = metricsOf(done);
      if (metrics.ttft !== undefined) {
        ttft += metrics.ttft;
        n++;
      }
      if (metrics.tpot !== undefined) {
        tpot += metrics.tpot;
        m++;
      }
    },
  );
  return { ttft_ms: ttft / Math.max(1, n), tpot_ms: tpot / Math.max(1, m) };
}

/** Where the simulation asked the profile beyond its data. */
function beyond(step: import('../plan/index.ts').ProfileStepModel): string {
  const clauses = step.beyond();
  return clauses.length > 0 ? ` (beyond the profile's data: ${clauses.join('; ')})` : '';
}
