/** `goodput report RUN`: the report of a run folder, finished, cut or still being written. */
import { InputError, oneLine } from '../base/errors.ts';
import { EXIT } from './cli.ts';
import { type Cli, command, JSON_FLAG } from './command.ts';
import { SLO_FLAGS, type SloFlags } from './slo-flags.ts';

interface Flags extends SloFlags {
  readonly format?: 'text' | 'json' | 'csv' | 'md' | 'html' | 'vllm' | 'guidellm' | 'aiperf';
  readonly json: boolean;
}

export const report = command({
  func: async function (this: Cli, flags: Flags, folder: string) {
    const [{ openRun }, { reportOfRun }, { renderReport, reportJson }] = await Promise.all([
      import('../store/index.ts'),
      import('./run-report.ts'),
      import('../report/index.ts'),
    ]);
    const other = await otherContract(flags);
    const { readCapacity, writeCapacity } = await import('./capacity-folder.ts');
    const curve = readCapacity(folder);
    if (curve) {
      if (other)
        throw new InputError(
          `${oneLine(folder)} holds a curve; another contract judges single runs: give a folder under probes/`,
        );
      writeCapacity(this, curve, flags.json ? 'json' : (flags.format ?? 'text'), folder);
      return;
    }
    const run = await openRun(folder, { wallNow: Date.now() });
    try {
      const report = await reportOfRun(run, {
        ...(other && {
          contract: other,
          remarks: [`judged under the contract given here, not the run's own ('${run.meta.contract.name}')`],
        }),
      });
      const format = flags.json ? 'json' : (flags.format ?? 'text');
      if (format === 'json') this.stdout.write(reportJson(report));
      else if (format === 'text') this.stdout.write(renderReport(report, this.stdout));
      else {
        const { writeFormat } = await import('./report-formats.ts');
        await writeFormat(this, format, run, report, other ?? run.meta.contract);
      }
      this.exit(exitCodeOf(report));
    } finally {
      run.close();
    }
  },
  parameters: {
    flags: {
      ...SLO_FLAGS,
      format: {
        kind: 'enum',
        values: ['text', 'json', 'csv', 'md', 'html', 'vllm', 'guidellm', 'aiperf'],
        optional: true,
        brief:
          'text (default), json, csv (a row an operation), md, html (a page with the data inside), or the shape and definitions of another tool',
      },
      json: JSON_FLAG,
    },
    positional: { kind: 'tuple', parameters: [{ brief: 'Run folder', parse: String, placeholder: 'RUN' }] },
  },
  docs: {
    brief: 'Print the report of a run folder, or the curve of a search; also of one that was cut or is being written',
    fullDescription:
      'With contract flags the stored requests are judged again under that contract.\n' +
      'Exit codes: 0 the attainment target is met, 1 it is missed, 2 bad input, 3 the measurement is not valid.',
  },
});

async function otherContract(flags: SloFlags) {
  const { contractOfFlags } = await import('./slo-flags.ts');
  const { contract, isDefault } = await contractOfFlags(flags);
  return isDefault && flags.attainment === undefined && flags.deadline === undefined ? undefined : contract;
}

/** 3 when the measurement proves nothing, 1 when the target is missed, else 0. */
export function exitCodeOf(report: import('../report/index.ts').Report): number {
  if (report.client.verdict === 'client-bound') return EXIT.invalid;
  const classes = report.classes?.every((c) => c.attainment.met) ?? true;
  return report.attainment.met && classes ? EXIT.ok : EXIT.missed;
}
