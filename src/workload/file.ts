/**
 * Workloads as files: YAML, or JSON (which is YAML). The schema below is the documentation; unknown keys are refused with
 * the nearest name. Import this file lazily: zod and yaml take a while to load. Files a workload names are not opened here.
 */
import { z } from 'zod';
import { InputError, messageOf, oneLine } from '../base/errors.ts';
import { didYouMean } from '../base/nearest.ts';
import { parseDuration, parseShare } from '../base/units.ts';
import { placedYaml } from '../core/placed-yaml.ts';
import { ARRIVALS } from './arrivals.ts';
import { DATASET_FORMAT_NAMES, DEFAULT_SAMPLE, MAX_SAMPLE } from './datasets/index.ts';
import { MAX_SIDE } from './images.ts';
import { type LengthPlan, MAX_LENGTH, parseLength } from './lengths.ts';
import { parsePause } from './pauses.ts';
import { MAX_TOOLS } from './tools.ts';
import { TRACE_FORMAT_NAMES } from './traces/formats.ts';

const MAX_TEXT = 1_000_000;
export const WORKLOAD_SCHEMA = 'goodput.workload/1';

const NAME = z
  .string()
  .regex(/^[\w .:/-]{1,60}$/, { error: 'write a name of up to 60 letters, digits and . : / _ - only' });

function read<T>(context: z.core.$RefinementCtx<unknown>, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    context.issues.push({ code: 'custom', message: messageOf(error).replace(/^: /, ''), input: context.value });
    return z.NEVER;
  }
}

const tokenCount = z.int().min(1).max(MAX_LENGTH);
const BIN = z.strictObject({ from: tokenCount, to: tokenCount, weight: z.number().positive() });
const COLUMN = z
  .strictObject({
    file: z.string().min(1).describe('A CSV file with a header, beside the workload file.'),
    column: z.string().min(1).describe('The column that holds the lengths.'),
  })
  .describe('Lengths of a file, each as likely as it is frequent there.');

const LENGTH = z
  .union([
    tokenCount,
    z.string(),
    z.strictObject({ empirical: z.array(tokenCount).min(1).max(100_000) }),
    z.strictObject({ histogram: z.array(BIN).min(1).max(10_000) }),
    COLUMN,
  ])
  .transform((value, context): LengthPlan | { readonly file: string; readonly column: string } =>
    read(context, () => {
      if (typeof value === 'number') return { kind: 'fixed', tokens: value };
      if (typeof value === 'string') return parseLength(value, '');
      if ('empirical' in value) return { kind: 'empirical', values: value.empirical };
      if ('file' in value) return value;
      for (const bin of value.histogram) if (bin.to < bin.from) throw new InputError('a bin ends below its start');
      return {
        kind: 'histogram',
        bins: value.histogram.map(({ from, to, weight }) => ({ low: from, high: to, weight })),
      };
    }),
  );

const length = (meaning: string) =>
  LENGTH.describe(
    `${meaning}. 512, uniform:100-900, lognormal:512,0.5, gamma:512,0.5 (mean, cv), { empirical: […] }, { histogram: [{ from, to, weight }] } or { file, column }.`,
  );
const duration = (meaning: string) =>
  z
    .string({ error: 'write it with a unit, like 500ms or 30s' })
    .transform((text, context) => read(context, () => parseDuration(text, '')))
    .describe(`${meaning}. A duration with a unit: 500ms, 30s, 2m.`);
const share = (meaning: string) =>
  z
    .union([z.string(), z.number()])
    .transform((value, context) => read(context, () => parseShare(String(value), '')))
    .describe(`${meaning}. A share: 0.9 or 90%.`);

const PREFIX_LEVEL = z.strictObject({
  tokens: tokenCount.describe('Tokens of each node.'),
  branches: z.int().min(1).max(100_000).describe('Children of each node of the level above.').default(1),
  skew: z.number().min(0).max(10).describe('Zipf exponent of their popularity; 0 is even.').default(0),
});
const PREFIX = z
  .strictObject({
    name: NAME.describe('Classes that name the same prefix share its text. Default: the class’s own.').optional(),
    tokens: tokenCount.describe('Tokens of the shared prefix, beside the request’s own input.').optional(),
    groups: z.int().min(1).max(100_000).describe('Groups with a prefix each; 1 is one for all.').optional(),
    skew: z.number().min(0).max(10).describe('Zipf exponent of the groups’ popularity; 0 is even.').optional(),
    tree: z.array(PREFIX_LEVEL).min(1).max(10).describe('A prefix tree instead: its levels from the root.').optional(),
  })
  .describe('A beginning shared by requests, sent as the system message.');

const SESSION = z
  .strictObject({
    turns: length('Turns of a session; of a dataset’s conversations at most so many').optional(),
    think: z
      .string()
      .transform((text, context) => read(context, () => parsePause(text, '')))
      .describe('From the end of an answer to the next question: 5s, exponential:5s, uniform:1s-9s, lognormal:5s,0.8.'),
    context: tokenCount.describe('A session ends before the turn that would exceed this many tokens.').optional(),
  })
  .describe('Conversations: each turn is sent with all that went before.');

const TOOL = z.strictObject({
  name: z.string().min(1),
  description: z.string().optional(),
  parameters: z.record(z.string(), z.unknown()).optional(),
});

const DATASET = z
  .strictObject({
    file: z.string().min(1).describe('Beside the workload file.'),
    format: z
      .enum(DATASET_FORMAT_NAMES as ['sharegpt', 'jsonl', 'json', 'text'])
      .describe('By its name when left out.')
      .optional(),
    sample: z.int().min(1).max(MAX_SAMPLE).describe('Prompts kept, a uniform sample by seed.').default(DEFAULT_SAMPLE),
    output: z.enum(['file', 'class']).describe('Where answer lengths come from.').default('file'),
  })
  .describe('Prompts of a file instead of synthesised ones.');

/** Limits in short form; `contract` names a file or preset instead. */
const CLASS = z
  .strictObject({
    name: NAME,
    share: z.number().positive().describe('Weight among the classes.').default(1),
    input: length('Tokens of a prompt’s own part').optional(),
    output: length('Tokens of an answer').optional(),
    n: z.int().min(1).max(128).describe('Choices a request asks for.').default(1),
    stream: z.boolean().default(true),
    ignore_eos: z.boolean().describe('Ask for exactly the output length, where the server can be asked.').optional(),
    prefix: PREFIX.optional(),
    session: SESSION.optional(),
    images: z
      .strictObject({
        width: z.int().min(1).max(MAX_SIDE),
        height: z.int().min(1).max(MAX_SIDE),
        count: z.int().min(1).max(64).default(1),
      })
      .describe('Synthesised PNGs in each request; their tokens are beside the input.')
      .optional(),
    tools: z
      .union([z.int().min(1).max(MAX_TOOLS), z.array(TOOL).min(1).max(MAX_TOOLS)])
      .describe('Tool definitions: how many to synthesise, or the definitions themselves.')
      .optional(),
    dataset: DATASET.optional(),
    slo: z.string().describe('This class’s own limits: ttft=500ms,tpot=50ms. Default: the run’s contract.').optional(),
    contract: z
      .string()
      .describe('This class’s own contract: a contract file beside this one, or a preset.')
      .optional(),
    attainment: share('The share of this class that must be good').optional(),
    deadline: duration('This class’s deadline').optional(),
  })
  .describe('A kind of request.');

const FILE = z
  .strictObject({
    schema: z.literal(WORKLOAD_SCHEMA).describe('The version of this format.').optional(),
    name: NAME.describe('What reports call it.').optional(),
    rate: z
      .number()
      .positive()
      .describe('Requests per second; sessions per second where a class has sessions.')
      .optional(),
    arrivals: z
      .enum(ARRIVALS as ['poisson', 'constant', 'gamma'])
      .describe('How requests arrive.')
      .optional(),
    burstiness: z.number().positive().describe('Shape of gamma arrivals: 1 is Poisson, below 1 burstier.').optional(),
    cache: z
      .enum(['cold', 'warm', 'as-is'])
      .describe(
        'cold (default): no text of an earlier run comes again; warm: cold, and each shared prefix is sent once before the warm-up; as-is: texts follow from the seed alone.',
      )
      .optional(),
    classes: z.array(CLASS).min(1).max(100).optional(),
    replay: z
      .strictObject({
        file: z.string().min(1).describe('Beside the workload file.'),
        format: z
          .enum(TRACE_FORMAT_NAMES as ['azure'])
          .describe('By its beginning when left out.')
          .optional(),
        time_scale: z.number().positive().describe('Every interval times this.').optional(),
        rate_scale: z.number().positive().describe('Requests per second times this, the clock kept.').optional(),
        slice: z.string().describe('Part of it: 10m-20m, or 0-1000 requests.').optional(),
        sessions: z
          .boolean()
          .describe('Turns of a session follow the answer before them, instead of each at its own time.')
          .optional(),
      })
      .describe('A trace instead of an arrival process; classes then only give contracts by name.')
      .optional(),
  })
  .describe('A workload of goodput.');

export type WorkloadFile = z.output<typeof FILE>;
export type ClassFile = z.output<typeof CLASS>;

/** Reads a workload. @param what the file's name, for errors. @throws InputError with the line, the key and what to do. */
export function parseWorkload(text: string, what: string): WorkloadFile {
  const { value, at } = placedYaml(text, what, {
    kind: 'workload',
    like: "'rate:' and 'classes:'",
    longest: MAX_TEXT,
  });
  const parsed = FILE.safeParse(value);
  if (!parsed.success) {
    const issue = deepest(parsed.error.issues[0] as z.core.$ZodIssue, []);
    const path = pathText(issue.path);
    if (issue.unknown !== undefined) {
      const full = path === '' ? issue.unknown : `${path}.${issue.unknown}`;
      throw new InputError(
        `${at(issue.path, issue.unknown)}: unknown key '${oneLine(full, 80)}'${suggest(issue.unknown, issue.path)}`,
      );
    }
    throw new InputError(`${at(issue.path)}: ${path}: ${oneLine(issue.message)}`);
  }
  check(parsed.data, at);
  return parsed.data;
}

/** What the schema cannot say. */
function check(file: WorkloadFile, at: (path: readonly PropertyKey[], key?: string) => string): void {
  if (!file.classes && !file.replay) {
    throw new InputError(`${at([])}: it asks for nothing: give 'classes:' or 'replay:'`);
  }
  if (file.replay) {
    for (const key of ['rate', 'arrivals', 'burstiness'] as const) {
      if (file[key] !== undefined) {
        throw new InputError(
          `${at([key])}: ${key}: a replay has its arrivals from the trace; scale it with replay.time_scale or replay.rate_scale`,
        );
      }
    }
    if (file.cache === 'warm') {
      throw new InputError(
        `${at(['cache'])}: cache: a trace's prefixes are met as they come; 'warm' is for prefixes of classes`,
      );
    }
  }
  const names = new Set<string>();
  file.classes?.forEach((c, i) => {
    const here = (key: string): string => at(['classes', i, key]);
    if (names.has(c.name)) throw new InputError(`${here('name')}: classes[${i}].name: '${c.name}' comes twice`);
    names.add(c.name);
    if (c.slo !== undefined && c.contract !== undefined) {
      throw new InputError(`${here('slo')}: classes[${i}]: slo and contract each name a contract; give one of them`);
    }
    if (c.prefix && (c.prefix.tokens === undefined) === (c.prefix.tree === undefined)) {
      throw new InputError(`${here('prefix')}: classes[${i}].prefix: give either tokens (and groups) or tree`);
    }
    if (c.session && !c.session.turns && !c.dataset) {
      throw new InputError(`${here('session')}: classes[${i}].session: turns: say how many, like 4 or uniform:1-8`);
    }
    if (c.dataset) {
      for (const key of ['input', 'prefix', 'images', 'tools'] as const) {
        if (c[key] !== undefined) {
          throw new InputError(
            `${here(key)}: classes[${i}].${key}: prompts come from the dataset; leave one of them out`,
          );
        }
      }
    }
    if (file.replay) {
      for (const key of ['input', 'output', 'prefix', 'session', 'images', 'tools', 'dataset'] as const) {
        if (c[key] !== undefined) {
          throw new InputError(
            `${here(key)}: classes[${i}].${key}: the trace says what is asked; classes beside a replay only give contracts`,
          );
        }
      }
    }
  });
}

interface Found {
  readonly path: readonly PropertyKey[];
  readonly message: string;
  readonly unknown?: string;
}

/** Unions hide what is wrong in their branches: the branch that came furthest says it. */
function deepest(issue: z.core.$ZodIssue, base: readonly PropertyKey[]): Found {
  const path = [...base, ...issue.path];
  if (issue.code === 'unrecognized_keys') return { path, message: issue.message, unknown: issue.keys[0] as string };
  if (issue.code === 'invalid_union') {
    const inner = issue.errors.flatMap((branch) => branch.slice(0, 1).map((i) => deepest(i, path)));
    const best = inner.sort((a, b) => b.path.length - a.path.length)[0];
    if (best && (best.path.length > path.length || best.unknown !== undefined)) return best;
    return { path, message: 'not one of the forms allowed here; see docs/workloads.md' };
  }
  return { path, message: issue.message };
}

function pathText(path: readonly PropertyKey[]): string {
  return path.map((key, i) => (typeof key === 'number' ? `[${key}]` : `${i === 0 ? '' : '.'}${String(key)}`)).join('');
}

const SHAPES: readonly [RegExp, z.ZodObject][] = [
  [/^$/, FILE],
  [/^classes\[\d+\]$/, CLASS],
  [/\.prefix$/, PREFIX],
  [/\.tree\[\d+\]$/, PREFIX_LEVEL],
  [/\.session$/, SESSION],
  [/\.dataset$/, DATASET],
  [/\.images$/, z.object({ width: z.any(), height: z.any(), count: z.any() })],
  [
    /^replay$/,
    z.object({
      file: z.any(),
      format: z.any(),
      time_scale: z.any(),
      rate_scale: z.any(),
      slice: z.any(),
      sessions: z.any(),
    }),
  ],
];

function suggest(key: string, path: readonly PropertyKey[]): string {
  const text = pathText(path);
  const shape = SHAPES.find(([pattern]) => pattern.test(text))?.[1];
  if (!shape) return '';
  const known = Object.keys(shape.shape);
  return didYouMean(key, known) || `; the keys here are ${known.join(', ')}`;
}

/** The format as JSON Schema (draft 2020-12), for editors and other languages. */
export function workloadJsonSchema(): unknown {
  return z.toJSONSchema(FILE, { io: 'input' });
}
