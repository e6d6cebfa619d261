/** A search on a live server: each run a folder of its own, the server idle and its cache as asked before the next. */
import { mkdirSync } from 'node:fs';
import { InputError, MeasurementError, oneLine } from '../base/errors.ts';
import { formatDuration, type Millis, parseDuration } from '../base/units.ts';
import { runSearch, runTime } from '../drive/capacity/index.ts';
import type { Probe, ProbeRequest } from '../drive/capacity/types.ts';
import type { Drive } from '../drive/index.ts';
import { makeFolder } from '../store/folder.ts';
import { guessOfServer } from './capacity-guess.ts';
import { drained, liveProbe, loneRequest, probeLine } from './capacity-live.ts';
import { arrivalOf, livePlan, planned } from './capacity-plan.ts';
import { showLine } from './capacity-progress.ts';
import { atRate, type CapacityTask, type FoundCapacity, hasSessionsIn, keeper, loadText } from './capacity-task.ts';
import { announce, tell } from './capacity-tell.ts';
import type { Cli } from './cli.ts';
import { hostClock } from './host.ts';
import { interruption } from './interruption.ts';
import { workloadOf } from './load-plan.ts';
import { warmPrefixes, written } from './prompts-for.ts';
import { openTarget } from './target.ts';

/** Time a search on a live server may take, unsaid. */
const LIVE_BUDGET: Millis = 60 * 60_000;

export async function searchServer(cli: Cli, url: string | undefined, task: CapacityTask): Promise<FoundCapacity> {
  const { flags, contract, stored } = task;
  const budget = flags.budget === undefined ? LIVE_BUDGET : parseDuration(flags.budget, '--budget');
  const host = hostClock();
  const say = (line: string): void => cli.stderr.line(line);
  const target = await openTarget(cli, url, flags, host.clock);
  const interrupted = interruption(cli);
  try {
    if (!target.local && !flags.yes && stored === undefined) {
      throw new InputError(
        `this loads ${target.name} beyond what it can serve, for up to ${formatDuration(budget)}; add --yes to do it`,
      );
    }
    const load = await written(flags, task.load, target, say);
    const problem = await target.warm(16);
    if (problem) say(`          not all connections could be opened beforehand: ${problem}`);
    const seed = stored?.plan.seed ?? flags.seed ?? 1;
    const alone = {
      target,
      contract,
      host,
      workload: (rate: number, seed: number) => workloadOf(atRate(load, rate), seed),
    };
    const calm = await calmOf(alone, seed);
    const arrival = arrivalOf(load);
    const plan =
      stored?.plan ??
      planned(
        {
          ...livePlan(contract.attainment, seed, calm.e2e, arrival.arrival?.operations),
          ...arrival,
          ...(await guessOfServer(flags, target.model, load, contract, say)),
        },
        flags,
      );
    announce(cli, target.text, plan, budget);

    const folder = flags.resume ?? makeFolder(flags.out ?? 'runs', flags.name ?? 'capacity', host.epochWall);
    const runs = `${folder}/probes`;
    mkdirSync(runs, { recursive: true });
    const about = { target: target.text, load: loadText(load, seed) };
    const keep = keeper(folder, task, plan, { url: url ?? null, simulated: false, name: target.name }, about);
    const kept: (Probe & { run?: string })[] = [...(stored?.probes ?? [])];
    keep(kept);
    const began = host.clock.now();
    let current: ProbeRequest | undefined;
    const probes = {
      ...alone,
      folder: runs,
      sessions: hasSessionsIn(load),
      ...(load.contracts && { contracts: load.contracts }),
      ...(flags.maxInFlight !== undefined && { maxInFlight: flags.maxInFlight }),
      about: (rate: number) => ({ arrivals: { ...load.arrivals, rate }, requests: task.load.requests }),
      began: (running: Drive) => {
        const display = showLine(cli.stderr, () => probeLine(current as ProbeRequest, running.progress()));
        const release = interrupted.onto(() => running.abort());
        return () => {
          display();
          release();
        };
      },
    };
    const outcome = await runSearch(
      plan,
      {
        run: async (request) => {
          current = request;
          if (kept.length > 0 && !(await drained(probes, calm.ttft, request.seed % 1_000_000))) {
            say('          the server has not come to rest a minute after the last run; going on all the same');
          }
          if (load.cache === 'warm') {
            const { sent, failed } = await warmPrefixes(load, request.seed, target);
            if (failed > 0) say(`          ${failed} of ${sent} shared prefixes could not be sent beforehand`);
          }
          const { measure, run } = await liveProbe(probes, request);
          if (measure === undefined) return undefined;
          tell(cli, request, measure);
          kept.push({ request, measure, run: run.slice(folder.length + 1) });
          keep(kept);
          return measure;
        },
        enough: (next, done) => {
          if (interrupted.now()) return true;
          const last = done.at(-1)?.measure.e2eP95 ?? calm.e2e;
          const over = host.clock.now() - began + runTime(next, last) > budget;
          if (over) say(`          the budget of ${formatDuration(budget)} leaves no time for the next run`);
          return over;
        },
      },
      stored?.probes ?? [],
    );
    return { outcome, folder, about };
  } finally {
    interrupted.forget();
    await target.close();
  }
}

/** The middle of three lone requests: what the server does when nothing else is there. */
async function calmOf(
  alone: Parameters<typeof loneRequest>[0],
  seed: number,
): Promise<{ readonly ttft: Millis; readonly e2e: Millis }> {
  const three = [
    await loneRequest(alone, seed + 11),
    await loneRequest(alone, seed + 12),
    await loneRequest(alone, seed + 13),
  ];
  const ok = three.filter((r) => r.ttft !== undefined).sort((a, b) => a.e2e - b.e2e);
  const middle = ok[Math.floor(ok.length / 2)];
  if (!middle) {
    const { outcome, detail } = three[0] as (typeof three)[0];
    throw new MeasurementError(
      `three lone requests got no output (${outcome}${detail ? `: ${oneLine(detail, 120)}` : ''}); look with 'goodput bench --rate 1 --requests 5'`,
    );
  }
  return { ttft: middle.ttft as number, e2e: middle.e2e };
}
