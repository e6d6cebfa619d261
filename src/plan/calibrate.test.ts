import { describe, expect, it } from 'vitest';
import { keyed } from '../base/random.ts';
import type { RequestRecord } from '../core/record.ts';
import type { DecodePiece, StepBatch, StepModel } from '../model/step.ts';
import { ContinuousReplica, FrontendCluster, limitsOf, recordOf, simulate } from '../sim/index.ts';
import { openLoop, REQUEST_DEFAULTS } from '../workload/index.ts';
import { type CalibrationRun, calibrate } from './calibrate.ts';
import { DESIGN_DEFAULTS, DesignWorkload } from './design.ts';
import { parseProfile, profileText } from './profile.ts';
import { ProfileStepModel } from './profile-step.ts';
import { ReceiptReader } from './receipts.ts';
import { replay } from './replay.ts';
import { SeenReader, slowedByPrompts } from './seen.ts';

/** An engine whose coefficients are known, each step off by a few percent. */
const TRUTH = { step: 6, sequence: 0.03, kv: 0.02, prefill_step: 1, prefill_token: 25, prefill_square: 1.5, entry: 4 };

class KnownStep implements StepModel {
  readonly label = 'known';
  readonly #noise: () => number;
  constructor(seed: number, sd = 0.03) {
    const u = keyed(seed, 'step-noise');
    this.#noise = () => 1 + sd * (u() + u() + u() - 1.5) * 2;
  }
  #exact(b: Pick<StepBatch, 'decodeSequences' | 'decodeKv' | 'prefillTokens' | 'prefillSquares'>): number {
    return (
      TRUTH.step +
      TRUTH.sequence * b.decodeSequences +
      (TRUTH.kv * b.decodeKv) / 1000 +
      (b.prefillTokens > 0 ? TRUTH.prefill_step : 0) +
      (TRUTH.prefill_token * b.prefillTokens) / 1000 +
      (TRUTH.prefill_square * b.prefillSquares) / 1e6
    );
  }
  stepMs(b: StepBatch): number {
    return this.#exact(b) * this.#noise();
  }
  decode(sequences: number, kv: number, into: DecodePiece): void {
    into.ms =
      this.#exact({ decodeSequences: sequences, decodeKv: kv, prefillTokens: 0, prefillSquares: 0 }) * this.#noise();
    into.slope = 0;
    into.untilKv = kv; // one step at a time, each with its own noise
  }
}

function cluster(seed: number, maxSeqs = 64) {
  const limits = limitsOf({ kvBlocks: 100_000, maxSeqs, prefixCaching: false });
  return new FrontendCluster(new ContinuousReplica(new KnownStep(seed), limits), TRUTH.entry);
}

function runOf(name: string, records: readonly RequestRecord[]): CalibrationRun {
  const reader = new ReceiptReader();
  for (const r of records) reader.add(r);
  return { name, receipts: reader.finish(), target: { model: 'known' } };
}

/** A run as it would be imported: no stamp a token, so that only whole requests can be held against a simulation. */
function coarse(name: string, records: readonly RequestRecord[]): CalibrationRun {
  const whole = new SeenReader();
  const reader = new ReceiptReader();
  for (const r of records) {
    const { length } = r.timeline;
    const { sent: _, ...stamps } = r.stamps;
    const ends = { length: 2, at: r.timeline.at.filter((__, i) => i === 0 || i === length - 1) };
    const timeline = { ...r.timeline, ...ends, tokens: new Int32Array(2).fill(-1) };
    const usage = { input: r.asked.input, output: length };
    const seen = { ...r, stamps, timeline, usage } as RequestRecord;
    whole.add(seen);
    reader.add(seen);
  }
  return { name, receipts: reader.finish(), seen: whole.finish(), target: { model: 'imported' } };
}

function designed(seed: number, maxSeqs?: number): RequestRecord[] {
  const records: RequestRecord[] = [];
  const plan = { ...DESIGN_DEFAULTS, until: 1e9 };
  simulate(
    new DesignWorkload(plan, () => undefined),
    cluster(seed, maxSeqs),
    (done) => records.push(recordOf(done)) < 0,
  );
  return records;
}

function traffic(seed: number, rate: number, input = REQUEST_DEFAULTS.input): RequestRecord[] {
  const records: RequestRecord[] = [];
  simulate(
    openLoop({ ...REQUEST_DEFAULTS, input, prompt: 'none' }, { process: 'poisson', rate }, seed),
    cluster(seed),
    (done) => records.push(recordOf(done)) < 0,
    { until: 60_000 },
  );
  return records;
}

describe('calibrate', () => {
  it('recovers the coefficients of a designed measurement', () => {
    const { profile, fit } = calibrate([runOf('a', designed(1))], { name: 'a', budget: 8192 });
    expect(profile.form).toBe('sum');
    expect(fit.unseparated).toEqual([]);
    for (const name of ['step', 'kv', 'prefill_token', 'entry', 'sequence'] as const) {
      expect(Math.abs(profile.coefficients[name]!.value / TRUTH[name] - 1), name).toBeLessThan(0.05);
    }
    expect(fit.heldOut.decode).toBeLessThan(0.03);
  });

  it('finds a batch limit that the held batches met, and none where none was met', () => {
    const limitOf = (maxSeqs: number) =>
      calibrate([runOf('a', designed(3, maxSeqs))], { name: 'a', budget: 8192 }).profile.limits;
    for (const maxSeqs of [20, 31])
      expect(limitOf(maxSeqs)).toMatchObject({ max_seqs: maxSeqs, max_seqs_from: 'seen' });
    for (const maxSeqs of [32, 64])
      expect(limitOf(maxSeqs)).toMatchObject({ max_seqs: null, max_seqs_from: 'default' });
  });

  it('covers the truth with its intervals over many seeds', () => {
    const inside: Record<string, number> = {};
    const seeds = 12;
    for (let seed = 1; seed <= seeds; seed++) {
      const { profile } = calibrate([runOf('a', designed(seed))], { name: 'a', budget: 8192 });
      for (const [name, e] of Object.entries(profile.coefficients)) {
        const truth = TRUTH[name as keyof typeof TRUTH];
        if (truth >= e.low && truth <= e.high) inside[name] = (inside[name] ?? 0) + 1;
      }
    }
    // 95 % intervals: 9 of 12 or fewer has a chance of 2 % each; bench/plan counts over many more.
    for (const name of Object.keys(TRUTH)) expect(inside[name] ?? 0, name).toBeGreaterThanOrEqual(9);
  });

  it('predicts fresh traffic by simulation', () => {
    const { profile } = calibrate([runOf('a', designed(2))], { name: 'a', budget: 8192 });
    const step = new ProfileStepModel(profile);
    const limits = limitsOf({ kvBlocks: 100_000, maxSeqs: 64, prefixCaching: false });
    const mean = (records: readonly RequestRecord[]) =>
      records.reduce((sum, r) => sum + r.stamps.ended! - r.stamps.scheduled, 0) / records.length;
    const simulated: RequestRecord[] = [];
    simulate(
      openLoop({ ...REQUEST_DEFAULTS, prompt: 'none' }, { process: 'poisson', rate: 10 }, 77),
      new FrontendCluster(new ContinuousReplica(step, limits), step.frontendMs),
      (done) => simulated.push(recordOf(done)) < 0,
      { until: 60_000 },
    );
    expect(Math.abs(mean(simulated) / mean(traffic(77, 10)) - 1)).toBeLessThan(0.02);
    expect(step.beyond()).toEqual([]);
  });

  it('refuses to separate what ordinary traffic of equal lengths leaves together, and says so', () => {
    const { fit, profile } = calibrate([runOf('a', traffic(3, 20))], { name: 'a', budget: 8192 });
    expect(fit.unseparated.join('\n')).toMatch(/not separated from/);
    expect(profile.fit.held_out.decode).toBeLessThan(0.05);
  });

  it('holds out a whole run when there are two', () => {
    const { profile } = calibrate([runOf('a', designed(4)), runOf('b', designed(5))], { name: 'a', budget: 8192 });
    expect(profile.fit.held_out_run?.decode).toBeLessThan(0.03);
  });

  it('refuses two replicas behind one address', () => {
    const one = traffic(6, 15);
    const two = traffic(7, 15).map((r) => ({ ...r, operation: r.operation + 1e6 }));
    expect(() => calibrate([runOf('both', [...one, ...two])], { name: 'a', budget: 8192 })).toThrow(
      /do not go in step: several replicas/,
    );
  });

  it('refuses answers without a stamp a token', () => {
    const coarse = traffic(8, 5).map((r) => ({
      ...r,
      timeline: { ...r.timeline, tokens: r.timeline.tokens.map(() => 4) },
    }));
    expect(() => calibrate([runOf('x', coarse)], { name: 'a', budget: 8192 })).toThrow(/one token a chunk/);
  });

  it('fits logs without chunk stamps by simulating the same arrivals, and predicts other traffic', () => {
    const lengths = { kind: 'uniform', low: 32, high: 1500 } as const;
    const run = coarse('log', traffic(11, 14, lengths).slice(0, 500));
    expect(run.receipts.streams).toEqual([]);
    const { profile, fit } = calibrate([run], { name: 'a', budget: 8192 });
    expect(profile.fit.method).toBe('requests');
    expect(profile.remarks.join()).toMatch(/single steps could not be seen/);
    expect(fit.condition).toBeLessThan(60);
    expect(profile.fit.held_out.decode).toBeLessThan(0.06);
    const { replayed } = profile.fit;
    expect(Math.abs((replayed?.e2e.simulated as number) / (replayed?.e2e.measured as number) - 1)).toBeLessThan(0.03);
    const step = new ProfileStepModel(profile);
    const other = traffic(12, 7, lengths);
    const simulated: RequestRecord[] = [];
    simulate(
      replay(other),
      new FrontendCluster(
        new ContinuousReplica(step, limitsOf({ kvBlocks: 100_000, maxSeqs: 64, prefixCaching: false })),
        step.frontendMs,
      ),
      (done) => simulated.push(recordOf(done)) < 0,
    );
    const mean = (records: readonly RequestRecord[], of: 'firstOutput' | 'ended') =>
      records.reduce((sum, r) => sum + r.stamps[of]! - r.stamps.scheduled, 0) / records.length;
    for (const of of ['firstOutput', 'ended'] as const)
      expect(Math.abs(mean(simulated, of) / mean(other, of) - 1), of).toBeLessThan(0.08);
  });

  it('refuses imported results without start times', () => {
    const run = coarse('log', traffic(14, 14).slice(0, 40));
    const seen = run.seen?.map((s) => ({ ...s, sent: 0 })) ?? [];
    const imported = { ...run, seen, target: { kind: 'imported' } };
    expect(() => calibrate([imported], { name: 'a', budget: 8192 })).toThrow(
      /log: its 40 requests all begin at one instant/,
    );
  });

  it('gives up, for whole requests of equal lengths, what they cannot tell apart', () => {
    const run = coarse('log', traffic(13, 14).slice(0, 200));
    const { fit } = calibrate([run], { name: 'a', budget: 8192 });
    expect(fit.unseparated.join()).toMatch(/prefill_square .* is not separated from/);
    expect(fit.coefficients.prefill_square).toBeUndefined();
  });

  it('tells streams out of step in one engine from several replicas by whom a long prompt slows', () => {
    const even = (from: number, gap: number, n: number, sent = from): { sent: number; at: Float64Array } => ({
      sent,
      at: Float64Array.from({ length: n }, (_, i) => from + i * gap),
    });
    const stream = (s: { sent: number; at: Float64Array }) => ({ ...s, input: 10, cached: 0 });
    const prompts = Array.from({ length: 12 }, (_, i) => even(1000 * i + 700, 10, 2, 1000 * i + 300));
    const apart = [even(0, 10, 1400), ...prompts].map(stream);
    expect(slowedByPrompts(apart)).toEqual({ share: 0, pairs: 12 });
    const inside = (t: number): boolean => t % 1000 > 300 && t % 1000 <= 700;
    const held = { sent: 0, at: Float64Array.from(even(0, 10, 1400).at.filter((t) => !inside(t))) };
    expect(slowedByPrompts([held, ...prompts].map(stream))).toEqual({ share: 1, pairs: 12 });
  });

  it('writes a profile that reads back, and says when it is used beyond its range', () => {
    const { profile } = calibrate([runOf('a', designed(9))], { name: 'a', budget: 8192 });
    expect(parseProfile(profileText(profile), 'p.yaml')).toEqual(profile);
    const step = new ProfileStepModel(profile);
    step.decode(16, 16 * 500, { ms: 0, slope: 0, untilKv: 0 });
    expect(step.beyond()).toEqual([]);
    step.decode(200, 200 * 9000, { ms: 0, slope: 0, untilKv: 0 });
    expect(step.beyond().join()).toMatch(/batches of 200 sequences, where 3\d was/);
    expect(step.beyond().join()).toMatch(/contexts of 9000 tokens/);
  });

  it('refuses foreign files in one line', () => {
    expect(() => parseProfile('a: [', 'p.yaml')).toThrow(/is not YAML/);
    expect(() => parseProfile('a: 1', 'p.yaml')).toThrow(/schema is missing/);
    expect(() => parseProfile('schema: goodput.profile/1\nname: x', 'p.yaml')).toThrow(/p\.yaml: target/);
  });
});
