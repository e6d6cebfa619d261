/** `goodput import FILE`: another tool's result file into a run folder, judged here by one contract. */
import { platform, release } from 'node:os';
import { InputError } from '../base/errors.ts';
import { type Cli, command, JSON_FLAG, text } from './command.ts';
import { numberFlags } from './load-flags.ts';
import { SLO_FLAGS, type SloFlags } from './slo-flags.ts';
import { VERSION } from './version.ts';

interface Flags extends SloFlags {
  readonly entry?: number;
  readonly out?: string;
  readonly name?: string;
  readonly json: boolean;
}

export const importResults = command({
  func: async function (this: Cli, flags: Flags, file: string) {
    const [{ importResults: read }, { createRun, openRun }, { virtualClock }, { contractOfFlags }] = await Promise.all([
      import('../store/import/index.ts'),
      import('../store/index.ts'),
      import('../core/clock.ts'),
      import('./slo-flags.ts'),
    ]);
    const { contract, isDefault } = await contractOfFlags(flags);
    const found = await read(file, flags.entry);
    for (const limit of ['gap', 'smoothness'] as const) {
      if (found.endsOnly && contract.limits[limit] !== undefined) {
        throw new InputError(
          `the contract limits ${limit}, but ${found.tool} kept only the first and last output of requests: it cannot be judged; leave that limit out`,
        );
      }
    }
    const text = `${found.count} requests of ${found.tool}${found.rate === undefined ? '' : `, ${found.rate}/s asked`}${found.concurrency === undefined ? '' : `, at most ${found.concurrency} at once`}`;
    const run = await createRun(
      flags.out ?? 'runs',
      flags.name ?? 'import',
      {
        epochWall: found.epochWall ?? Date.now(),
        seed: 0,
        contract,
        workload: {
          text,
          ...(found.rate !== undefined && { rate: found.rate }),
          // Slots that refill as requests end pace the load by the server.
          ...(found.concurrency !== undefined && { max_in_flight: found.concurrency }),
          ...(found.rate === undefined && found.concurrency !== undefined && { closed_loop: true }),
          default_contract: isDefault,
          imported: { tool: found.tool, cannot_tell: found.cannotTell },
        },
        target: { kind: 'imported', tool: found.tool, ...(found.model !== undefined && { model: found.model }) },
        versions: { goodput: VERSION, node: process.version },
        machine: { platform: `${platform()} ${release()}`, note: 'where it was imported, not where it was measured' },
        command: ['import', ...process.argv.slice(3)],
      },
      { clock: virtualClock() },
    );
    run.track(() => ({ offered: found.count, open: [] }));
    try {
      for await (const record of found.records) {
        if (run.full) await run.drained();
        run.add(record);
      }
    } finally {
      await run.close();
    }
    const [{ reportOfRun }, { renderReport, reportJson }] = await Promise.all([
      import('./run-report.ts'),
      import('../report/index.ts'),
    ]);
    const opened = await openRun(run.folder, { wallNow: Date.now() });
    const report = await reportOfRun(opened).finally(() => opened.close());
    run.writeReport({ ...report });
    this.stdout.write(flags.json ? reportJson(report) : renderReport(report, this.stdout));
    const where = `Run folder: ${run.folder}  (goodput report ${run.folder})`;
    if (flags.json) this.stderr.line(where);
    else this.stdout.line(where);
    const { exitCodeOf } = await import('./report.ts');
    this.exit(exitCodeOf(report));
  },
  parameters: {
    flags: {
      ...SLO_FLAGS,
      entry: {
        kind: 'parsed',
        parse: numberFlags.whole('entry'),
        optional: true,
        brief: 'Which run of a file that holds several, from 1',
        placeholder: 'N',
      },
      out: text('Folder for run folders (default runs)', 'DIR'),
      name: text('Name of the run (default import)', 'name'),
      json: JSON_FLAG,
    },
    positional: {
      kind: 'tuple',
      parameters: [
        {
          brief:
            'Result file of vllm bench, guidellm, aiperf, genai-perf, sglang bench_serving, inference-perf or llmperf',
          parse: String,
          placeholder: 'FILE',
        },
      ],
    },
  },
  docs: {
    brief: "Import another tool's result file into a run folder, and judge it",
    fullDescription:
      'What the file cannot tell stands in the notes of the report.\n' +
      'Exit codes: 0 the attainment target is met, 1 it is missed, 2 bad input.',
  },
});
