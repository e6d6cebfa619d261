/** Runs the searches it is sent the seeds of. */
import { parentPort, workerData } from 'node:worker_threads';
import { load } from './dist.mjs';
import { REGIMES } from './regimes.mjs';

const { runSearch } = await load('drive/capacity/index.js');
const { probeOf } = await load('plan/probe.js');
const { simulatedPlan } = await load('cli/capacity-plan.js');

const { target } = REGIMES[workerData.name];

parentPort.on('message', async (seed) => {
  if (seed === null) {
    parentPort.close();
    return;
  }
  // No guess: nothing is known of where the knee lies.
  const plan = { ...simulatedPlan(target.contract.attainment, seed), unloadedRate: 1 };
  const outcome = await runSearch(plan, { run: (request) => probeOf(target, request) });
  const groups = outcome.points.filter((p) => p.role === 'confirm');
  // A grid of the same resolution, each rate with the replications a group had here, warm-up aside on both sides.
  const each =
    groups.length > 0
      ? groups.reduce((n, p) => n + p.offered, 0) / groups.length
      : plan.replications * plan.confirmRequests;
  const grid = (factor) => (Math.ceil(Math.log(factor) / Math.log(1 + plan.resolution)) + 1) * each;
  parentPort.postMessage({
    seed,
    end: outcome.end,
    low: outcome.low,
    high: outcome.high,
    offered: outcome.offered,
    runs: outcome.runs,
    groups: groups.map((p) => [p.rate, p.verdict, p.attainment, p.low, p.high, p.offered, p.unstable]),
    cost: outcome.offered / grid(4),
    costOctave: outcome.offered / grid(2),
  });
});
parentPort.postMessage('ready');
