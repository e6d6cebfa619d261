/** `goodput report RUN` of a folder that holds a search or a sweep: its curve and verdict again, also of one that was cut. */
import { InputError, oneLine } from '../base/errors.ts';
import { trim } from '../base/units.ts';
import { nextStep } from '../drive/capacity/search.ts';
import { limitsText } from '../report/contract-text.ts';
import { curveCsv, curveMarkdown } from '../report/curve-formats.ts';
import { type CapacityReport, renderCapacity } from '../report/curve-report.ts';
import { readJson } from '../store/json.ts';
import { capacityExit } from './capacity.ts';
import { capacityReport } from './capacity-report.ts';
import { readSearch } from './capacity-store.ts';
import type { Cli } from './cli.ts';

/** What a search or sweep found; undefined where the folder holds neither. */
export function readCapacity(folder: string): CapacityReport | undefined {
  const kept = readJson(folder, 'capacity.json');
  if (kept) {
    if (kept.schema !== 'goodput.capacity/1') {
      throw new InputError(
        `${oneLine(folder)}: capacity.json is of schema '${oneLine(String(kept.schema), 40)}', this version reads 'goodput.capacity/1'`,
      );
    }
    return kept as unknown as CapacityReport;
  }
  if (!readJson(folder, 'search.json')) return undefined;
  const { plan, contract, probes, about, gpus, target } = readSearch(folder);
  // Killed before it could conclude: what its runs show so far.
  const step = nextStep(
    plan,
    probes.map((p) => p.measure),
    true,
  );
  if (!('outcome' in step)) throw new Error('internal: a search that was told to stop goes on');
  return capacityReport(
    step.outcome,
    {
      target: target.name,
      ...about,
      contract: `${contract.name}: ${limitsText(contract)}; ${trim(100 * contract.attainment, 4)} % must be good`,
    },
    gpus ?? undefined,
    plan.arrival ? 'sessions' : 'requests',
  );
}

/** Prints it in one of the forms a curve has. @throws InputError for those of single runs. */
export function writeCapacity(cli: Cli, report: CapacityReport, format: string, folder: string): void {
  if (format === 'json') cli.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  else if (format === 'text') cli.stdout.write(renderCapacity(report, cli.stdout));
  else if (format === 'csv') cli.stdout.write(curveCsv(report));
  else if (format === 'md') cli.stdout.write(curveMarkdown(report));
  else {
    throw new InputError(
      `--format ${format}: ${oneLine(folder)} holds a curve, and ${format} is of one run; give a folder under ${oneLine(folder)}/probes, or text, json, csv or md`,
    );
  }
  if (format === 'text' && (report.end === 'interrupted' || report.end === 'client-bound')) {
    cli.stdout.line(`Go on with: goodput capacity --resume ${oneLine(folder)}`);
  }
  cli.exit(capacityExit(report));
}
