/** One measurement in virtual time: the window planned as `bench` plans it, the load kept up until its cohort is final. */
import type { Millis } from '../base/units.ts';
import { inCohort, type Window } from '../core/cohort.ts';
import type { Offer, RequestSpec, Workload } from '../core/request.ts';
import { type WindowPlan, WindowPlanner } from '../drive/window.ts';
import { type Cluster, type SimDone, type SimSummary, Simulation } from '../sim/index.ts';

export interface SimulatedLoad {
  /** A fresh workload and a fresh, idle system: the same each time. */
  readonly workload: () => Workload;
  readonly cluster: () => Cluster;
  readonly window: WindowPlan;
  /** Of every request, or of each by its own contract. */
  readonly deadline: Millis | ((spec: RequestSpec) => Millis);
}

/**
 * The window of the measurement. A fixed one is known at once; for the rest the load runs as far as it takes to know:
 * until one p95 E2E has passed, or until the last session or slot of the cohort has started. The run itself then begins
 * anew and passes through the same.
 */
export function plannedWindow(load: SimulatedLoad): Window {
  const planner = new WindowPlanner(load.window, 0);
  const settled = (w: Window | undefined): boolean => w !== undefined && !w.sessions && !(w.operations && w.estimated);
  if (settled(planner.window)) return planner.window as Window;
  let operations = 0;
  let ahead = 0;
  let now: Millis = 0;
  const offered = ({ spec, at }: Offer): void => {
    planner.offered(spec.operation, at, spec.session, spec.turn ?? 0);
    operations = Math.max(operations, spec.operation + 1);
    const counted = planner.window?.operations;
    if (counted && operations >= counted[1]) planner.lastOffered(at);
  };
  const inner = load.workload();
  const workload: Workload = {
    next: () => {
      const offer = inner.next();
      ahead = offer ? 1 : 0;
      if (offer) offered(offer);
      return offer;
    },
    ended: (operation, t, ok) => {
      const released = inner.ended(operation, t, ok);
      for (const offer of released) offered(offer);
      return released;
    },
  };
  const simulation = new Simulation(
    workload,
    load.cluster(),
    (done: SimDone) => {
      now = done.ended;
      // What the workload has made ready is not offered yet.
      planner.ended(now, done.ended - done.scheduled, operations - ahead);
      return planner.window !== undefined && (settled(planner.window) || planner.closed(now, operations));
    },
    { deadline: load.deadline },
  );
  simulation.run();
  if (!planner.window || (!settled(planner.window) && !planner.closed(now, operations))) planner.stop(now, operations);
  return planner.window as Window;
}

/** The run itself, sliceable: it stops once nothing of the cohort is open or to come. */
export function cohortSimulation(
  load: SimulatedLoad,
  window: Window,
  done: (done: SimDone) => void,
  unsent: (offer: Offer, t: Millis) => void,
): { run(pause?: () => boolean): boolean; summary(): SimSummary } {
  let open = 0;
  let more = true;
  const counts = (offer: Offer): boolean => inCohort(window, offer.spec.operation, offer.at, offer.spec.session);
  const beyond = ({ spec, at }: Offer): boolean => {
    if (window.sessions) return spec.session !== undefined ? spec.session >= window.sessions[1] : at >= window.end;
    return window.operations ? spec.operation >= window.operations[1] : at >= window.end;
  };
  const seen = (offer: Offer): void => {
    if (counts(offer)) open++;
    else if (beyond(offer)) more = false;
  };
  const inner = load.workload();
  const workload: Workload = {
    next: () => {
      const offer = inner.next();
      if (offer) seen(offer);
      return offer;
    },
    ended: (operation, t, ok) => {
      const released = inner.ended(operation, t, ok);
      for (const offer of released) seen(offer);
      return released;
    },
  };
  return new Simulation(
    workload,
    load.cluster(),
    (d) => {
      // A session's next turn is released after this call, so what the last end left is looked at first.
      if (!more && open === 0) return true;
      done(d);
      if (inCohort(window, d.spec.operation, d.scheduled, d.spec.session)) open--;
      return !more && open === 0 && d.spec.session === undefined;
    },
    {
      deadline: load.deadline,
      unsent: (offer, t) => {
        unsent(offer, t);
        if (counts(offer)) open--;
      },
    },
  );
}
