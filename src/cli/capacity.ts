/** `goodput capacity`: the highest rate a server sustains within the contract, as an interval. */
import { writeFileSync } from 'node:fs';
import { InputError, messageOf, oneLine } from '../base/errors.ts';
import { trim } from '../base/units.ts';
import type { CapacityReport } from '../report/curve-report.ts';
import { CAPACITY_FLAGS, type CapacityFlags } from './capacity-flags.ts';
import { EXIT } from './cli.ts';
import { type Cli, command } from './command.ts';

export const capacity = command({
  func: runCapacity,
  parameters: {
    flags: CAPACITY_FLAGS,
    aliases: { y: 'yes' },
    positional: {
      kind: 'tuple',
      parameters: [
        {
          brief: 'Endpoint, as http://host:8000; none: the embedded engine',
          parse: String,
          placeholder: 'URL',
          optional: true,
        },
      ],
    },
  },
  docs: {
    brief: 'Find the highest rate that meets the attainment target',
    fullDescription:
      'First almost unloaded; then rates are doubled and halved with short runs that only steer; then the last rate that\n' +
      'passes and the first that fails are confirmed by independent replications, on which the interval rests.\n' +
      'Ctrl-C reports what is known; --resume goes on from there.\n' +
      'Exit codes: 0 found, 1 infeasible at any rate, 2 bad input, 3 undecided, or the client was the bottleneck.',
  },
});

async function runCapacity(this: Cli, flags: CapacityFlags, url?: string): Promise<void> {
  if (flags.concurrency !== undefined) {
    throw new InputError(
      '--concurrency: a closed loop slows down with the server, so that it is never offered more than it can serve and has no capacity to find; leave it out',
    );
  }
  if (flags.replay !== undefined) {
    throw new InputError(
      '--replay: a trace has one rate, its own; look at several with bench --replay FILE --rate-scale x',
    );
  }
  const [store, { withoutCohort }, { contractOfFlags }, { resolveLoad }, { capacityReport }] = await Promise.all([
    import('./capacity-store.ts'),
    import('./capacity-task.ts'),
    import('./slo-flags.ts'),
    import('./load-plan.ts'),
    import('./capacity-report.ts'),
  ]);
  const stored = flags.resume === undefined ? undefined : store.readSearch(flags.resume);
  const contract = stored?.contract ?? (await contractOfFlags(flags)).contract;
  if (contract.attainment >= 1) {
    throw new InputError('--attainment: that every request is good can be refuted and never shown; ask for 99.9%, say');
  }
  const load = await resolveLoad(stored?.flags ?? withoutCohort(flags), stored?.plan.seed ?? flags.seed ?? 1);
  if (stored) store.checkSameLoad(stored, load);
  const simulated = stored?.target.simulated ?? flags.simulate;
  if (simulated && url !== undefined) throw new InputError(`--simulate and ${oneLine(url, 100)}: give one of them`);
  const task = { flags, contract, load, ...(stored && { stored }) };
  const { outcome, folder, about } = simulated
    ? await (await import('./capacity-on-simulation.ts')).searchSimulated(this, task)
    : await (await import('./capacity-on-server.ts')).searchServer(this, url ?? stored?.target.url ?? undefined, task);
  const [{ renderCapacity }, { limitsText }] = await Promise.all([
    import('../report/curve-report.ts'),
    import('../report/contract-text.ts'),
  ]);
  const { target, load: offered, ...rest } = about;
  const report = capacityReport(
    outcome,
    {
      target: target as string,
      load: offered as string,
      contract: `${contract.name}: ${limitsText(contract)}; ${trim(100 * contract.attainment, 4)} % must be good`,
      ...rest,
    },
    flags.gpus ?? stored?.gpus ?? undefined,
    /by session/.test(offered ?? '') ? 'sessions' : 'requests',
  );
  const json = `${JSON.stringify(report, null, 2)}\n`;
  try {
    writeFileSync(`${folder}/capacity.json`, json);
  } catch (error) {
    this.stderr.line(`goodput: the result could not be kept in ${oneLine(folder)} (${messageOf(error)})`);
  }
  this.stdout.write(flags.json ? json : renderCapacity(report, this.stdout));
  const say = flags.json ? this.stderr : this.stdout;
  say.line(`Run folder: ${folder}  (goodput report ${folder})`);
  if (report.end === 'interrupted' || report.end === 'client-bound')
    say.line(`Go on with: goodput capacity --resume ${folder}`);
  this.exit(capacityExit(report));
}

/** 0 found, 1 infeasible, 3 undecided; of a sweep 1 when a rate failed, 3 when every one was void. */
export function capacityExit({ end, probes }: CapacityReport): number {
  if (end === 'sweep') {
    if (probes.every((p) => p.verdict === 'void')) return EXIT.invalid;
    return probes.some((p) => p.verdict === 'fail') ? EXIT.missed : EXIT.ok;
  }
  if (end === 'found' || end === 'above-range') return EXIT.ok;
  return end === 'infeasible' ? EXIT.missed : EXIT.invalid;
}
