/** `goodput compare A B …`: what differs between two sides of one or more runs, and whether that may be called better. */
import { InputError, oneLine } from '../base/errors.ts';
import { parseShare } from '../base/units.ts';
import { EXIT } from './cli.ts';
import { type Cli, command, JSON_FLAG, text } from './command.ts';
import { SLO_FLAGS, type SloFlags } from './slo-flags.ts';

interface Flags extends SloFlags {
  readonly a?: readonly string[];
  readonly b?: readonly string[];
  readonly spread?: string;
  readonly figures?: readonly string[];
  readonly failOn?: string;
  readonly onlyShown: boolean;
  readonly anyway: boolean;
  readonly format?: 'text' | 'md' | 'json';
  readonly json: boolean;
}

const list = (brief: string, placeholder: string) =>
  ({ kind: 'parsed', parse: String, brief, placeholder, optional: true, variadic: ',' }) as const;

export const compare = command({
  func: runCompare,
  parameters: {
    flags: {
      ...SLO_FLAGS,
      a: list('Runs of side A, separated by commas', 'RUN,RUN'),
      b: list('Runs of side B', 'RUN,RUN'),
      spread: text(
        'How much runs of one system differ, where it is known: 3%; measured: as these runs show, and nothing else',
        'share',
      ),
      figures: list('Test only these figures, chosen before looking: ttft.p99,goodput', 'name,name'),
      failOn: text("Exit with 1 when one of these holds: 'ttft.p99>+5%,attainment<90%'", 'thresholds'),
      onlyShown: {
        kind: 'boolean',
        default: false,
        brief: 'A change fails only when its whole interval lies beyond the threshold',
      },
      anyway: { kind: 'boolean', default: false, brief: 'Compare unlike workloads, contracts, boundaries or targets' },
      format: {
        kind: 'enum',
        values: ['text', 'md', 'json'],
        optional: true,
        brief: 'text (default), md for a pull request, json',
      },
      json: JSON_FLAG,
    },
    positional: {
      kind: 'array',
      parameter: { brief: 'Two run folders, or those of one bench --repeat', parse: String, placeholder: 'RUN' },
    },
  },
  docs: {
    brief: 'Compare two runs, or two sides of repeated runs: better, worse, or not shown',
    fullDescription:
      'Better and worse are said with three runs a side or a stated spread between runs; otherwise only that these runs differ.\n' +
      'Exit codes: 0 fine, 1 a threshold of --fail-on was missed, 2 bad input or unlike runs, 3 a run proves nothing.',
  },
});

export async function runCompare(this: Cli, flags: Flags, ...positional: string[]): Promise<void> {
  const [{ openRun }, report, { contractOfFlags }] = await Promise.all([
    import('../store/index.ts'),
    import('../report/index.ts'),
    import('./slo-flags.ts'),
  ]);
  const thresholds = flags.failOn === undefined ? [] : report.parseThresholds(flags.failOn);
  const spread = spreadOfFlag(flags.spread);
  for (const name of flags.figures ?? []) report.checkFigureName(name, '--figures');
  const chosen = await contractOfFlags(flags);
  const isOwn = chosen.isDefault && flags.attainment === undefined && flags.deadline === undefined;

  const runs: Opened[] = [];
  try {
    const open = async (folder: string): Promise<Opened> => {
      const opened = { folder, reader: await openRun(folder, { wallNow: Date.now() }) };
      runs.push(opened);
      return opened;
    };
    const [a, b] = await sidesOf(flags, positional, open);
    const first = a[0] as Opened;
    const contract = isOwn ? first.reader.meta.contract : chosen.contract;
    const unlike = differences(a, b, !isOwn, report.unlikeRuns);
    const refused = unlike.filter((u) => u.refused);
    if (refused.length > 0 && !flags.anyway) {
      const more = refused.length > 1 ? `, and ${refused.length - 1} more` : '';
      throw new InputError(
        `${oneLine(refused[0]?.text ?? '', 400)}${more}: a difference would not be one between the systems; ${isOwn && refused[0]?.text.startsWith('contract') ? 'judge both under one contract (--slo …), or ' : ''}compare --anyway`,
      );
    }
    const barred: string[] = [];
    const load = async (side: readonly Opened[]) => {
      const folded = [];
      for (const run of side) {
        const { compared, why } = await fold(
          run,
          contract,
          typeof spread === 'number' ? spread : report.ASSUMED_SPREAD.relative,
          isOwn,
        );
        if (why) barred.push(why);
        folded.push(compared);
      }
      return folded;
    };
    const comparison = report.compareRuns(contract, await load(a), await load(b), {
      ...(spread !== undefined && { spread }),
      ...(flags.figures && { figures: flags.figures }),
      ...(barred.length > 0 && !flags.anyway && { void: barred }),
      notes: [
        ...(flags.anyway ? [...barred, ...refused.map((u) => u.text)].map((t) => `told to overlook: ${t}`) : []),
        ...unlike.filter((u) => !u.refused).map((u) => u.text),
        ...runs.flatMap(({ folder, reader }) => [
          ...(reader.status === 'complete'
            ? []
            : [`${folder}: the run is ${reader.status}; what was open counts as undecided`]),
          ...reader.problems.map((problem) => `${folder}: ${problem}`),
        ]),
      ],
    });
    const results = report.checkThresholds(comparison, thresholds, flags.onlyShown);
    const format = flags.json ? 'json' : (flags.format ?? 'text');
    this.stdout.write(
      format === 'json'
        ? report.comparisonJson(comparison, results)
        : format === 'md'
          ? report.comparisonMarkdown(comparison, results)
          : report.renderComparison(comparison, this.stdout, results),
    );
    const isMissed = results.some((r) => r.missed);
    this.exit(comparison.verdict === 'void' ? EXIT.invalid : isMissed ? EXIT.missed : EXIT.ok);
  } finally {
    for (const { reader } of runs) reader.close();
  }
}

interface Opened {
  readonly folder: string;
  readonly reader: import('../store/index.ts').RunReader;
}

/** `--a … --b …`; else runs that name their side; else the first folder against the second. */
async function sidesOf(
  flags: Flags,
  positional: readonly string[],
  open: (folder: string) => Promise<Opened>,
): Promise<[Opened[], Opened[]]> {
  const openAll = async (folders: readonly string[]): Promise<Opened[]> => {
    const opened = [];
    for (const folder of folders) opened.push(await open(folder));
    return opened;
  };
  if (flags.a || flags.b) {
    if (positional.length > 0) throw new InputError('--a and --b name the runs; give no others beside them');
    if (!flags.a?.length || !flags.b?.length)
      throw new InputError('--a and --b: give both sides, each RUN or RUN,RUN,RUN');
    return [await openAll(flags.a), await openAll(flags.b)];
  }
  if (positional.length < 2) throw new InputError('give two run folders to compare: goodput compare runs/A runs/B');
  const runs = await openAll(positional);
  const groups = runs.map(({ reader }) => groupOf(reader.meta.workload));
  if (
    groups.every((g) => g !== undefined && g.id === groups[0]?.id) &&
    new Set(groups.map((g) => g?.side)).size === 2
  ) {
    const side = (name: 'A' | 'B'): Opened[] =>
      runs
        .filter((_, i) => groups[i]?.side === name)
        .sort(
          (x, y) => (groupOf(x.reader.meta.workload)?.repeat ?? 0) - (groupOf(y.reader.meta.workload)?.repeat ?? 0),
        );
    return [side('A'), side('B')];
  }
  if (runs.length !== 2) {
    throw new InputError(
      `${runs.length} runs that are not of one bench --repeat: say which is which with --a RUN,RUN --b RUN,RUN`,
    );
  }
  return [[runs[0] as Opened], [runs[1] as Opened]];
}

interface Group {
  readonly id: string;
  readonly side: 'A' | 'B';
  readonly repeat: number;
}

function groupOf(workload: Readonly<Record<string, unknown>>): Group | undefined {
  const group = workload.group as Partial<Group> | undefined;
  return typeof group === 'object' &&
    group !== null &&
    typeof group.id === 'string' &&
    (group.side === 'A' || group.side === 'B')
    ? { id: group.id, side: group.side, repeat: Number(group.repeat ?? 0) }
    : undefined;
}

/** Every run is held against the first of A, each difference said once. */
function differences(
  a: readonly Opened[],
  b: readonly Opened[],
  sameContract: boolean,
  unlikeRuns: typeof import('../report/index.ts').unlikeRuns,
): ReturnType<typeof unlikeRuns> {
  const [first, ...rest] = [...a, ...b].map(({ folder, reader: { meta } }) => ({
    name: folder,
    contract: meta.contract,
    workload: meta.workload,
    target: meta.target,
  }));
  const found = new Map<string, ReturnType<typeof unlikeRuns>[number]>();
  for (const other of rest) {
    for (const u of unlikeRuns(first as NonNullable<typeof first>, other, sameContract)) {
      const about = u.text.slice(0, u.text.indexOf(' is '));
      if (!found.has(about)) found.set(about, u);
    }
  }
  return [...found.values()];
}

/** One run read for comparison, and why it proves nothing, if so. */
async function fold(
  { folder, reader }: Opened,
  contract: import('../core/index.ts').Contract,
  spread: number,
  withOwn: boolean,
): Promise<{ compared: import('../report/index.ts').ComparedRun; why: string | undefined }> {
  const [{ CompareReducer }, { reportOfRun, windowOf }, { storedContracts }, { contractFor }] = await Promise.all([
    import('../report/index.ts'),
    import('./run-report.ts'),
    import('./load-facts.ts'),
    import('../core/contract.ts'),
  ]);
  const { client } = await reportOfRun(reader, { contract });
  // Classes keep contracts of their own, unless all are judged by another one.
  const own = withOwn ? storedContracts(reader.meta.workload) : {};
  const reducer = new CompareReducer(contract, await windowOf(reader), {
    name: folder,
    // Another tool's draws are not told by a seed of ours.
    seed: reader.meta.target.kind === 'imported' ? Number.NaN : reader.meta.seed,
    closedLoop: reader.meta.workload.closed_loop === true,
    spread,
    contractFor: contractFor(contract, own),
  });
  await reader.operations((record) => reducer.add(record));
  const compared = reducer.finish();
  if (compared.offered === 0) throw new InputError(`${oneLine(folder)}: has no operations; measure again`);
  return {
    compared,
    why: client.verdict === 'client-bound' ? `${folder} is client-bound (${client.why.join('; ')})` : undefined,
  };
}

function spreadOfFlag(flag: string | undefined): number | 'measured' | undefined {
  if (flag === undefined || flag === 'measured') return flag;
  const spread = parseShare(flag, '--spread');
  if (!(spread > 0))
    throw new InputError('--spread: runs of one system always differ; give what you measured, like 3%');
  return spread;
}
