/** `goodput judge`: the verdicts and the report of `bench`, on stamps that come from elsewhere. */
import type { Verdict } from '../core/judge.ts';
import { EXIT } from './cli.ts';
import { type Cli, command, JSON_FLAG, text } from './command.ts';
import type { JudgeLine } from './judge-line.ts';
import { SLO_FLAGS, type SloFlags } from './slo-flags.ts';

interface Flags extends SloFlags {
  readonly json: boolean;
  readonly perRequest: boolean;
  readonly window?: string;
  readonly windowStart?: string;
}

export const judge = command({
  func: runJudge,
  parameters: {
    flags: {
      ...SLO_FLAGS,
      window: text('Length of the arrival window, from the first arrival: 20s. Without it, it is estimated', 'time'),
      windowStart: text("Start of the window on the file's clock: 1500ms, or a bare number of milliseconds", 'time'),
      perRequest: { kind: 'boolean', brief: "Print each line's metrics and verdict as NDJSON instead", default: false },
      json: JSON_FLAG,
    },
    positional: {
      kind: 'tuple',
      parameters: [{ brief: 'Records as NDJSON, - for standard input', parse: String, placeholder: 'FILE.ndjson' }],
    },
  },
  docs: {
    brief: 'Judge timestamps from elsewhere against a latency contract',
    fullDescription:
      'A line an operation, on one absolute clock:\n' +
      '  {"scheduled_ms":0,"receipts_ms":[100,120,320,340],"tokens":4,"outcome":"completed"}\n' +
      'Optional: dispatched_ms, ended_ms, first_answer_ms (null when there was no answer), receipt_tokens (one a\n' +
      'receipt), asked_tokens, streamed, class. The outcome is completed unless told.\n' +
      'Exit codes: 0 the attainment target is met, 1 it is missed, 2 bad input.',
  },
});

/** @param stdin what `-` stands for. */
export async function runJudge(
  this: Cli,
  flags: Flags,
  file: string,
  stdin: AsyncIterable<Uint8Array | string> = process.stdin,
): Promise<void> {
  const [{ inCohort, ThroughputReducer, CohortReducer, judgeRecord }, { buildReport, renderReport, reportJson }] =
    await Promise.all([import('../core/index.ts'), import('../report/index.ts')]);
  const { contractOfFlags } = await import('./slo-flags.ts');
  const { contract, isDefault } = await contractOfFlags(flags);
  const source = await openLines(file, stdin);

  // First pass: everything is checked before anything is said, and the window is known before anything is counted.
  const arrivals: number[] = [];
  const unknown = new Map<string, number>();
  for await (const { line, number } of records(source)) {
    arrivals.push(line.record.stamps.scheduled);
    for (const key of line.unknown) if (!unknown.has(key) && unknown.size < 20) unknown.set(key, number);
  }
  const remarks = await warnings(unknown);
  for (const remark of remarks) this.stderr.line(`goodput: ${remark}`);
  const window = await windowOf(arrivals, flags, file);

  const cohort = new CohortReducer(contract, window);
  const throughput = new ThroughputReducer(window);
  let outside = 0;
  for await (const { line, number } of records(source)) {
    const { record } = line;
    const { metrics, verdict: judged } = judgeRecord(record, contract);
    const verdict = line.toldInvalid ? asTold(judged) : judged;
    const inside = inCohort(window, record.operation, record.stamps.scheduled);
    if (inside) cohort.addJudged(record, metrics, verdict);
    else outside++;
    throughput.add(record);
    if (flags.perRequest) {
      const { requestRow } = await import('../report/request-row.ts');
      this.stdout.line(JSON.stringify({ line: number, ...requestRow(record, metrics, verdict), in_window: inside }));
    }
  }
  const fold = cohort.finish();
  const lag = fold.columns.sendLag;
  const { spreadOf } = await import('../report/spread.ts');
  const sendLag = spreadOf(lag);
  const report = buildReport({
    contract,
    cohort: fold,
    throughput: throughput.finish(),
    ...((sendLag || fold.ledger.unsent > 0) && {
      client: { ...(sendLag && { sendLag }), unsent: fold.ledger.unsent, dropped: 0 },
    }),
    facts: {
      name: file === '-' ? 'standard input' : file,
      workload: `${arrivals.length} records`,
      default_contract: isDefault,
      outside_window: outside,
      remarks,
    },
  });
  if (!flags.perRequest) this.stdout.write(flags.json ? reportJson(report) : renderReport(report, this.stdout));
  this.exit(report.attainment.met ? EXIT.ok : EXIT.missed);
}

/** A completed operation that the input calls invalid is so, unless it came too late to matter. */
function asTold(verdict: Verdict): Verdict {
  if (verdict.class !== 'good' && verdict.class !== 'late') return verdict;
  return { class: 'invalid', excluded: false, missed: [], unmeasurable: [], vacuous: [], invalid: 'told by the input' };
}

async function warnings(unknown: ReadonlyMap<string, number>): Promise<string[]> {
  const { unknownKeyText } = await import('./judge-line.ts');
  return [...unknown].map(([key, line]) => `line ${line}: ${unknownKeyText(key)}`);
}

async function windowOf(
  arrivals: readonly number[],
  flags: Flags,
  file: string,
): Promise<import('../core/index.ts').Window> {
  const [{ InputError }, { parseDuration, toMicroGrid }, { estimatedWindow }] = await Promise.all([
    import('../base/errors.ts'),
    import('../base/units.ts'),
    import('../core/index.ts'),
  ]);
  if (arrivals.length === 0) throw new InputError(`${file}: holds no records; write one JSON object a line`);
  if (flags.window === undefined) {
    if (flags.windowStart !== undefined)
      throw new InputError('--window-start: give --window too, the length of the window');
    return (
      estimatedWindow(arrivals) ?? { start: Number.NEGATIVE_INFINITY, end: Number.POSITIVE_INFINITY, estimated: true }
    );
  }
  const length = parseDuration(flags.window, '--window');
  if (!(length > 0)) throw new InputError('--window: it must be longer than 0');
  const start =
    flags.windowStart === undefined
      ? arrivals.reduce((a, b) => Math.min(a, b))
      : parseDuration(flags.windowStart, '--window-start', 'ms');
  return { start, end: toMicroGrid(start + length) };
}

type Lines = () => AsyncIterable<string>;

async function* records(lines: Lines): AsyncGenerator<{ line: JudgeLine; number: number }> {
  const { readJudgeLine } = await import('./judge-line.ts');
  let number = 0;
  let operation = 0;
  for await (const text of lines()) {
    number++;
    if (text.trim() === '') continue;
    yield { line: readJudgeLine(text, number, operation++), number };
  }
}

/** Lines that can be read twice: a file is read again, standard input is kept. */
async function openLines(file: string, stdin: AsyncIterable<Uint8Array | string>): Promise<Lines> {
  const [{ createReadStream }, { InputError, messageOf }, { linesOf }] = await Promise.all([
    import('node:fs'),
    import('../base/errors.ts'),
    import('./lines.ts'),
  ]);
  if (file !== '-') {
    return async function* () {
      try {
        yield* linesOf(createReadStream(file));
      } catch (error) {
        if (error instanceof InputError) throw error;
        throw new InputError(`cannot read the records: ${messageOf(error)}`, { cause: error });
      }
    };
  }
  const kept: string[] = [];
  for await (const line of linesOf(stdin)) kept.push(line);
  return async function* () {
    yield* kept;
  };
}
