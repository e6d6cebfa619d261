/** `goodput diagnose --before A --after B`: is there a change, where did the time go, and why. */
import { InputError } from '../base/errors.ts';
import { parseShare } from '../base/units.ts';
import { EXIT } from './cli.ts';
import { type Cli, command, JSON_FLAG, text } from './command.ts';
import type { FixFlags } from './diagnose-fix.ts';

interface Flags extends FixFlags {
  readonly before: readonly string[];
  readonly after: readonly string[];
  readonly changes?: string;
  readonly spread?: string;
  readonly format?: 'text' | 'md' | 'json';
  readonly json: boolean;
}

const side = (brief: string) =>
  ({ kind: 'parsed', parse: String, brief, placeholder: 'SOURCE', variadic: true }) as const;

export const diagnose = command({
  func: runDiagnose,
  parameters: {
    flags: {
      before: side('The earlier side: a run folder, scrapes, start.txt..end.txt, prometheus+URL@from/to, told figures'),
      after: side('The later side, likewise; give a flag twice to add server metrics to a run folder'),
      changes: text('What was changed between them: versions, flags, marks, deployments (YAML or JSON)', 'FILE'),
      spread: text('How much runs of one system differ, where it is known (default 5%)', 'share'),
      profile: text('Check what would fix it on this calibrated profile, with the later run’s load', 'FILE'),
      maxNumSeqs: {
        kind: 'parsed',
        parse: Number,
        optional: true,
        brief: 'With --profile: the batch cap the later side ran with (default 256)',
        placeholder: 'N',
      },
      maxNumBatchedTokens: {
        kind: 'parsed',
        parse: Number,
        optional: true,
        brief: 'With --profile: its token budget (default 8192)',
        placeholder: 'N',
      },
      kvBlocks: {
        kind: 'parsed',
        parse: Number,
        optional: true,
        brief: 'With --profile: its KV blocks a replica (default: no bound)',
        placeholder: 'N',
      },
      format: {
        kind: 'enum',
        values: ['text', 'md', 'json'],
        optional: true,
        brief: 'text (default), md for an incident page, json',
      },
      json: JSON_FLAG,
    },
  },
  docs: {
    brief: 'Why did TTFT or TPOT change: attribution, ranked causes with their evidence, or "unknown"',
    fullDescription:
      'Compares two windows. First whether there is a change at all; then how the change of mean TTFT adds up; then the causes\n' +
      'that explain the signs, with every number they rest on, what is ruled out, what evidence is missing, the knob and its price.\n' +
      'Exit codes: 0 not shown to be a change, or unknown, or a trade, or elsewhere than the server; 1 the server got worse;\n' +
      '2 bad input.',
  },
});

export async function runDiagnose(this: Cli, flags: Flags): Promise<void> {
  const [{ diagnose: decide, diagnosisJson }, { readSide }, { readChangesFile }, { pairNotes, refuseSame }] =
    await Promise.all([
      import('../diagnose/index.ts'),
      import('./diagnose-sources.ts'),
      import('./diagnose-files.ts'),
      import('./diagnose-pair.ts'),
    ]);
  const spread = spreadOf(flags.spread);
  const changes = flags.changes === undefined ? undefined : readChangesFile(flags.changes);
  const a = await readSide(flags.before, '--before', this);
  const b = await readSide(flags.after, '--after', this);
  refuseSame(flags.before, flags.after);
  const notes = pairNotes(a, b);
  for (const note of notes) this.stderr.line(`note: ${note}`);
  const found = decide(a.side, b.side, { notes, ...(changes && { changes }), ...(spread !== undefined && { spread }) });
  const { checkFixes } = await import('./diagnose-fix.ts');
  const fixes = await checkFixes(found, flags);
  const format = flags.json ? 'json' : (flags.format ?? 'text');
  if (format === 'json') this.stdout.write(diagnosisJson(found, fixes));
  else {
    const { diagnosisMarkdown, diagnosisText } = await import('./diagnose-text.ts');
    this.stdout.write(format === 'md' ? diagnosisMarkdown(found, fixes) : diagnosisText(found, fixes, this.stdout));
  }
  this.exit(found.regression === 'server' || found.regression === 'own-setting' ? EXIT.missed : EXIT.ok);
}

function spreadOf(flag: string | undefined): number | undefined {
  if (flag === undefined) return undefined;
  const spread = parseShare(flag, '--spread');
  if (!(spread > 0))
    throw new InputError('--spread: runs of one system always differ; give what you measured, like 3%');
  return spread;
}
