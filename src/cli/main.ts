#!/usr/bin/env node
/** The command line: which commands there are. Each is one file, and loads the rooms it needs only when it runs. */
import { buildApplication, buildRouteMap, run, text_en } from '@stricli/core';
import { messageOf, UserError } from '../base/errors.ts';
import { parsable } from './argv.ts';
import { cliOf, EXIT } from './cli.ts';
import { VERSION } from './version.ts';

/** By name, in the order of the help. */
const COMMANDS = {
  bench: () => import('./bench.ts').then((m) => m.bench),
  capacity: () => import('./capacity.ts').then((m) => m.capacity),
  report: () => import('./report.ts').then((m) => m.report),
  compare: () => import('./compare.ts').then((m) => m.compare),
  diagnose: () => import('./diagnose.ts').then((m) => m.diagnose),
  import: () => import('./import.ts').then((m) => m.importResults),
  judge: () => import('./judge.ts').then((m) => m.judge),
  inspect: () => import('./inspect.ts').then((m) => m.inspect),
  contract: () => import('./contract.ts').then((m) => m.contract),
  model: () => import('./model.ts').then((m) => m.model),
  simulate: () => import('./simulate.ts').then((m) => m.simulate),
  calibrate: () => import('./calibrate.ts').then((m) => m.calibrate),
  plan: () => import('./plan.ts').then((m) => m.plan),
  proxy: () => import('./proxy.ts').then((m) => m.proxy),
  validate: () => import('./validate.ts').then((m) => m.validate),
  rules: () => import('./rules.ts').then((m) => m.rules),
  merge: () => import('./merge.ts').then((m) => m.merge),
  scrape: () => import('./scrape.ts').then((m) => m.scrape),
  spans: () => import('./spans.ts').then((m) => m.spans),
  live: () => import('./live.ts').then((m) => m.live),
  ui: () => import('./ui.ts').then((m) => m.ui),
  emulate: () => import('./emulate.ts').then((m) => m.emulate),
  doctor: () => import('./doctor.ts').then((m) => m.doctor),
};

// Only the command that is asked for is loaded; the help, and what is no command, need them all.
const asked = process.argv[2];
const names = asked !== undefined && Object.hasOwn(COMMANDS, asked) ? [asked] : Object.keys(COMMANDS);
const commands = await Promise.all(names.map(async (name) => [name, await COMMANDS[name as keyof typeof COMMANDS]()]));

const routes = buildRouteMap({
  routes: Object.fromEntries(commands),
  docs: {
    brief: 'Measure a streaming LLM server under open-loop load and judge every request against a latency contract.',
    fullDescription:
      'Exit codes: 0 fine, 1 the contract or a threshold was missed, 2 bad usage or input, 3 the measurement is not valid.',
  },
});

const app = buildApplication(routes, {
  name: 'goodput',
  versionInfo: { currentVersion: VERSION },
  scanner: { caseStyle: 'allow-kebab-for-camel', allowArgumentEscapeSequence: true },
  determineExitCode: (error) => (error instanceof UserError ? error.exitCode : EXIT.defect),
  localization: {
    text: {
      ...text_en,
      exceptionWhileRunningCommand: (error) =>
        error instanceof UserError
          ? `goodput: ${messageOf(error)}`
          : `goodput: a defect of ours, please report it:\n${error instanceof Error ? error.stack : String(error)}`,
      commandErrorResult: (error) => `goodput: ${messageOf(error)}`,
    },
  },
});

const cli = cliOf(process);
// A reader that stops early (`| head`) is no error of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(process.exitCode ?? EXIT.ok);
  throw error;
});
await run(app, parsable(process.argv.slice(2)), cli);
// The library marks bad usage with negative codes.
if (typeof process.exitCode === 'number' && process.exitCode < 0) process.exitCode = EXIT.usage;
