/** What the dashboard is handed of this room: a folder's figures come by the one path that `report` takes. */
import type { Readings } from '../dashboard/run-data.ts';
import { storedContracts } from './load-facts.ts';
import { reportOfRun, windowOf } from './run-report.ts';

export const READINGS: Readings = {
  reportOf: (run) => reportOfRun(run),
  windowOf,
  contractsOf: (run) => storedContracts(run.meta.workload),
};
