/** The flags by which any command is told a contract, and the contract they amount to. */
import { readFile } from 'node:fs/promises';
import { InputError, messageOf } from '../base/errors.ts';
import { parseDuration, parseShare } from '../base/units.ts';
import { type Contract, contractOf } from '../core/contract.ts';
import { PRESET_NAMES, PRESETS, type PresetName } from '../core/presets.ts';
import { checkContract, defaultDeadline, mergeTerms, parseGoodput, parseSlo, type SloTerms } from '../core/slo.ts';

export interface SloFlags {
  readonly slo?: readonly string[];
  readonly goodput?: readonly string[];
  readonly contract?: string;
  readonly preset?: PresetName;
  readonly attainment?: string;
  readonly deadline?: string;
}

/** For `parameters.flags` of a command: `flags: { ...SLO_FLAGS, … }`. */
export const SLO_FLAGS = {
  slo: {
    kind: 'parsed',
    parse: String,
    brief: 'Limits that must all hold: ttft=500ms,tpot=50ms,gap=200ms,e2e=30s (may be repeated)',
    placeholder: 'name=value,…',
    optional: true,
    variadic: true,
  },
  goodput: {
    kind: 'parsed',
    parse: String,
    brief: "Limits in vLLM's form, in milliseconds: ttft:500 tpot:50",
    placeholder: 'name:ms',
    optional: true,
    variadic: true,
  },
  contract: {
    kind: 'parsed',
    parse: String,
    brief: 'Read the contract from a YAML or JSON file',
    placeholder: 'FILE',
    optional: true,
  },
  preset: {
    kind: 'enum',
    values: PRESET_NAMES,
    brief: 'Take a preset as the contract; see goodput contract --preset',
    optional: true,
  },
  attainment: {
    kind: 'parsed',
    parse: String,
    brief: 'The share of operations that must be good: 90% or 0.9',
    placeholder: 'share',
    optional: true,
  },
  deadline: {
    kind: 'parsed',
    parse: String,
    brief: 'Time out an operation that is not complete by then: 30s',
    placeholder: 'time',
    optional: true,
  },
} as const;

export interface ChosenContract {
  readonly contract: Contract;
  /** True when no flag named a contract and `fallback` was taken: to be said. */
  readonly isDefault: boolean;
}

/**
 * The contract the flags name: limits given singly, or a file, or a preset, never two of these; `--attainment` and
 * `--deadline` change any. Without one, the `chat` preset.
 * @throws InputError
 */
export async function contractOfFlags(flags: SloFlags, fallback: PresetName = 'chat'): Promise<ChosenContract> {
  const terms = termsOf(flags);
  const named = [
    terms && (flags.slo?.length ? '--slo' : '--goodput'),
    flags.contract !== undefined && '--contract',
    flags.preset && '--preset',
  ].filter(Boolean);
  if (named.length > 1) throw new InputError(`${named.join(' and ')}: each names a contract; give one of them`);
  const attainment = flags.attainment === undefined ? undefined : parseShare(flags.attainment, '--attainment');
  const deadline = readDeadline(flags, terms);

  let base: Contract;
  if (terms) base = contractOf(terms.limits, { deadline: deadline ?? defaultDeadline(terms.limits) });
  else if (flags.contract !== undefined) base = await readContract(flags.contract);
  else base = PRESETS[flags.preset ?? fallback].contract;
  const contract = {
    ...base,
    ...(attainment !== undefined && { attainment }),
    ...(deadline !== undefined && { deadline }),
  };
  return { contract: checkContract(contract, named[0] || 'contract'), isDefault: named.length === 0 };
}

/** Reads and checks a contract file. @throws InputError */
export async function readContract(file: string): Promise<Contract> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    throw new InputError(`cannot read the contract: ${messageOf(error)}`, { cause: error });
  }
  const { parseContract } = await import('../core/contract-file.ts');
  return parseContract(text, file);
}

/**
 * vLLM writes `--goodput ttft:500 tpot:50`, several values behind one flag. Joined to one value each here, before the
 * command line is parsed, so that the later ones are not taken for files.
 */
export function joinGoodputValues(argv: readonly string[]): string[] {
  const out: string[] = [];
  for (let i = 0; i < argv.length; i++) {
    const arg = argv[i] as string;
    if (arg === '--') return [...out, ...argv.slice(i)];
    out.push(arg);
    if (arg !== '--goodput') continue;
    const values: string[] = [];
    while (/^[a-z0-9_]+:\d/i.test(argv[i + 1] ?? '')) values.push(argv[++i] as string);
    if (values.length > 0) out.push(values.join(','));
  }
  return out;
}

function termsOf(flags: SloFlags): SloTerms | undefined {
  const slo = flags.slo?.length ? parseSlo(flags.slo) : undefined;
  const goodput = flags.goodput?.length ? parseGoodput(flags.goodput) : undefined;
  return slo && goodput ? mergeTerms(slo, goodput, '--slo and --goodput') : (slo ?? goodput);
}

function readDeadline(flags: SloFlags, terms: SloTerms | undefined): number | undefined {
  const flag = flags.deadline === undefined ? undefined : parseDuration(flags.deadline, '--deadline');
  if (flag !== undefined && terms?.deadline !== undefined) {
    throw new InputError('--deadline: the deadline is given in the limits too; give it once');
  }
  const deadline = flag ?? terms?.deadline;
  if (deadline !== undefined && !(deadline > 0 && Number.isFinite(deadline))) {
    throw new InputError('--deadline: it must be above 0');
  }
  return deadline;
}
