#!/usr/bin/env node
/** The command line: which commands there are. Each is one file, and loads the rooms it needs only when it runs. */
import { buildApplication, buildRouteMap, run, text_en } from '@stricli/core';
import { messageOf, UserError } from '../base/errors.ts';
import { parsable } from './argv.ts';
import { bench } from './bench.ts';
import { calibrate } from './calibrate.ts';
import { capacity } from './capacity.ts';
import { cliOf, EXIT } from './cli.ts';
import { compare } from './compare.ts';
import { contract } from './contract.ts';
import { diagnose } from './diagnose.ts';
import { doctor } from './doctor.ts';
import { emulate } from './emulate.ts';
import { importResults } from './import.ts';
import { inspect } from './inspect.ts';
import { judge } from './judge.ts';
import { live } from './live.ts';
import { merge } from './merge.ts';
import { model } from './model.ts';
import { plan } from './plan.ts';
import { proxy } from './proxy.ts';
import { report } from './report.ts';
import { rules } from './rules.ts';
import { scrape } from './scrape.ts';
import { simulate } from './simulate.ts';
import { spans } from './spans.ts';
import { ui } from './ui.ts';
import { validate } from './validate.ts';
import { VERSION } from './version.ts';

const routes = buildRouteMap({
  routes: {
    bench,
    capacity,
    report,
    compare,
    diagnose,
    import: importResults,
    judge,
    inspect,
    contract,
    model,
    simulate,
    calibrate,
    plan,
    proxy,
    validate,
    rules,
    merge,
    scrape,
    spans,
    live,
    ui,
    emulate,
    doctor,
  },
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
