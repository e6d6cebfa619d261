/** What a simulation leaves beside its report: the schedule as a Chrome trace, its requests as a run folder. */
import { InputError, messageOf, oneLine } from '../base/errors.ts';
import type { Cli } from './command.ts';
import { workloadFacts } from './load-facts.ts';
import type { SimulateRun } from './simulate.ts';
import { VERSION } from './version.ts';

/** A file of trace events, written as they come. */
export async function traceFile(path: string) {
  const [{ createWriteStream }, { chromeTrace }] = await Promise.all([import('node:fs'), import('../sim/index.ts')]);
  const file = createWriteStream(path);
  let failure: string | undefined;
  file.on('error', (error) => {
    failure ??= messageOf(error);
  });
  const trace = chromeTrace((piece) => void file.write(piece));
  return {
    observe: trace.observe,
    request: trace.request,
    full: () => file.writableNeedDrain && failure === undefined,
    drained: async () => {
      if (!file.writableNeedDrain || failure !== undefined) return;
      await new Promise<void>((resolve) => {
        file.once('drain', resolve);
        file.once('close', resolve);
      });
    },
    close: async (cli: Cli) => {
      const left = trace.close();
      await new Promise<void>((resolve) => {
        if (failure !== undefined) resolve();
        else {
          file.once('close', () => resolve());
          file.end();
        }
      });
      if (failure !== undefined)
        throw new InputError(`--chrome-trace ${oneLine(path)}: cannot be written (${failure}); name another file`);
      if (left > 0) cli.stderr.line(`goodput: the trace is full; ${left} later events were left out`);
    },
  };
}

/** The run folder of a simulation: its epoch is virtual, its time of writing the wall's. */
export async function openFolder(run: SimulateRun, out: string) {
  const [{ createRun }, { hostClock }] = await Promise.all([import('../store/index.ts'), import('./host.ts')]);
  const { flags, contract, seed, load, facts, system } = run;
  const host = hostClock();
  const { target, model, dialect, workload: words, default_contract, gpus } = facts;
  const writer = await createRun(
    out,
    flags.name ?? 'simulate',
    {
      epochWall: host.epochWall,
      seed,
      contract,
      workload: {
        text: words,
        ...(load.arrivals && { arrivals: load.arrivals, rate: load.arrivals.rate }),
        ...(load.concurrency !== undefined && { concurrency: load.concurrency, closed_loop: true }),
        ...workloadFacts(load),
        requests: load.requests,
        window: load.window,
        default_contract,
        gpus,
      },
      target: { kind: 'simulated', endpoint: target, model, dialect, limits: system.limits },
      versions: { goodput: VERSION, node: process.version },
      machine: { simulated: true },
      command: ['simulate', ...process.argv.slice(3)],
    },
    { clock: host.clock },
  );
  let added = 0;
  let end: { offered: number; window: SimulateRun['window'] } | undefined;
  writer.track(() => ({ offered: end?.offered ?? added, open: [], window: run.window }));
  return {
    folder: writer.folder,
    add: (record: Parameters<typeof writer.add>[0]) => {
      added++;
      writer.add(record);
    },
    get full() {
      return writer.full;
    },
    drained: () => writer.drained(),
    close: async (offered: number, window: SimulateRun['window']) => {
      // Requests still open when the cohort was final are outside it: the load that kept the system busy.
      end = { offered: Math.min(offered, added), window };
      writer.writeHealth({ unsent: 0, dropped: writer.counts.dropped, simulated: true });
      await writer.close();
    },
  };
}
