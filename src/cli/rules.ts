/** `goodput rules`: what Prometheus, Grafana and KEDA need to watch a contract. */
import { join } from 'node:path';
import { type Cli, command, JSON_FLAG, text } from './command.ts';
import { numberFlags } from './load-flags.ts';
import { SLO_FLAGS, type SloFlags } from './slo-flags.ts';

const PARTS = ['rules', 'tests', 'grafana', 'keda'] as const;
type Part = (typeof PARTS)[number];

/** Names of the written files; the test file names the rule file. */
const FILES: Readonly<Record<Part, string>> = {
  rules: 'goodput.rules.yaml',
  tests: 'goodput.rules.test.yaml',
  grafana: 'goodput.grafana.json',
  keda: 'goodput.keda.yaml',
};

interface Flags extends SloFlags {
  readonly part: Part;
  readonly out?: string;
  readonly capacity?: number;
  readonly capacityFrom?: string;
  readonly replicas?: number;
  readonly headroom?: number;
  readonly minBad?: number;
  readonly json: boolean;
}

export const rules = command({
  func: runRules,
  parameters: {
    flags: {
      ...SLO_FLAGS,
      part: { kind: 'enum', values: PARTS, brief: 'What to print', default: 'rules' },
      out: text('Write all of them into this folder instead', 'DIR'),
      capacity: {
        ...text('Operations a second one replica carries inside the contract', 'rate'),
        parse: numberFlags.positive('capacity'),
      },
      capacityFrom: text('The same, from the output of goodput capacity --json or goodput plan --json', 'FILE'),
      replicas: {
        ...text('Replicas that carried the capacity of --capacity-from', 'n'),
        parse: numberFlags.whole('replicas'),
      },
      headroom: {
        ...text('Size replicas for the offered rate times this; default 1.2', 'x'),
        parse: numberFlags.positive('headroom'),
      },
      minBad: {
        ...text('Bad operations an alert rests on at least; default 10', 'n'),
        parse: numberFlags.whole('min-bad'),
      },
      json: JSON_FLAG,
    },
    positional: { kind: 'tuple', parameters: [] },
  },
  docs: {
    brief: 'Write alert rules, their tests, a Grafana dashboard and an autoscaling example for a contract',
    fullDescription:
      'Prometheus recording rules and multiwindow burn-rate alerts on joint attainment, with unit tests for promtool:\n' +
      '  goodput rules --contract chat.yaml --out watch && promtool test rules watch/goodput.rules.test.yaml\n' +
      'The series come from goodput proxy. Autoscaling needs --capacity or --capacity-from.',
  },
});

async function runRules(this: Cli, flags: Flags): Promise<void> {
  const [{ InputError, messageOf, oneLine }, { contractOfFlags }, r, { stringify }] = await Promise.all([
    import('../base/errors.ts'),
    import('./slo-flags.ts'),
    import('../observe/rules/index.ts'),
    import('yaml'),
  ]);
  const { contract } = await contractOfFlags(flags);
  if (flags.capacity !== undefined && flags.capacityFrom !== undefined)
    throw new InputError('--capacity and --capacity-from: each says what a replica carries; give one of them');
  let capacityPerReplica = flags.capacity;
  if (flags.capacityFrom !== undefined) {
    const { readFile } = await import('node:fs/promises');
    const file = flags.capacityFrom;
    const read = await readFile(file, 'utf8').catch((error: unknown) => {
      throw new InputError(`--capacity-from ${oneLine(file)}: cannot be read (${oneLine(messageOf(error))})`);
    });
    capacityPerReplica = r.capacityOf(read, file, flags.replicas);
  }
  const options = {
    minBad: flags.minBad ?? r.RULE_DEFAULTS.minBad,
    headroom: flags.headroom ?? r.RULE_DEFAULTS.headroom,
    ...(capacityPerReplica !== undefined && { capacityPerReplica }),
  };
  const made: Record<Part, () => object> = {
    rules: () => r.ruleFile(contract, options),
    tests: () => r.promtoolTests(contract, options, FILES.rules),
    grafana: () => r.grafanaDashboard(contract, options),
    keda: () => r.kedaScaledObject(contract, options),
  };
  const written = (part: Part): string =>
    part === 'grafana' ? `${JSON.stringify(made[part](), null, 2)}\n` : stringify(made[part](), { lineWidth: 0 });

  const parts = PARTS.filter((part) => part !== 'keda' || capacityPerReplica !== undefined);
  if (flags.out !== undefined) {
    const { mkdirSync, writeFileSync } = await import('node:fs');
    try {
      mkdirSync(flags.out, { recursive: true });
      for (const part of parts) writeFileSync(join(flags.out, FILES[part]), written(part));
    } catch (error) {
      throw new InputError(`--out ${oneLine(flags.out)}: cannot be written (${oneLine(messageOf(error))})`);
    }
  }
  if (flags.json) {
    const burn = r
      .thresholds(contract.attainment)
      .map(({ name, severity, multiple, long, short, badShare, capped }) => ({
        alert: `GoodputBurn${name}`,
        severity,
        multiple,
        long,
        short,
        bad_share: badShare,
        capped,
      }));
    this.stdout.line(
      JSON.stringify(
        {
          schema: 'goodput.rules/1',
          contract: contract.name,
          burn,
          ...Object.fromEntries(parts.map((part) => [part, made[part]()])),
        },
        null,
        2,
      ),
    );
    return;
  }
  if (flags.out === undefined) {
    this.stdout.write(written(flags.part));
    return;
  }
  for (const part of parts) this.stdout.line(`Wrote ${join(flags.out, FILES[part])}`);
  for (const t of r.thresholds(contract.attainment)) {
    const share = `${Number((100 * t.badShare).toPrecision(4))} %`;
    const why = t.capped
      ? `, in place of ${t.multiple}x, which this target cannot reach`
      : `, ${t.multiple}x the budget`;
    this.stdout.line(`  ${t.severity.padEnd(6)} above ${share} bad over ${t.long} and ${t.short}${why}`);
  }
  if (capacityPerReplica === undefined)
    this.stdout.line('No autoscaling example: say what a replica carries, with --capacity or --capacity-from.');
}
