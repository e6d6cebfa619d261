/** `goodput bench`: load a server, time every chunk, judge every request, keep everything in a run folder. */
import { InputError } from '../base/errors.ts';
import type { BenchFlags } from './bench-run.ts';
import { SCRAPE_FLAGS } from './bench-scrape.ts';
import { type Cli, command, JSON_FLAG } from './command.ts';
import { LOAD_FLAGS, numberFlags } from './load-flags.ts';
import { exitCodeOf } from './report.ts';
import { SLO_FLAGS } from './slo-flags.ts';
import { TARGET_FLAGS } from './target.ts';

export const bench = command({
  func: runBench,
  parameters: {
    flags: {
      ...LOAD_FLAGS,
      ...SLO_FLAGS,
      ...TARGET_FLAGS,
      ...SCRAPE_FLAGS,
      seed: {
        kind: 'parsed',
        parse: seed,
        optional: true,
        brief: 'Seed of everything drawn (default 1)',
        placeholder: 'N',
      },
      maxInFlight: {
        kind: 'parsed',
        parse: numberFlags.whole('max-in-flight'),
        optional: true,
        brief: 'What would exceed this is counted as unsent',
        placeholder: 'N',
      },
      retries: {
        kind: 'parsed',
        parse: numberFlags.whole('retries'),
        optional: true,
        brief: 'Retry refused and broken requests this often, folded into one operation (default: never)',
        placeholder: 'N',
      },
      coolDown: { kind: 'boolean', default: true, brief: 'Keep up the load until the measured requests are final' },
      gpus: {
        kind: 'parsed',
        parse: numberFlags.whole('gpus'),
        optional: true,
        brief: 'GPUs behind the endpoint, for goodput per GPU',
        placeholder: 'N',
      },
      rates: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'Several rates into one folder with one curve: 1,2,4,8, or ramps 1..8/0.5 and 1..64*2',
        placeholder: 'list',
      },
      out: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'Folder for run folders (default runs)',
        placeholder: 'DIR',
      },
      name: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'Name of the run (default bench)',
        placeholder: 'name',
      },
      repeat: {
        kind: 'parsed',
        parse: numberFlags.whole('repeat'),
        optional: true,
        brief: 'Measure this often, each run with the next seed (default 3 with --against)',
        placeholder: 'N',
      },
      against: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'Measure another server in turn with the first, same seeds, and compare the two',
        placeholder: 'URL',
      },
      calibrate: {
        kind: 'boolean',
        default: false,
        brief: "Ask the server's /tokenize what it makes of our words, so that prompts come out at their length",
      },
      yes: { kind: 'boolean', default: false, brief: 'Do not ask before a large plan off loopback' },
      json: JSON_FLAG,
    },
    aliases: { n: 'n', y: 'yes' },
    positional: {
      kind: 'tuple',
      parameters: [
        {
          brief:
            "Endpoint, as http://host:8000 or …/v1/chat/completions; 'null:' measures the tool itself; none: the embedded engine",
          parse: String,
          placeholder: 'URL',
          optional: true,
        },
      ],
    },
  },
  docs: {
    brief: 'Load a streaming server, time every chunk and judge every request',
    fullDescription:
      'Without a URL it measures an embedded engine on loopback, so that the whole path can be tried anywhere.\n' +
      'Ctrl-C once ends the arrivals and reports what was offered; twice ends at once, what is open is undecided.\n' +
      'Exit codes: 0 the attainment target is met, 1 it is missed, 2 bad input, 3 the client was the bottleneck.',
  },
});

async function runBench(this: Cli, flags: BenchFlags, url?: string): Promise<void> {
  if (flags.scrape !== undefined && (flags.rates ?? flags.against) !== undefined)
    throw new InputError(
      '--scrape: it goes with one server and one rate; leave --rates and --against, or run goodput scrape',
    );
  if (flags.rates !== undefined)
    return (await import('./sweep.ts')).sweepBench(this, { ...flags, rates: flags.rates }, url);
  const { benchOnce } = await import('./bench-run.ts');
  if (flags.repeat !== undefined || flags.against !== undefined) {
    const { repeated } = await import('./repeat.ts');
    const times = flags.repeat ?? 3;
    const asked = new Set<'A' | 'B'>();
    return repeated(this, {
      times,
      seed: flags.seed ?? 1,
      json: flags.json,
      against: flags.against !== undefined,
      once: (side, seed, group) => {
        const again = { ...flags, seed, yes: flags.yes || asked.has(side) };
        const told = asked.has(side) ? 'all' : asked.size > 0 ? 'load' : 'nothing';
        asked.add(side);
        return benchOnce(this, again, side === 'A' ? url : flags.against, { group, times, told });
      },
    });
  }
  const { folder, report } = await benchOnce(this, flags, url);
  const { renderReport, reportJson } = await import('../report/index.ts');
  this.stdout.write(flags.json ? reportJson(report) : renderReport(report, this.stdout));
  if (!flags.json) this.stdout.line(`Run folder: ${folder}  (goodput report ${folder})`);
  else this.stderr.line(`Run folder: ${folder}`);
  this.exit(exitCodeOf(report));
}

function seed(text: string): number {
  const n = Number(text);
  if (!Number.isSafeInteger(n) || n < 0) throw new InputError(`--seed: '${text}' is not a whole number from 0 on`);
  return n;
}
