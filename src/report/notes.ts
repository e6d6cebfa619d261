/** What a reader must know before believing a figure, in plain sentences, the gravest first. */
import { formatDuration, trim } from '../base/units.ts';
import type { CohortFold } from '../core/index.ts';
import { SHED_LIMIT, shedAtDeadline } from './attainment.ts';
import { LIMIT_WORDS, percentText } from './contract-text.ts';
import type { Mark, MetricName, Note, Report } from './report.ts';

/** A run more than this share short of the lengths asked for is marked. */
const SHORT = 0.05;

type Draft = Omit<Report, 'notes' | 'marks'>;

export function notesOf(report: Draft, fold: CohortFold): Note[] {
  const notes: Note[] = [];
  const note = (mark: Mark, text: string): void => void notes.push({ mark, text });
  validity(report, fold, note);
  counting(report, note);
  timing(report, fold, note);
  for (const remark of report.run.remarks ?? []) note('remark', remark);
  return notes;
}

type Write = (mark: Mark, text: string) => void;

/** Whether the run can be believed at all. */
function validity(report: Draft, fold: CohortFold, note: Write): void {
  const { run, client, cohort, attainment } = report;
  if (client.verdict === 'client-bound') {
    note(
      'client-bound',
      `The client was the bottleneck: ${client.why.join('; ')}. This run proves nothing about the server.`,
    );
  }
  if (client.dropped > 0) {
    note(
      'records-dropped',
      `${plural(client.dropped, 'record')} found the store full and ${were(client.dropped)} dropped: the figures lack them.`,
    );
  }
  if (run.cut !== undefined) note('cut', `The run was cut: ${run.cut}.`);
  if (run.closed_loop) {
    note(
      'closed-loop',
      'The load was a closed loop, which offers only what the server lets it: it cannot show capacity.',
    );
  }
  if (run.default_contract) {
    note('default-contract', `No contract was named, so the '${report.contract.name}' preset was taken.`);
  }
  const shed = shedAtDeadline(fold);
  if (shed > SHED_LIMIT * cohort.offered) {
    note(
      'shed-at-deadline',
      `${plural(shed, 'operation')} (${share(shed, cohort.offered)}) ${were(shed)} cancelled at the deadline, which shed load the server would have had to serve: above 1 % a cohort cannot pass.`,
    );
  }
  if (attainment.undecided) {
    const [low, high] = attainment.undecided;
    note(
      'undecided',
      `${plural(cohort.undecided, 'operation')} ${were(cohort.undecided)} still open when observation ended: attainment lies between ${percentText(low, 3)} and ${percentText(high, 3)}.`,
    );
  }
  if (attainment.value !== null && attainment.shown === 'neither') {
    note(
      'target-not-shown',
      `The interval of attainment reaches to both sides of the target of ${percentText(attainment.target)}: this run does not show either way whether it is held.`,
    );
  }
}

/** Who was counted, and over what window. */
function counting(report: Draft, note: Write): void {
  const { window, run, cohort } = report;
  if (window.seconds === null) {
    note('no-window', 'No window was planned and none can be estimated from these arrivals: rates are undefined.');
  } else if (window.estimated) {
    note(
      'estimated-window',
      `No window was planned: it is estimated from the arrivals as span·N/(N−1) = ${formatDuration(window.seconds * 1000)}, and so are the rates.`,
    );
  }
  if (run.outside_window) {
    note(
      'outside-window',
      `${plural(run.outside_window, 'operation')} ${were(run.outside_window)} scheduled outside the window and not counted.`,
    );
  }
  if (cohort.excluded > 0) {
    note('excluded', `The contract takes ${plural(cohort.excluded, 'operation')} out of the denominator.`);
  }
  for (const [name, count] of Object.entries(report.unmeasurable)) {
    note(
      'unmeasurable',
      `${word(name)} could not be measured on ${plural(count, 'operation')}, which counts as a miss.`,
    );
  }
  for (const [name, count] of Object.entries(report.vacuous)) {
    note('vacuous', `${word(name)} is undefined on ${plural(count, 'one-token answer')} and was met vacuously.`);
  }
  if (report.attempts.total > cohort.offered) {
    note(
      'retries',
      `${report.attempts.total} attempts were sent for ${plural(cohort.offered, 'operation')}: retries and hedges are load, each operation counts once.`,
    );
  }
}

/** What the times can and cannot say. */
function timing(report: Draft, fold: CohortFold, note: Write): void {
  const { metrics, cohort, lengths } = report;
  const weak = new Map<string, string[]>();
  for (const name of Object.keys(METRIC_WORDS) as MetricName[]) {
    const m = metrics[name];
    if (!m || m.unsupported.length === 0) continue;
    const key = `${m.unsupported.join(', ')} of ${m.count}`;
    weak.set(key, [...(weak.get(key) ?? []), METRIC_WORDS[name]]);
  }
  if (weak.size > 0) {
    const groups = [...weak].map(([key, names]) => `${key} (${names.join(', ')})`);
    note('unsupported-quantiles', `Marked *: the sample is too small to support ${groups.join('; ')}.`);
  }
  if (fold.coarseFirstChunk > 0) {
    note(
      'coarse-first-chunk',
      `In ${plural(fold.coarseFirstChunk, 'stream')} the first chunk carried more than 10 % of the tokens: TPOT leaves those out and says little there.`,
    );
  }
  const no = fold.exactness.get('no') ?? 0;
  if (metrics.chunk_gap_ms && no > 0) {
    note(
      'gaps-are-not-tokens',
      `${metrics.itl_ms ? `In ${plural(no, 'stream')} a` : 'A'} chunk is not known to be one token: chunk gaps are not inter-token latencies${metrics.itl_ms ? ', and ITL leaves those streams out' : ''}.`,
    );
  }
  if (metrics.itl_ms && metrics.itl_ms.exactness !== 'exact') {
    note('itl-inferred', 'One token a chunk is inferred for ITL: the usage equals the number of chunks.');
  }
  const unknown = fold.tokenSources.get('unknown') ?? 0;
  if (unknown > 0) {
    note('unknown-tokens', `The tokens of ${plural(unknown, 'response')} are unknown: no TPOT there.`);
  }
  if (report.throughput && report.throughput.spread_share > 0) {
    note(
      'spread-tokens',
      `${percentText(report.throughput.spread_share, 3)} of the throughput's tokens are spread evenly over their request's chunks, for want of counts a chunk.`,
    );
  }
  short('output', lengths.asked_output, lengths.achieved_output);
  short('input', lengths.asked_input, lengths.achieved_input);
  if (fold.impliedEnds > 0) {
    note(
      'implied-end',
      `${plural(fold.impliedEnds, 'response')} came in a dialect that marks no end: a truncated one would look complete; compare the lengths asked and achieved.`,
    );
  }
  if (fold.unclassified > 0) {
    note(
      'unclassified-output',
      `${plural(fold.unclassified, 'chunk')} carried output of a kind that is not known; they count as output.`,
    );
  }
  const merged = report.client.coalesced ?? 0;
  if (merged > 0.01) {
    note(
      'coalesced',
      `${percentText(merged, 2)} of the events arrived in the same read as an earlier one: evidence of buffering before the client.`,
    );
  }

  function short(what: 'output' | 'input', asked: number | null, achieved: number | null): void {
    if (asked === null || achieved === null || achieved >= (1 - SHORT) * asked) return;
    note(
      `short-${what}`,
      `Responses had ${percentText(1 - achieved / asked, 2)} fewer ${what} tokens than asked for (${achieved} of ${asked}, over ${cohort.good + cohort.late + cohort.invalid} completed): the load was lighter than it says.`,
    );
  }
}

/** What each metric is called in print. */
export const METRIC_WORDS: Readonly<Record<MetricName, string>> = {
  ttft_ms: 'TTFT',
  ttft_dispatched_ms: 'TTFT from dispatch',
  ttfa_ms: 'TTFA',
  tpot_ms: 'TPOT',
  chunk_gap_ms: 'chunk gap',
  itl_ms: 'ITL',
  max_gap_ms: 'max gap',
  latency_ms: 'last token',
  e2e_ms: 'E2E',
  e2e_dispatched_ms: 'E2E from dispatch',
};

const word = (name: string): string => LIMIT_WORDS[name as keyof typeof LIMIT_WORDS] ?? name;
const were = (n: number): string => (n === 1 ? 'was' : 'were');
const share = (n: number, of: number): string => `${trim((100 * n) / Math.max(1, of), 2)} %`;

export function plural(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? '' : 's'}`;
}
