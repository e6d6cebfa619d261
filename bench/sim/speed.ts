/**
 * Simulated requests a second on one core, conversations at 80 % of capacity, prefix cache and preemption on:
 * `node bench/sim/run.mjs speed [requests]`. Aggregates only; full records; stored in a run folder.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { wallClock } from '../../src/core/clock.ts';
import { PRESETS } from '../../src/core/presets.ts';
import { recordOf, simulate, simulateInto } from '../../src/sim/index.ts';
import { createRun } from '../../src/store/index.ts';
import { capacity, conversations, replica } from './load.ts';

const TARGETS = { aggregates: 200_000, records: 50_000, stored: 15_000 };

export async function main([count = '200000']: string[]): Promise<void> {
  const n = Number(count);
  const rate = 0.8 * capacity();
  console.log(`capacity ${(rate / 0.8).toFixed(1)} requests/s; offered ${rate.toFixed(1)}`);
  for (let warm = 0; warm < 2; warm++) simulate(conversations(20_000, rate, 2), replica(), (d) => void recordOf(d));

  const before = process.memoryUsage().heapUsed;
  let cluster = replica();
  let sum = 0;
  let hits = 0;
  let preempted = 0;
  let began = start();
  simulate(conversations(n, rate, 1), cluster, ({ scheduled, finished: f }) => {
    if (!f) return;
    sum += f.firstToken - scheduled;
    if (f.cached > 0) hits++;
    preempted += f.preemptions;
  });
  say('aggregates', n, began);
  console.log(
    `  mean TTFT ${(sum / n).toFixed(1)} ms, ${hits} with a cached prefix, ${preempted} preemptions, ${cluster.gauges().steps} steps`,
  );

  cluster = replica();
  let tokens = 0;
  const some = Math.min(n, 100_000);
  began = start();
  simulate(conversations(some, rate, 1), cluster, (d) => {
    tokens += recordOf(d).timeline.length;
  });
  say('records', some, began);
  console.log(
    `  ${tokens} tokens stamped; heap grew by ${((process.memoryUsage().heapUsed - before) / 1e6).toFixed(0)} MB`,
  );

  const dir = mkdtempSync(join(tmpdir(), 'sim-speed-'));
  const clock = wallClock({ now: () => performance.now(), setTimeout, clearTimeout, setImmediate, clearImmediate });
  const run = await createRun(
    dir,
    'speed',
    {
      epochWall: Date.now(),
      seed: 1,
      contract: PRESETS.chat.contract,
      workload: {},
      target: {},
      versions: {},
      machine: {},
    },
    { clock },
  );
  const few = Math.min(n, 50_000);
  began = start();
  await simulateInto(conversations(few, rate, 1), replica(), run);
  await run.close();
  say('stored', few, began);
  rmSync(dir, { recursive: true });
}

/** Wall and processor time: on a machine that does other things besides, only the second says what the work costs. */
interface Start {
  readonly wall: number;
  readonly cpu: NodeJS.CpuUsage;
}

function start(): Start {
  return { wall: performance.now(), cpu: process.cpuUsage() };
}

function say(what: keyof typeof TARGETS, n: number, began: Start): void {
  const { user, system } = process.cpuUsage(began.cpu);
  const whole = (x: number): string => Math.round(x).toLocaleString('en');
  const wall = (1000 * n) / (performance.now() - began.wall);
  console.log(
    `${what}: ${whole(wall)} requests/s, ${whole((1e6 * n) / (user + system))} a second of processor time (asked: ${whole(TARGETS[what])})`,
  );
}
