/**
 * Contracts as files: YAML, or JSON (which is YAML). The schema below is the documentation; unknown keys are refused,
 * since a misspelt limit would silently promise nothing. Import this file lazily: zod and yaml take a while to load.
 */
import { z } from 'zod';
import { InputError, messageOf, oneLine } from '../base/errors.ts';
import { didYouMean } from '../base/nearest.ts';
import { type Millis, parseShare, trim } from '../base/units.ts';
import { CONTRACT_DEFAULTS, type Contract, LIMIT_NAMES, type LimitName, type Limits } from './contract.ts';
import { placedYaml } from './placed-yaml.ts';
import { PRESETS, type Preset, SOURCES } from './presets.ts';
import { checkContract, defaultDeadline, parseLimit, SLO_NAMES } from './slo.ts';

/** A file longer than this is no contract. */
const MAX_LENGTH = 100_000;

const duration = (of: LimitName | 'deadline', meaning: string) =>
  z
    .string({ error: 'write it with a unit, like 500ms or 30s' })
    .transform((text, context): number => read(context, () => parseLimit(of, text, '')))
    .describe(`${meaning}. A duration with a unit: 500ms, 30s, 2m.`);

const share = (meaning: string) =>
  z
    .union([z.string(), z.number()], { error: 'write a share like 0.9 or 90%' })
    .transform((value, context): number => read(context, () => parseShare(String(value), '')))
    .describe(`${meaning}. A share: 0.9 or 90%.`);

function read(context: z.core.$RefinementCtx<unknown>, parse: () => number): number {
  try {
    return parse();
  } catch (error) {
    context.issues.push({ code: 'custom', message: messageOf(error).replace(/^: /, ''), input: context.value });
    return Number.NaN;
  }
}

const LIMITS = z
  .strictObject({
    ttft: duration('ttft', 'First output − start').optional(),
    ttfa: duration('ttfa', 'First output that is not reasoning − start').optional(),
    tpot: duration('tpot', 'Mean time of each token after the first').optional(),
    gap: duration('gap', 'The largest gap between two chunks').optional(),
    smoothness: share('Fewest tokens received by their deadline; needs ttft and tpot').optional(),
    latency: duration('latency', 'Last output − start').optional(),
    e2e: duration('e2e', 'End of the response − start').optional(),
  })
  .describe('Limits that must all hold on the same operation.');

const VALID = z
  .strictObject({
    min_tokens: z
      .int()
      .min(0)
      .describe('Fewest tokens of a valid response (chunks, where tokens are unknown).')
      .optional(),
    min_share_of_asked: share('Fewest tokens as a share of those asked for; 0 asks nothing').optional(),
    finish: z
      .array(z.enum(['stop', 'length', 'tool', 'filtered', 'aborted', 'other']))
      .min(1)
      .describe('Finishes that are a valid end.')
      .optional(),
  })
  .describe('What a valid response is.');

const CASES = z
  .strictObject({
    cancelled: z
      .enum(['not-good', 'observed', 'exclude'])
      .describe('not-good counts against; observed: against when a limit was already broken, else excluded; exclude.')
      .optional(),
    non_streamed: z
      .enum(['unmeasurable', 'skip', 'exclude'])
      .describe('A whole answer without a stream: its unmeasurable limits count as missed, are skipped, or exclude it.')
      .optional(),
    one_token: z
      .enum(['vacuous', 'late'])
      .describe('A limit undefined because the answer is one token: met vacuously, or late.')
      .optional(),
    unmeasurable: z
      .enum(['late', 'skip', 'exclude'])
      .describe('A limit that could not be measured: late, skipped, or the operation is excluded.')
      .optional(),
  })
  .describe('How the edges are classed.');

const FILE = z
  .strictObject({
    schema: z.literal('goodput.contract/1').describe('The version of this format.').optional(),
    name: z.string().min(1).max(100).describe('What reports call it.').optional(),
    boundary: z
      .enum(['scheduled', 'dispatched'])
      .describe("Where the clock starts: scheduled counts the client's own queue, dispatched does not.")
      .optional(),
    attainment: share('The target: the share of operations that must be good').optional(),
    deadline: duration('deadline', 'An operation not complete by then has timed out').optional(),
    limits: LIMITS.optional(),
    valid: VALID.optional(),
    cases: CASES.optional(),
  })
  .describe('A latency contract of goodput.');

/** Reads a contract. @param what the file's name, for errors. @throws InputError with the line, the key and what to do. */
export function parseContract(text: string, what: string): Contract {
  const { value, at } = placedYaml(text, what, {
    kind: 'contract',
    like: "'limits:' and 'attainment:'",
    longest: MAX_LENGTH,
  });
  const parsed = FILE.safeParse(value);
  if (parsed.success) return checkContract(build(parsed.data, what), what);

  const issue = parsed.error.issues[0] as z.core.$ZodIssue;
  const unknown = issue.code === 'unrecognized_keys' ? issue.keys[0] : undefined;
  const path = unknown === undefined ? issue.path : [...issue.path, unknown];
  const place = unknown === undefined ? at(path) : at(issue.path, unknown);
  if (unknown !== undefined)
    throw new InputError(`${place}: unknown key '${oneLine(path.join('.'), 80)}'${suggest(unknown, issue.path)}`);
  throw new InputError(`${place}: ${path.join('.')}: ${issue.message}`);
}

function build(file: z.output<typeof FILE>, what: string): Contract {
  const limits = present(file.limits ?? {}) as Limits;
  const d = CONTRACT_DEFAULTS;
  if (Object.keys(limits).length === 0 && file.deadline === undefined) {
    throw new InputError(
      `${what}: it promises nothing: set at least one limit, like 'limits: { ttft: 500ms }', or a deadline`,
    );
  }
  return {
    name: oneLine(file.name ?? 'custom', 100),
    boundary: file.boundary ?? d.boundary,
    limits,
    deadline: file.deadline ?? defaultDeadline(limits),
    valid: {
      minTokens: file.valid?.min_tokens ?? d.valid.minTokens,
      minShareOfAsked: file.valid?.min_share_of_asked ?? d.valid.minShareOfAsked,
      finish: file.valid?.finish ?? d.valid.finish,
    },
    cases: {
      cancelled: file.cases?.cancelled ?? d.cases.cancelled,
      nonStreamed: file.cases?.non_streamed ?? d.cases.nonStreamed,
      oneToken: file.cases?.one_token ?? d.cases.oneToken,
      unmeasurable: file.cases?.unmeasurable ?? d.cases.unmeasurable,
    },
    attainment: file.attainment ?? d.attainment,
  };
}

function present(limits: object): object {
  return Object.fromEntries(Object.entries(limits).filter(([, v]) => v !== undefined));
}

/** The keys allowed at `path`, and for limits what another tool's word would be here. */
function suggest(key: string, path: readonly PropertyKey[]): string {
  const schemas: Readonly<Record<string, z.ZodObject>> = { limits: LIMITS, valid: VALID, cases: CASES };
  const known = Object.keys((path.length === 0 ? FILE : (schemas[String(path[0])] ?? FILE)).shape);
  const alias = path[0] === 'limits' && Object.hasOwn(SLO_NAMES, key) ? SLO_NAMES[key] : undefined;
  if (alias === 'deadline') return '; the deadline stands at the top level, beside limits';
  if (alias !== undefined) return ` (did you mean '${alias}'?)`;
  // A limit written one level too high is the common slip.
  if (path.length === 0 && (LIMIT_NAMES as readonly string[]).includes(key)) return `; write it under 'limits:'`;
  return didYouMean(key, known) || `; the keys here are ${known.join(', ')}`;
}

/** The format as JSON Schema (draft 2020-12), for editors and other languages. */
export function contractJsonSchema(): unknown {
  return z.toJSONSchema(FILE, { io: 'input' });
}

/** A contract as YAML; with a preset, every line says why. Parses back to the same contract. */
export function contractYaml(contract: Contract, preset?: Preset): string {
  const { valid, cases } = contract;
  const out: string[] = [];
  const note = (text: string, indent = ''): void => {
    for (const line of wrap(text, 100 - indent.length)) out.push(`${indent}# ${line}`);
  };
  if (preset) {
    note(`A contract for ${preset.who}.`);
    note(`It protects: ${preset.protects.join(', ')}. ${preset.leaves}`);
    note("Copy it, edit the numbers to what your users put up with, and check it with 'goodput contract FILE'.");
    out.push('');
  }
  out.push('schema: goodput.contract/1', `name: ${JSON.stringify(contract.name)}`, '');
  if (preset) note(`The share of all offered operations that must be good: ${preset.whyAttainment}.`);
  out.push(`attainment: ${percent(contract.attainment)}`, '');
  if (preset)
    note("Where the clock starts. 'scheduled' counts the client's own queue, so nothing is omitted; or 'dispatched'.");
  out.push(`boundary: ${contract.boundary}`, '');
  if (preset)
    note(`An operation not complete by then has timed out, also if it completes later: ${preset.whyDeadline}.`);
  out.push(`deadline: ${exact(contract.deadline)}`, '');
  if (preset) note('Limits that must all hold on the same operation. Leave out what you do not promise.');
  out.push('limits:');
  for (const name of LIMIT_NAMES) {
    const limit = contract.limits[name];
    if (limit === undefined) continue;
    const why = preset?.why[name];
    if (why) note(`${LIMIT_MEANING[name]}: ${why}.`, '  ');
    out.push(`  ${name}: ${name === 'smoothness' ? percent(limit) : exact(limit)}`);
  }
  if (LIMIT_NAMES.every((name) => contract.limits[name] === undefined)) out[out.length - 1] = 'limits: {}';
  out.push('');
  if (preset) note('What a valid response is. An answer outside this is invalid, however fast.');
  out.push('valid:');
  if (preset) note('An empty answer is invalid.', '  ');
  out.push(`  min_tokens: ${valid.minTokens}`);
  if (preset) note('A share of the tokens asked for, where a load test asks for a length; 0 asks nothing.', '  ');
  out.push(`  min_share_of_asked: ${valid.minShareOfAsked}`);
  if (preset) note("Leave 'length' out where a cut answer is useless, as with tool calls.", '  ');
  out.push(`  finish: [${valid.finish.join(', ')}]`, '');
  if (preset) note('How the edges are classed. These defaults fail closed.');
  out.push('cases:');
  if (preset)
    note("Cancelled by the caller: not-good; or 'observed' (production) judges what was seen; or exclude.", '  ');
  out.push(`  cancelled: ${cases.cancelled}`);
  if (preset)
    note("A whole answer without a stream: limits inside it are unmeasurable; or 'skip' those; or exclude.", '  ');
  out.push(`  non_streamed: ${cases.nonStreamed}`);
  if (preset)
    note("TPOT and gaps of a one-token answer are undefined: 'vacuous' is met (and counted apart); or late.", '  ');
  out.push(`  one_token: ${cases.oneToken}`);
  if (preset) note("A limit that could not be measured: late; or 'skip' it; or exclude the operation.", '  ');
  out.push(`  unmeasurable: ${cases.unmeasurable}`);
  if (preset) {
    out.push('');
    note('Grounds:');
    for (const source of Object.values(SOURCES)) note(`- ${source}.`);
  }
  return `${out.join('\n')}\n`;
}

/** The commented contract of each preset. */
export function presetYaml(name: keyof typeof PRESETS): string {
  const preset = PRESETS[name];
  return contractYaml(preset.contract, preset);
}

const LIMIT_MEANING: Readonly<Record<LimitName, string>> = {
  ttft: 'Time to first token',
  ttfa: 'Time to first answer (reasoning does not count)',
  tpot: 'Time per output token, the mean after the first',
  gap: 'The largest gap between two chunks',
  smoothness: 'Share of tokens received by their deadline',
  latency: 'Time to the last token',
  e2e: 'Time to the end of the response',
};

/** A duration that reads back exactly: whole seconds as `30s`, else milliseconds in full. */
function exact(ms: Millis): string {
  return ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`;
}

function percent(x: number): string {
  const text = `${trim(x * 100, 12)}%`;
  return parseShare(text, 'share') === x ? text : String(x);
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return line === '' ? lines : [...lines, line];
}
