/** `goodput report RUN --format html`: the pages of the dashboard with one run inside. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Contract } from '../core/contract.ts';
import type { Report } from '../report/report.ts';
import type { RunReader } from '../store/reader.ts';
import { READINGS } from './dashboard-readings.ts';

/** Rows of the timeline that are put inside, ticks and all; further ones are drawn without their ticks. */
const ROWS = 10_000;

export async function reportHtml(run: RunReader, report: Report, contract: Contract): Promise<string> {
  const { exportPage, firstTimelines, packedOf } = await import('../dashboard/index.ts');
  const { readCapacity } = await import('../dashboard/catalogue.ts');
  const other = contract === run.meta.contract ? undefined : contract;
  const packed = await packedOf(run.folder, READINGS, Date.now(), other);
  // A run of a search stands in its `probes/`: the search's curve goes with it.
  const search = [run.folder, dirname(dirname(run.folder))].find((d) => existsSync(join(d, 'capacity.json')));
  return exportPage({
    report,
    status: run.status,
    epoch: run.meta.epochWall,
    packed,
    ...(await firstTimelines(run.folder, packed, ROWS)),
    capacity: search === undefined ? undefined : readCapacity(search),
  });
}
