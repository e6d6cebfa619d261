/** Opens what a workload names: the YAML file, and the traces, datasets, length columns and contracts beside it. */
import { createReadStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { InputError, messageOf } from '../base/errors.ts';
import { parseDuration } from '../base/units.ts';
import { type Contract, contractOf } from '../core/contract.ts';
import { PRESETS } from '../core/presets.ts';
import { checkContract, defaultDeadline, parseSlo } from '../core/slo.ts';
import { Reservoir } from '../workload/dataset.ts';
import { DATASET_FORMATS, datasetFormat } from '../workload/datasets/index.ts';
import type { ClassFile, WorkloadFile } from '../workload/file.ts';
import {
  type ClassPlan,
  type LengthPlan,
  type PrefixPlan,
  parseLength,
  REQUEST_DEFAULTS,
  type Slice,
  syntheticTools,
  type Trace,
  type TraceFormat,
} from '../workload/index.ts';
import { eachRow, wholeCell } from '../workload/traces/csv.ts';
import { readTrace } from '../workload/traces/formats.ts';
import { scaleTrace } from '../workload/traces/scale.ts';

/** A workload with everything it names read. */
export interface ReadWorkload {
  readonly file: WorkloadFile;
  readonly name: string;
  readonly classes?: readonly ClassPlan[];
  readonly trace?: Trace;
  /** Contracts of classes that have their own. */
  readonly contracts: Readonly<Record<string, Contract>>;
}

/** The text of a file in pieces. @throws InputError when it cannot be read. */
export async function* textOfFile(path: string, what: string): AsyncGenerator<string> {
  try {
    if (!(await stat(path)).isFile()) throw new Error('not a file');
    for await (const chunk of createReadStream(path, { encoding: 'utf8', highWaterMark: 1 << 18 }))
      yield chunk as string;
  } catch (error) {
    if (error instanceof InputError) throw error;
    throw new InputError(`cannot read ${what}: ${messageOf(error)}`, { cause: error });
  }
}

export interface ReplayOptions {
  readonly format?: TraceFormat;
  readonly timeScale?: number;
  readonly rateScale?: number;
  readonly slice?: string;
  readonly sessions?: boolean;
}

/** Reads, slices and scales a trace. */
export async function readReplay(path: string, options: ReplayOptions, seed: number): Promise<Trace> {
  const trace = await readTrace(textOfFile(path, path), path, {
    ...(options.format && { format: options.format }),
    ...(options.slice !== undefined && { slice: parseSlice(options.slice) }),
    ...(options.sessions && { sessions: true }),
  });
  return scaleTrace(
    trace,
    {
      ...(options.timeScale !== undefined && { time: options.timeScale }),
      ...(options.rateScale !== undefined && { rate: options.rateScale }),
    },
    seed,
  );
}

/** Reads `10m-20m` (since the first request) or `0-1000` (requests). @throws InputError */
export function parseSlice(text: string): Slice {
  const parts = text.split('-');
  const [from = '', to = ''] = parts;
  const bad = new InputError(`--slice: '${text}' is not FROM-TO; write 10m-20m, or 0-1000 for requests`);
  if (parts.length !== 2) throw bad;
  const counted = /^\d+$/.test(from) && /^\d+$/.test(to);
  const slice: Slice = counted
    ? { by: 'count', from: Number(from), to: Number(to) }
    : {
        by: 'time',
        from: /^0+$/.test(from) ? 0 : Math.round(parseDuration(from, '--slice') * 1000),
        to: Math.round(parseDuration(to, '--slice') * 1000),
      };
  if (!(slice.to > slice.from)) throw bad;
  return slice;
}

/** @throws InputError naming file, line and key. */
export async function readWorkload(path: string, seed: number): Promise<ReadWorkload> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw new InputError(`cannot read the workload: ${messageOf(error)}`, { cause: error });
  }
  const { parseWorkload } = await import('../workload/file.ts');
  const file = parseWorkload(text, path);
  const beside = (name: string): string => (isAbsolute(name) ? name : join(dirname(path), name));
  const contracts: Record<string, Contract> = {};
  for (const c of file.classes ?? []) {
    const contract = await contractOfClass(c, `${path}: class ${c.name}`, beside);
    if (contract) contracts[c.name] = contract;
  }
  const classes: ClassPlan[] = [];
  if (!file.replay) for (const c of file.classes ?? []) classes.push(await classOf(c, beside, seed));
  const { replay } = file;
  const trace =
    replay &&
    (await readReplay(
      beside(replay.file),
      {
        ...(replay.format && { format: replay.format }),
        ...(replay.time_scale !== undefined && { timeScale: replay.time_scale }),
        ...(replay.rate_scale !== undefined && { rateScale: replay.rate_scale }),
        ...(replay.slice !== undefined && { slice: replay.slice }),
        ...(replay.sessions && { sessions: true }),
      },
      seed,
    ));
  for (const name of Object.keys(contracts)) {
    if (trace && !trace.classes.includes(name)) {
      throw new InputError(
        `${path}: class '${name}' is not in the trace, whose classes are ${trace.classes.join(', ')}`,
      );
    }
  }
  return {
    file,
    name: file.name ?? basename(path),
    ...(trace ? { trace } : { classes }),
    contracts,
  };
}

async function classOf(c: ClassFile, beside: (name: string) => string, seed: number): Promise<ClassPlan> {
  const input = await lengthOf(c.input, REQUEST_DEFAULTS.input, beside, seed);
  const output = await lengthOf(c.output, REQUEST_DEFAULTS.output, beside, seed);
  const dataset =
    c.dataset &&
    (await DATASET_FORMATS[datasetFormat(c.dataset.file, c.dataset.format)](
      textOfFile(beside(c.dataset.file), c.dataset.file),
      c.dataset.file,
      { sample: c.dataset.sample, seed, outputOfFile: c.dataset.output === 'file' },
    ));
  const turns = c.session?.turns && (await lengthOf(c.session.turns, REQUEST_DEFAULTS.input, beside, seed));
  if (dataset && c.session && !dataset.entries.some((entry) => (entry.turns?.length ?? 1) > 1)) {
    throw new InputError(`${dataset.name}: no conversation has more than one turn; leave 'session' out`);
  }
  return {
    name: c.name,
    share: c.share,
    input,
    output,
    choices: c.n,
    stream: c.stream,
    // A dataset's prompts are real questions: their answers may end by themselves.
    ignoreEos: c.ignore_eos ?? !dataset,
    ...(c.prefix && { prefix: prefixOf(c.prefix, c.name) }),
    ...(c.session && {
      session: {
        think: c.session.think,
        ...(turns && { turns }),
        ...(c.session.context && { context: c.session.context }),
      },
    }),
    ...(c.images && { images: c.images }),
    ...(c.tools !== undefined && {
      tools:
        typeof c.tools === 'number'
          ? syntheticTools(c.tools)
          : c.tools.map(({ name, description, parameters }) => ({
              name,
              ...(description !== undefined && { description }),
              ...(parameters && { parameters }),
            })),
    }),
    ...(dataset && { dataset }),
  };
}

function prefixOf(p: NonNullable<ClassFile['prefix']>, name: string): PrefixPlan {
  return {
    name: p.name ?? `class ${name}`,
    levels: p.tree ?? [{ tokens: p.tokens as number, branches: p.groups ?? 1, skew: p.skew ?? 0 }],
  };
}

/** Values kept of a column: enough for any quantile that matters. */
const COLUMN_SAMPLE = 100_000;

async function lengthOf(
  plan: ClassFile['input'],
  fallback: LengthPlan,
  beside: (name: string) => string,
  seed: number,
): Promise<LengthPlan> {
  if (plan === undefined) return fallback;
  if (!('file' in plan)) return plan;
  const { file, column } = plan;
  const sample = new Reservoir<number>(COLUMN_SAMPLE, seed, 'length-column');
  await eachRow(textOfFile(beside(file), file), file, [column], [], (cell, where) => {
    const tokens = wholeCell(cell(column), column, where);
    if (tokens >= 1) parseLength(String(tokens), where); // the cap, with its words
    sample.add(Math.max(1, tokens));
  });
  if (sample.seen === 0) throw new InputError(`${file}: column '${column}' holds no length`);
  return { kind: 'empirical', values: Int32Array.from(sample.items), from: `${column} in ${file}` };
}

async function contractOfClass(
  c: ClassFile,
  what: string,
  beside: (name: string) => string,
): Promise<Contract | undefined> {
  const given = c.slo ?? c.contract ?? c.attainment ?? c.deadline;
  if (given === undefined) return undefined;
  let base: Contract;
  if (c.slo !== undefined) {
    const terms = parseSlo([c.slo]);
    base = contractOf(terms.limits, { deadline: terms.deadline ?? defaultDeadline(terms.limits), name: c.name });
  } else if (c.contract !== undefined) {
    const { readContract } = await import('./slo-flags.ts');
    base = Object.hasOwn(PRESETS, c.contract)
      ? PRESETS[c.contract as keyof typeof PRESETS].contract
      : await readContract(beside(c.contract));
  } else
    throw new InputError(
      `${what}: attainment and deadline change a contract of the class's own; give slo or contract too`,
    );
  return checkContract(
    {
      ...base,
      ...(c.attainment !== undefined && { attainment: c.attainment }),
      ...(c.deadline !== undefined && { deadline: c.deadline }),
    },
    what,
  );
}
