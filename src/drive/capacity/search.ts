/**
 * The search for the knee, as a procedure that yields the runs it wants and is sent what they found. It knows no clock and no
 * engine, and is a pure function of its plan and the answers: to take a stored search up again, the answers are sent again.
 *
 * 1. Almost unloaded. If the target is missed there, and four times faster too, it is infeasible at any rate.
 * 2. A geometric bracket, then bisection in log rate, one cheap run a rate: these only steer.
 * 3. Below and above the knee, groups of independent replications. The answer is the highest rate whose group passes and the
 *    lowest whose group fails. A group that decides nothing moves outward. The error allowed is spent over the groups.
 */

import { keyed } from '../../base/random.ts';
import type { PerSecond } from '../../base/units.ts';
import { studentQuantile } from '../../stats/normal.ts';
import { quantile } from '../../stats/quantile.ts';
import { confirmPoint, steerPoint } from './assess.ts';
import { type Knee, kneeOf } from './knee.ts';
import { conclude, type Known } from './outcome.ts';
import type { CapacityOutcome, CurvePoint, Probe, ProbeMeasure, ProbeRequest, ProbeRole, SearchPlan } from './types.ts';

/** Sent instead of a measure: no more runs, say what is known. */
export const STOP = Symbol('stop');
export type Stop = typeof STOP;

export type Search = Generator<ProbeRequest, CapacityOutcome, ProbeMeasure | Stop>;

/** Shares of the error, group by group; whatever is left over is not spent. */
const ERROR_SHARES = [0.3, 0.3, 0.14, 0.1, 0.08, 0.05, 0.03] as const;

/** Mean requests in flight up to which a server counts as almost unloaded. */
const UNLOADED_IN_FLIGHT = 0.5;

/** Standard errors by which a group is placed beyond its critical value, so that it is likely to decide. */
const POWER = 1;
/** Neither confirmed end is placed further from the knee than this at first (log rate). */
const WIDEST = Math.log(1.055);

/** Log rate within which runs say how long another will take to settle, and how few say nothing. */
const NEAR = Math.log(1.2);
const FEWEST_PROPOSALS = 3;

const FIRST = { low: 'to confirm the last rate that passes', high: 'to confirm the first rate that fails' } as const;
const AGAIN = {
  low: 'a lower rate that may be shown to pass',
  high: 'a higher rate that may be shown to fail',
} as const;

class Stopped extends Error {}
/** The client cannot offer this rate: seen twice. */
class ClientBound extends Error {
  readonly rate: PerSecond;
  constructor(rate: PerSecond) {
    super('client-bound');
    this.rate = rate;
  }
}

export function* capacitySearch(plan: SearchPlan): Search {
  const s = new Searching(plan);
  try {
    return yield* s.run();
  } catch (error) {
    // With both ends confirmed only a narrower interval was still looked for.
    if (error instanceof Stopped) return conclude(plan, s.known, s.isConfirmed ? 'found' : 'interrupted');
    if (error instanceof ClientBound) return conclude(plan, { ...s.known, ceiling: error.rate }, 'client-bound');
    throw error;
  }
}

/** The next run a search wants after these, or its outcome. @param stop conclude instead of asking. */
export function nextStep(
  plan: SearchPlan,
  done: readonly ProbeMeasure[],
  stop = false,
): { readonly ask: ProbeRequest } | { readonly outcome: CapacityOutcome } {
  const search = capacitySearch(plan);
  let step = search.next(STOP);
  for (const measure of done) {
    if (step.done) break;
    step = search.next(measure);
  }
  if (!step.done && stop) step = search.next(STOP);
  return step.done ? { outcome: step.value } : { ask: step.value };
}

interface Bracket {
  low: PerSecond | null;
  high: PerSecond | null;
}

class Searching {
  readonly plan: SearchPlan;
  readonly known: Known & { points: CurvePoint[]; bracket: Bracket; infeasible: CurvePoint[] };
  #runs = 0;
  #group = 0;
  /** Steering and confirming points, for the fit and the next warm-up. */
  readonly #probes: Probe[] = [];

  constructor(plan: SearchPlan) {
    this.plan = plan;
    this.known = {
      points: [],
      bracket: { low: null, high: null },
      infeasible: [],
      low: null,
      high: null,
      runs: 0,
      ceiling: null,
    };
  }

  *run(): Search {
    const { plan, known } = this;
    if (!(yield* this.unloaded())) return conclude(plan, known, 'infeasible');
    let ceiling: PerSecond | undefined;
    try {
      if (!(yield* this.bracket())) ceiling = plan.maxRate;
      else yield* this.bisect();
    } catch (error) {
      // What the client cannot offer bounds the search: below it there may still be a rate to confirm.
      if (!(error instanceof ClientBound)) throw error;
      known.ceiling = error.rate;
      ceiling = error.rate;
    }
    if (ceiling !== undefined) {
      yield* this.confirm(known.bracket.low as number, 'the highest rate that could be offered and seemed to pass');
      return conclude(plan, known, known.ceiling !== null ? 'client-bound' : 'above-range');
    }
    yield* this.confirmBoth();
    return conclude(plan, known, this.isConfirmed ? 'found' : 'undecided');
  }

  // ---- 1. almost unloaded ----

  *unloaded(): Generator<ProbeRequest, boolean, ProbeMeasure | Stop> {
    const { plan, known } = this;
    let rate = plan.unloadedRate;
    let point = yield* this.ask(
      rate,
      plan.unloadedRequests,
      'unloaded',
      'almost unloaded: can the contract be met at all?',
    );
    for (let tries = 0; tries < 4; tries++) {
      const inFlight = (rate * this.#each * this.last().e2eP50) / 1000;
      if (point.verdict === 'pass' || inFlight <= UNLOADED_IN_FLIGHT) break;
      rate = Math.min(rate / 4, (0.5 * UNLOADED_IN_FLIGHT * 1000) / Math.max(1, this.#each * this.last().e2eP50));
      point = yield* this.ask(
        rate,
        plan.unloadedRequests,
        'unloaded',
        `the last rate held about ${inFlight.toFixed(1)} requests in flight, which is not unloaded`,
      );
    }
    if (point.verdict !== 'pass' && point.high >= plan.target) {
      point = yield* this.ask(
        rate,
        3 * plan.unloadedRequests,
        'unloaded',
        'again with other seeds: so few requests showed nothing',
      );
    }
    if (point.verdict === 'pass') {
      known.bracket.low = rate;
      return true;
    }
    known.infeasible.push(point);
    const faster = yield* this.ask(
      4 * rate,
      3 * plan.unloadedRequests,
      'unloaded',
      'the target is missed unloaded; four times faster, in case attainment rises with rate (cold caches, idle clocks)',
    );
    if (faster.verdict !== 'pass') {
      known.infeasible.push(faster);
      return false;
    }
    known.bracket.low = 4 * rate;
    return true;
  }

  // ---- 2. bracket and bisection ----

  *bracket(): Generator<ProbeRequest, boolean, ProbeMeasure | Stop> {
    const { plan } = this;
    const { bracket } = this.known;
    const start = bracket.low as number;
    const calm = Math.max(1, this.last().e2eP50);
    let rate = plan.guess !== undefined && plan.guess > 1.5 * start ? plan.guess : this.#faster(start, calm);
    let why =
      plan.guess === rate ? 'where the model of the hardware expects the knee' : 'looking for a rate that fails';
    for (;;) {
      rate = Math.min(rate, plan.maxRate);
      const point = yield* this.steer(rate, why);
      if (point.verdict === 'pass') bracket.low = rate;
      else {
        bracket.high = rate;
        break;
      }
      if (rate >= plan.maxRate) return false;
      rate = this.#faster(rate, calm);
      why = 'the last rate seemed to pass';
    }
    // From a guess that fails, down again in halves, not all the way.
    while (bracket.low === start && (bracket.high as number) / start > 4) {
      rate = (bracket.high as number) / 2;
      const point = yield* this.steer(rate, 'the last rate seemed to fail');
      if (point.verdict === 'pass') bracket.low = rate;
      else bracket.high = rate;
    }
    return true;
  }

  /** Four times while answers take no longer than unloaded; else they feel each other, and the knee may be near. */
  #faster(rate: PerSecond, calm: number): PerSecond {
    return rate * (this.last().e2eP50 > 1.25 * calm ? 1.5 : this.last().e2eP50 > 1.08 * calm ? 2 : 4);
  }

  *bisect(): Generator<ProbeRequest, void, ProbeMeasure | Stop> {
    const { bracket } = this.known;
    for (;;) {
      const low = bracket.low as number;
      const high = bracket.high as number;
      if (high / low <= 1 + this.plan.resolution) return;
      const rate = Math.sqrt(low * high);
      const point = yield* this.steer(rate, `halving ${text(low)} to ${text(high)}`);
      if (point.verdict === 'pass') bracket.low = rate;
      else bracket.high = rate;
    }
  }

  // ---- 3. replications ----

  *confirmBoth(): Generator<ProbeRequest, void, ProbeMeasure | Stop> {
    const { known, plan } = this;
    const tries = { low: 0, high: 0 };
    while (this.#group < Math.min(plan.groups, ERROR_SHARES.length)) {
      const { low, high } = known;
      const side = low === null ? 'low' : high === null ? 'high' : undefined;
      if (!side) return yield* this.narrow();
      const why = tries[side]++ > 0 ? AGAIN[side] : FIRST[side];
      const point = yield* this.confirm(this.#candidate(side, tries[side] > 1), why);
      yield* this.#mend(point);
    }
  }

  /** Both ends are confirmed, but wide: a group or two nearer the knee, where it is likely to decide. */
  *narrow(): Generator<ProbeRequest, void, ProbeMeasure | Stop> {
    const { known, plan } = this;
    const given = { low: false, high: false };
    for (let i = 0; i < 2 && this.#group < Math.min(plan.groups, ERROR_SHARES.length); i++) {
      const [low, high] = [known.low as number, known.high as number];
      if (high <= low || high / low <= (1 + plan.resolution) ** 2) return;
      const knee = this.knee().rate;
      const sides = knee / low > high / knee ? (['low', 'high'] as const) : (['high', 'low'] as const);
      const side = sides.find((s) => !given[s]);
      if (!side) return;
      const rate = this.#candidate(side, false);
      given[side] = true;
      // Less than a quarter of the resolution gained is not worth a group.
      if (side === 'low' ? rate < low * (1 + plan.resolution / 4) : rate > high / (1 + plan.resolution / 4)) continue;
      if (rate <= low || rate >= high) continue;
      yield* this.confirm(rate, `to narrow ${text(low)} to ${text(high)}`);
    }
  }

  /** A group that contradicts the steering: the bracket is looked for again from there. */
  *#mend(point: CurvePoint): Generator<ProbeRequest, void, ProbeMeasure | Stop> {
    const { bracket } = this.known;
    if (point.verdict === 'pass' && point.rate >= (bracket.high as number)) {
      let rate = point.rate;
      for (;;) {
        bracket.low = rate;
        if (rate >= this.plan.maxRate) return;
        rate = Math.min(this.plan.maxRate, rate * 1.5);
        bracket.high = rate;
        if (
          (yield* this.steer(rate, 'replications passed where one run had seemed to fail: further up')).verdict !==
          'pass'
        )
          break;
      }
      yield* this.bisect();
    } else if (point.verdict === 'fail' && point.rate <= (bracket.low as number)) {
      let rate = point.rate;
      for (let i = 0; i < 20; i++) {
        bracket.high = rate;
        rate /= 1.5;
        bracket.low = rate;
        if (
          (yield* this.steer(rate, 'replications failed where one run had seemed to pass: further down')).verdict ===
          'pass'
        )
          break;
      }
      yield* this.bisect();
    }
  }

  /** Where the next group is likely to decide, on that side of the knee. */
  #candidate(side: 'low' | 'high', again: boolean): PerSecond {
    const { plan, known } = this;
    const knee = this.knee();
    const { target } = plan;
    const error = (1 - plan.confidence) * ERROR_SHARES[this.#group]!;
    const worth = this.#worth(knee) * plan.replications;
    const critical = -studentQuantile(error, plan.replications - 1) + POWER;
    const step = critical / Math.sqrt(target * (1 - target) * worth) / knee.slope;
    const half = Math.log(1 + plan.resolution) / 2;
    const away = Math.min(again ? 2 * WIDEST : WIDEST, Math.max(half, step));
    const rate = knee.rate * Math.exp(side === 'low' ? -away : away);
    // Outward of every group that decided otherwise, or nothing.
    const groups = known.points.filter((p) => p.role === 'confirm' && p.replications > 1);
    if (side === 'low') {
      const above = groups.filter((p) => p.verdict === 'fail' || p.verdict === 'undecided');
      return Math.min(rate, ...above.map((p) => p.rate * Math.exp(-half)));
    }
    const below = groups.filter((p) => p.verdict === 'pass' || p.verdict === 'undecided');
    return Math.max(rate, ...below.map((p) => p.rate * Math.exp(half)));
  }

  knee(): Knee {
    const { bracket, points } = this.known;
    const [low, high] = [bracket.low as number, bracket.high as number];
    const near = points.filter((p) => p.verdict !== 'void' && p.rate > low / 1.6 && p.rate < high * 1.6);
    return kneeOf(
      near.map((p) => ({
        rate: p.rate,
        attainment: p.unstable ? Math.min(p.attainment, 0.5) : p.attainment,
        weight: p.effectiveN,
      })),
      this.plan.target,
      [low / 1.15, high * 1.15],
    );
  }

  /** Operations over which neighbours are alike near the knee: the longest seen there. */
  #alike(): number {
    const { low, high } = this.known.bracket;
    let most = 1;
    for (const { request, measure: m } of this.#probes) {
      if (request.rate < (low as number) / 1.3 || request.rate > (high as number) * 1.02) continue;
      if (m.effectiveN > 0) most = Math.max(most, m.offered / m.effectiveN);
    }
    for (const p of this.known.points) {
      if (p.role !== 'confirm' || p.replications < 2 || p.attainment < 0.5 || p.attainment > 0.98) continue;
      most = Math.max(most, p.offered / p.effectiveN);
    }
    return most;
  }

  /** Cohort of a replication: as planned, or longer where that would show too little. */
  #cohort(knee: Knee): number {
    const { plan } = this;
    const { target } = plan;
    const error = (1 - plan.confidence) * ERROR_SHARES[0];
    const critical = -studentQuantile(error, plan.replications - 1) + POWER;
    const wanted = (critical / (knee.slope * (WIDEST * 0.75))) ** 2 / (target * (1 - target));
    const n = (wanted * this.#alike()) / plan.replications;
    return Math.round(Math.min(plan.stretch, Math.max(1, n / plan.confirmRequests)) * plan.confirmRequests);
  }

  #worth(knee: Knee): number {
    return Math.max(1, this.#cohort(knee) / this.#alike());
  }

  *confirm(rate: PerSecond, why: string): Generator<ProbeRequest, CurvePoint, ProbeMeasure | Stop> {
    const { plan, known } = this;
    const group = this.#group++;
    const requests = known.bracket.high === null ? plan.confirmRequests : this.#cohort(this.knee());
    const alike = known.bracket.high === null ? 1 : this.#alike();
    const warmup = Math.min(requests, Math.max(this.#warmup(rate), Math.ceil(3 * alike)));
    const error = (1 - plan.confidence) * (ERROR_SHARES[group] ?? 0.01);
    const probes: Probe[] = [];
    for (let i = 1; i <= plan.replications; i++) {
      probes.push(
        yield* this.probe({
          rate,
          requests,
          warmup,
          role: 'confirm',
          why: `${why}, replication ${i} of ${plan.replications}`,
          replication: { index: i, of: plan.replications, group },
        }),
      );
    }
    const point = { ...confirmPoint(probes, plan.target, error), why };
    known.points.push(point);
    if (point.verdict === 'pass') known.low = Math.max(rate, known.low ?? 0);
    if (point.verdict === 'fail') known.high = Math.min(rate, known.high ?? Number.POSITIVE_INFINITY);
    return point;
  }

  /** Some rate was confirmed to pass and some to fail. */
  get isConfirmed(): boolean {
    return this.known.low !== null && this.known.high !== null;
  }

  // ---- runs ----

  last(): ProbeMeasure {
    return this.#probes.at(-1)!.measure;
  }

  steer(rate: PerSecond, why: string): Generator<ProbeRequest, CurvePoint, ProbeMeasure | Stop> {
    return this.ask(rate, this.plan.steerRequests, 'steer', why);
  }

  *ask(
    rate: PerSecond,
    requests: number,
    role: ProbeRole,
    why: string,
  ): Generator<ProbeRequest, CurvePoint, ProbeMeasure | Stop> {
    const warmup = role === 'unloaded' ? Math.min(3, this.plan.warmup) : this.#warmup(rate);
    const probe = yield* this.probe({ rate, requests, warmup, role, why });
    const point = steerPoint(probe, this.plan.target);
    this.known.points.push(point);
    return point;
  }

  /** A run, once again when the client was the bottleneck. */
  *probe(request: Omit<ProbeRequest, 'seed'>): Generator<ProbeRequest, Probe, ProbeMeasure | Stop> {
    for (let attempt = 0; ; attempt++) {
      const asked: ProbeRequest = {
        ...request,
        seed: this.#seed(),
        ...(attempt > 0 && { why: `again, since the client was the bottleneck: ${request.why}` }),
      };
      const measure = yield asked;
      if (measure === STOP) throw new Stopped();
      this.known.runs++;
      const probe = { request: asked, measure };
      if (measure.clientBound.length === 0) {
        this.#probes.push(probe);
        return probe;
      }
      this.known.points.push(steerPoint(probe, this.plan.target));
      if (attempt > 0) throw new ClientBound(request.rate);
    }
  }

  /**
   * Offers before a cohort: at least the plan's, two p95 E2E by the slowest run up to that rate, and as many as MSER-5 would
   * have left out of runs at about that rate. One run's proposal is often the luck of a busy spell, so their median is taken.
   */
  #warmup(rate: PerSecond): number {
    let p95 = 0;
    const proposals: number[] = [];
    for (const { request, measure } of this.#probes) {
      if (request.rate <= rate * 1.02) p95 = Math.max(p95, measure.e2eP95);
      const near = Math.abs(Math.log(request.rate / rate)) < NEAR;
      if (near && typeof measure.settling === 'number') proposals.push(measure.settling);
    }
    const proposed =
      proposals.length < FEWEST_PROPOSALS
        ? 0
        : (quantile(
            proposals.sort((a, b) => a - b),
            0.5,
          ) as number);
    // Sessions are all there when one could have come and gone twice.
    const stay = p95 * this.#each + (this.plan.arrival?.pauses ?? 0);
    return Math.max(this.plan.warmup, Math.ceil((2 * stay * rate) / 1000), Math.ceil(proposed / this.#each));
  }

  /** Mean operations of an arrival. */
  get #each(): number {
    return this.plan.arrival?.operations ?? 1;
  }

  #seed(): number {
    return Math.floor(keyed(this.plan.seed, 'capacity-probe', this.#runs++)() * 2 ** 48);
  }
}

const text = (rate: number): string => `${Number(rate.toPrecision(4))}/s`;
