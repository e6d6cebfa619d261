/**
 * A scenario a cause: what of the world it needs, and what it does to it at a strength. Strengths and what is told of the
 * change are drawn from the ranges here.
 */
import type { Changes, Diff, FlagDiff } from '../../src/diagnose/changes.ts';
import { topicOf } from '../../src/diagnose/changes.ts';
import { capacityOf, type Draw, type World } from './world.ts';

export interface Scenario {
  readonly id: string;
  /** Makes the healthy side fit: two replicas, a cache, enough load. */
  readonly prepare?: (w: World, d: Draw) => World;
  /** The later side; `s` is 0 to 1, weak to strong. */
  readonly apply: (w: World, s: number, d: Draw) => World;
  /** Settings, versions and marks that come with it; told in a share of the cases. */
  readonly told?: (d: Draw) => Partial<Told>;
}

interface Told {
  readonly flags: readonly (readonly [string, string, string])[];
  readonly versions: readonly (readonly [string, string, string])[];
  readonly deployments: readonly (readonly [string, string, string])[];
  readonly marks: Changes['marks'];
  /** Told whenever a changes file is given at all. */
  readonly always: boolean;
}

/** Log interpolation. */
const at = (s: number, low: number, high: number): number => low * (high / low) ** s;
const utilised =
  (low: number, high: number) =>
  (w: World, d: Draw): World => ({
    ...w,
    rate: capacityOf(w) * total(w) * d.between(low, high),
  });
const total = (w: World): number => w.replicas.length;
const version = (d: Draw): Partial<Told> => ({
  versions: [['vllm', `0.${d.whole(6, 9)}.0`, `0.${d.whole(10, 13)}.0`]],
});
const start: Partial<Told> = { marks: [{ kind: 'process-start', side: 'after', text: 'pod restarted' }], always: true };

export const SCENARIOS: readonly Scenario[] = [
  {
    id: 'admission',
    prepare: utilised(0.45, 0.7),
    // Below what the load needs at once: its mean batch, by a run of the healthy side (set as `maxSeqs` by the gym).
    apply: (w, s) => ({ ...w, maxSeqs: Math.max(2, Math.round(w.maxSeqs * at(s, 0.55, 0.25))) }),
    told: (d) => ({ flags: [['--max-num-seqs', '256', String(d.pick([8, 16, 32]))]] }),
  },
  {
    id: 'kv-pressure',
    prepare: utilised(0.5, 0.75),
    apply: (w, s) => ({ ...w, kvBlocks: Math.ceil(((w.prompt + w.output) * w.maxSeqs * at(s, 0.42, 0.2)) / 16) + 280 }),
    told: () => ({ flags: [['--gpu-memory-utilization', '0.95', '0.80']] }),
  },
  {
    id: 'load-rise',
    prepare: utilised(0.35, 0.6),
    apply: (w, s) => ({ ...w, rate: w.rate * at(s, 1.2, 2) }),
  },
  {
    id: 'burstier-arrivals',
    prepare: utilised(0.4, 0.65),
    apply: (w, s) => ({ ...w, shape: at(s, 0.3, 0.06) }),
  },
  {
    id: 'longer-outputs',
    prepare: utilised(0.35, 0.6),
    apply: (w, s) => ({ ...w, output: Math.round(w.output * at(s, 1.3, 2.4)) }),
  },
  {
    id: 'head-of-line',
    apply: (w, s) => ({ ...w, gate: at(s, 60, 1500) }),
    told: version,
  },
  {
    id: 'retry-storm',
    prepare: utilised(0.5, 0.68),
    // Gives up at a few times the unloaded TTFT: some requests, then more as the load grows.
    apply: (w, s) => ({ ...w, retryAfter: (w.prompt * w.perToken + 3 * w.base + w.frontend + 20) * at(s, 2.2, 1.1) }),
    told: () => ({ flags: [['client-timeout', '30s', '1s']] }),
  },
  {
    id: 'adapter-swaps',
    prepare: (w) => ({ ...w, classes: [0.4, 0.3, 0.3] }),
    apply: (w, s, d) => ({
      ...w,
      classes: d.pick([
        [0.3, 0.25, 0.25, 0.2],
        [0.25, 0.2, 0.2, 0.2, 0.15],
      ]),
      swap: at(s, 80, 1500),
    }),
    told: () => ({ flags: [['--max-loras', '8', '2']] }),
  },
  {
    id: 'longer-prompts',
    apply: (w, s) => ({ ...w, prompt: Math.round(w.prompt * at(s, 1.3, 2.6)), kvBlocks: Math.round(w.kvBlocks * 1.6) }),
  },
  {
    id: 'prefix-cache-loss',
    prepare: (w, d) => ({ ...utilised(0.3, 0.6)({ ...w, prefixShare: d.between(0.45, 0.85) }, d) }),
    apply: (w, s, d) =>
      d.chance(0.4) || s > 0.7 ? { ...w, caching: false } : { ...w, prefixGroups: 100_000, prefixShare: w.prefixShare },
    told: (d) => ({ ...(d.chance(0.5) ? { flags: [['--block-size', '16', '128']] as const } : version(d)) }),
  },
  {
    id: 'slower-prefill',
    apply: (w, s) => ({ ...w, perToken: w.perToken * at(s, 1.4, 3.5) }),
    told: (d) => (d.chance(0.5) ? { flags: [['VLLM_ATTENTION_BACKEND', 'FLASH_ATTN', 'TRITON']] } : version(d)),
  },
  {
    id: 'chunk-budget',
    prepare: (w, d) => ({
      ...w,
      budget: 8192,
      prompt: Math.round(d.scale(1200, 3500)),
      rate: w.rate * 0.55,
      kvBlocks: w.kvBlocks * 3,
    }),
    apply: (w, s) => ({ ...w, budget: Math.max(w.maxSeqs + 64, Math.round(at(s, 512, 128))) }),
    told: (d) => ({ flags: [['--max-num-batched-tokens', '8192', String(d.pick([256, 512, 1024]))]] }),
  },
  {
    id: 'cold-start',
    apply: (w, s, d) => ({ ...w, restarted: true, coldShare: d.between(0.06, 0.2), cold: at(s, 200, 6000) }),
    told: () => start,
  },
  {
    id: 'model-reload',
    // Such servers tell the load duration with every answer, 0 where there was none.
    prepare: (w) => ({ ...w, reload: 1, perRequestTimes: true }),
    apply: (w, s, d) => ({ ...w, reloadShare: d.between(0.15, 0.7), reload: at(s, 200, 4000) }),
    told: () => ({ flags: [['num_ctx', '4096', '4096 and 8192']] }),
  },
  {
    id: 'frontend-cpu',
    // One process near its own capacity.
    apply: (w, s, d) => ({
      ...w,
      frontendService: ((1000 / w.rate) * w.replicas.length * at(s, 0.75, 0.97)) / 1,
      frontend: w.frontend * d.between(1, 2),
    }),
    told: (d) => (d.chance(0.5) ? { flags: [['--api-server-count', '4', '1']] } : version(d)),
  },
  {
    id: 'request-preprocessing',
    prepare: (w, d) => ({
      ...w,
      classes: d.pick([
        [0.75, 0.25],
        [0.6, 0.4],
        [0.5, 0.3, 0.2],
      ]),
    }),
    apply: (w, s) => ({ ...w, classExtra: at(s, 150, 4000) }),
    told: () => ({ flags: [['--guided-decoding-backend', 'xgrammar', 'outlines']] }),
  },
  {
    id: 'proxy-buffering',
    apply: (w, s, d) => ({
      ...w,
      delivery: { kind: 'block', tokens: Math.round(at(s, 12, 0.6 * w.output) * d.between(0.8, 1.2)) },
    }),
    told: () => ({ flags: [['proxy_buffering', 'off', 'on']] }),
  },
  {
    id: 'response-batching',
    apply: (w, s) => ({ ...w, delivery: { kind: 'batch', tokens: Math.round(at(s, 4, 24)) } }),
    told: (d) => ({ flags: [['--stream-interval', '1', String(d.pick([4, 8, 10]))]] }),
  },
  {
    id: 'fake-streaming',
    apply: (w) => ({ ...w, delivery: { kind: 'whole' } }),
    told: version,
  },
  {
    id: 'client-bound',
    apply: (w, s) => ({ ...w, clientService: (1000 / w.rate) * at(s, 0.7, 0.97) }),
  },
  {
    id: 'synchronous-stalls',
    prepare: utilised(0.4, 0.65),
    apply: (w, s, d) => ({
      ...w,
      delivery: { kind: 'pauses', period: d.scale(900, 3000), pause: at(s, 90, 350), growth: d.pick([0, 0, 0.01]) },
    }),
    told: version,
  },
  {
    id: 'kv-transfer',
    prepare: (w, d) => ({ ...w, transfer: d.between(1, 4), transferPerToken: d.between(0.0005, 0.002) }),
    apply: (w, s) => ({ ...w, transfer: w.transfer * 3, transferPerToken: at(s, 0.03, 0.5) }),
    told: () => ({ flags: [['UCX_TLS', 'rc,cuda', 'tcp']] }),
  },
  {
    id: 'chunked-prefill-interference',
    prepare: (w, d) => ({
      ...utilised(0.35, 0.6)(
        {
          ...w,
          budget: Math.max(w.maxSeqs + 96, d.pick([192, 256, 384])),
          prompt: Math.round(d.scale(1200, 3500)),
          kvBlocks: w.kvBlocks * 3,
        },
        d,
      ),
    }),
    apply: (w, s) => ({ ...w, budget: Math.round(at(s, 2048, 8192)) }),
    told: () => ({ flags: [['--max-num-batched-tokens', '256', '8192']] }),
  },
  {
    id: 'batch-growth',
    // Slots were short; with more of them the queue goes and every step grows.
    prepare: (w, d) => ({
      ...utilised(0.62, 0.8)(
        { ...w, maxSeqs: d.whole(6, 10), perSequence: d.between(0.5, 1.2), kvBlocks: w.kvBlocks * 3 },
        d,
      ),
    }),
    apply: (w, s) => ({ ...w, maxSeqs: Math.round(w.maxSeqs * at(s, 3, 8)), rate: w.rate }),
    told: (d) => ({ flags: [['--max-num-seqs', '8', String(d.pick([64, 128, 256]))]] }),
  },
  {
    id: 'speculative-acceptance',
    prepare: (w, d) => ({
      ...w,
      speculation: { draftTokens: d.whole(3, 5), acceptance: d.between(0.7, 0.85) },
      prefixShare: 0,
      rate: w.rate * 0.8,
    }),
    apply: (w, s, d) => ({
      ...w,
      speculation: { draftTokens: w.speculation!.draftTokens, acceptance: at(s, 0.5, 0.15) * d.between(0.9, 1.1) },
    }),
    told: () => ({ flags: [['--speculative-config', 'eagle', 'eagle (new draft)']] }),
  },
  {
    id: 'clock-throttling',
    apply: (w, s) => {
      const f = at(s, 1.25, 2.4);
      return {
        ...w,
        base: w.base * f,
        perToken: w.perToken * f,
        perSequence: w.perSequence * f,
        perKv: w.perKv * f,
        gpuClock: w.gpuClock / f ** 0.8,
      };
    },
  },
  {
    id: 'replica-imbalance',
    prepare: (w, d) => ({
      ...utilised(0.4, 0.6)(
        {
          ...w,
          replicas: d.pick([
            [1, 1, 1],
            [1, 1, 1, 1],
          ]),
        },
        d,
      ),
    }),
    apply: (w, s) => ({ ...w, replicas: w.replicas.map((_, i) => (i === 0 ? at(s, 1.8, 4) : 1)) }),
    told: () => ({ flags: [['router-policy', 'least-loaded', 'prefix']] }),
  },
  {
    id: 'lost-replica',
    prepare: (w, d) => ({
      ...utilised(0.42, 0.62)(
        {
          ...w,
          replicas: d.pick([
            [1, 1],
            [1, 1, 1],
          ]),
        },
        d,
      ),
    }),
    apply: (w) => ({ ...w, replicas: w.replicas.slice(1) }),
    told: () => ({ deployments: [['replicas', '3', '2']] }),
  },
  {
    id: 'intended-trade',
    apply: (w, s, d) => {
      const f = d.between(0.55, 0.8);
      return {
        ...w,
        base: w.base * f,
        perSequence: w.perSequence * f,
        frontend: w.frontend + at(s, 0.5, 3) * (w.prompt * w.perToken + 2 * w.base),
      };
    },
    told: (d) => ({ ...version(d), always: true }),
  },
];

/** Changes nobody should be misled by. */
const IDLE: readonly (readonly [string, string, string])[] = [
  ['--log-level', 'info', 'warning'],
  ['--served-model-name', 'a', 'b'],
  ['TZ', 'UTC', 'CET'],
];

/** The file of changes that would come with a case, or none. */
export function changesOf(scenarios: readonly Scenario[], d: Draw, confounded: boolean): Changes | undefined {
  const parts = scenarios.map((s) => s.told?.(d) ?? {});
  const must = parts.some((p) => p.always);
  if (!must && !d.chance(0.6)) return undefined;
  const diffs = (list: readonly (readonly [string, string, string])[]): Diff[] =>
    list.map(([name, before, after]) => ({ name, before, after }));
  const topical = (list: readonly (readonly [string, string, string])[]): FlagDiff[] =>
    diffs(list).map((x) => ({ ...x, topic: topicOf(x.name, `${x.before} ${x.after}`) }));
  const said = parts.filter((p) => p.always || d.chance(0.6));
  const idle = confounded && d.chance(0.5) ? [d.pick(IDLE)] : [];
  const step = confounded && d.chance(0.3) ? ([['vllm', '0.8.2', '0.8.3']] as const) : [];
  return {
    versions: diffs([...said.flatMap((p) => p.versions ?? []), ...step]),
    flags: topical([...said.flatMap((p) => p.flags ?? []), ...idle]),
    deployments: topical(said.flatMap((p) => p.deployments ?? [])),
    marks: said.flatMap((p) => p.marks ?? []),
  };
}

/** Small drifts of the load and a restart nobody noticed. */
export function confound(w: World, d: Draw): World {
  return {
    ...w,
    rate: w.rate * d.between(0.97, 1.03),
    prompt: Math.round(w.prompt * d.between(0.98, 1.02)),
    output: Math.round(w.output * d.between(0.98, 1.02)),
    network: w.network * d.between(0.7, 1.4),
    restarted: w.restarted || d.chance(0.25),
  };
}
