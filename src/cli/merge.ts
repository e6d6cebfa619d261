/** `goodput merge FILE…`: what servers say of themselves, replicas put together, each figure with what it means. */
import { InputError } from '../base/errors.ts';
import { parseDuration } from '../base/units.ts';
import type { JointLimits, MergeDocument } from '../observe/evidence/index.ts';
import { type Cli, EXIT } from './cli.ts';
import { command, JSON_FLAG, text } from './command.ts';

interface Flags {
  readonly json: boolean;
  readonly window: boolean;
  readonly slo?: readonly string[];
  readonly ttft?: string;
  readonly tpot?: string;
  readonly e2e?: string;
  readonly from?: string;
  readonly to?: string;
}

export const merge = command({
  func: runMerge,
  parameters: {
    flags: {
      json: JSON_FLAG,
      window: {
        kind: 'boolean',
        brief: 'Two arguments are the scrapes before and after: files, or folders whose files of one name are pairs',
        default: false,
      },
      slo: {
        kind: 'parsed',
        parse: String,
        brief: 'Limits to bound joint attainment of: ttft=500ms,tpot=50ms,e2e=30s (may be repeated)',
        placeholder: 'name=value,…',
        optional: true,
        variadic: true,
      },
      ttft: text('A TTFT limit, as in --slo', 'time'),
      tpot: text('A TPOT limit, as in --slo', 'time'),
      e2e: text('An E2E limit, as in --slo', 'time'),
      from: text('Of a scrape folder, only what was scraped from this time on (ISO 8601)', 'time'),
      to: text('Of a scrape folder, only what was scraped up to this time (ISO 8601)', 'time'),
    },
    positional: {
      kind: 'array',
      parameter: {
        brief: 'Metrics of a replica: a file, BEFORE..AFTER for a window, a folder of goodput scrape, or -',
        parse: String,
        placeholder: 'FILE',
      },
      minimum: 1,
    },
  },
  docs: {
    brief: "Put together replicas' server metrics: what each means, quantiles as intervals, windows, imbalance",
    fullDescription:
      'Reads Prometheus text and OpenMetrics of vLLM, SGLang, TGI, TensorRT-LLM, llama.cpp, LMDeploy, Triton, Dynamo,\n' +
      'routers, LiteLLM, OpenTelemetry GenAI and DCGM, also behind Ray and KServe.\n' +
      'Exit codes: 0 all was read, 2 nothing could be, 3 some families or files were not valid and are left out.',
  },
});

export async function runMerge(this: Cli, flags: Flags, ...files: string[]): Promise<void> {
  const [{ evidenceOf, mergeEvidence, renderMerge }, { readSources }] = await Promise.all([
    import('../observe/evidence/index.ts'),
    import('../observe/scrape/sources.ts'),
  ]);
  const limits = await limitsOf(flags);
  const { sources, scraped } = await readSources(files, {
    isWindow: flags.window,
    ...(flags.from !== undefined && { from: time(flags.from, '--from') }),
    ...(flags.to !== undefined && { to: time(flags.to, '--to') }),
  });
  const evidence = evidenceOf(sources);
  const last = sources.map((s) => s.at(-1)!);
  const document = mergeEvidence(
    evidence,
    {
      files: scraped,
      families: last.reduce((n, s) => n + s.families, 0),
      unmapped: last.reduce((n, s) => n + s.unmapped, 0),
    },
    limits,
  );
  if (flags.json) this.stdout.line(terminalSafe(jsonText(document)));
  else this.stdout.write(renderMerge(document, Math.min(this.stdout.columns, 120)));
  this.exit(exitCode(document));
  if (document.replicas.length === 0) {
    this.stderr.line(
      document.families === 0
        ? 'goodput: merge: nothing could be read; see errors'
        : `goodput: merge: none of the ${document.families} metrics is of a known engine; is this the /metrics of an inference server?`,
    );
  }
}

function exitCode(document: MergeDocument): number {
  if (document.replicas.length === 0) return EXIT.usage;
  return document.errors.length > 0 ? EXIT.invalid : EXIT.ok;
}

async function limitsOf(flags: Flags): Promise<JointLimits | undefined> {
  const limits: Record<string, number> = {};
  const set = (name: string, seconds: number): void => {
    if (!(seconds > 0)) throw new InputError(`--${name}: a limit must be above 0`);
    if (limits[name] !== undefined) throw new InputError(`--${name}: the limit is given twice; give it once`);
    limits[name] = seconds;
  };
  if (flags.slo?.length) {
    const { parseSlo } = await import('../core/slo.ts');
    for (const [name, limit] of Object.entries(parseSlo(flags.slo).limits)) {
      if (name !== 'ttft' && name !== 'tpot' && name !== 'e2e') {
        throw new InputError(`--slo: no server tells '${name}'; the limits here are ttft, tpot and e2e`);
      }
      set(name, limit / 1000);
    }
  }
  for (const name of ['ttft', 'tpot', 'e2e'] as const) {
    const given = flags[name];
    if (given !== undefined) set(name, parseDuration(given, `--${name}`) / 1000);
  }
  return Object.keys(limits).length === 0 ? undefined : limits;
}

function time(text: string, what: string): number {
  const at = Date.parse(text);
  if (Number.isNaN(at)) throw new InputError(`${what}: '${text}' is not a time; write it like 2026-11-29T14:05:10Z`);
  return at;
}

/** Indented, but a line a replica: hundreds of them are told. */
function jsonText(document: MergeDocument): string {
  const { replicas, ...rest } = document;
  const text = JSON.stringify({ ...rest, replicas: [] }, null, 2);
  if (replicas.length === 0) return text;
  const rows = replicas.map((row) => `    ${JSON.stringify(row)}`).join(',\n');
  return `${text.slice(0, text.lastIndexOf('[]'))}[\n${rows}\n  ]\n}`;
}

const UNSAFE = /[\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** JSON leaves some characters that terminals act on as they are; written as escapes they are the same text. */
function terminalSafe(json: string): string {
  return json.replace(UNSAFE, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
