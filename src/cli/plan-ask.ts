/** What `goodput plan` is asked, read from its flags: traffic, contracts, the grid of deployments, prices, a profile. */
import { InputError, messageOf, oneLine } from '../base/errors.ts';
import { parseShare, trim } from '../base/units.ts';
import type { Contract } from '../core/contract.ts';
import type { EngineName, ModelShape } from '../model/index.ts';
import type { GridAsk, PlanAsk, Traffic } from '../plan/index.ts';
import { numberFlags } from './load-flags.ts';
import { contractOfFlags, type SloFlags } from './slo-flags.ts';

export interface PlanFlags extends SloFlags {
  readonly model: string;
  readonly gpu: string;
  readonly engine?: EngineName;
  readonly workload?: string;
  readonly replay?: string;
  readonly input?: string;
  readonly output?: string;
  readonly arrivals?: string;
  readonly rate?: number;
  readonly tp?: string;
  readonly weights?: string;
  readonly kvDtype?: string;
  readonly chunks?: string;
  readonly price?: readonly string[];
  readonly headroom: string;
  readonly profile?: string;
  readonly ideal: boolean;
  readonly seed: number;
}

export interface Asked {
  readonly ask: PlanAsk;
  readonly grid: GridAsk;
  readonly prices: ReadonlyMap<string, number>;
  /** No flag named the contract. */
  readonly isDefault: boolean;
  /** The traffic in a line, how it is brought to another rate included. */
  readonly traffic: string;
  /** What must be said of the profile. */
  readonly remarks: readonly string[];
}

export async function askOf(flags: PlanFlags): Promise<Asked> {
  const [m, { modelOf }] = await Promise.all([import('../model/index.ts'), import('./engine-flags.ts')]);
  const { contract, isDefault } = await contractOfFlags(flags);
  const model = await modelOf(flags.model);
  const gpus = list(flags.gpu, '--gpu').map((name) => m.accelerator(name));
  const { traffic, text, rate, contracts } = await trafficOf(flags);
  if (contract.attainment >= 1 || Object.values(contracts).some((c) => c.attainment >= 1))
    throw new InputError('--attainment: no number of runs shows that all requests are good; ask for 99.9%');
  const headroom = parseShare(flags.headroom, '--headroom');
  if (headroom >= 1) throw new InputError('--headroom: all of the rate cannot be kept free; write 20%');
  const prices = pricesOf(flags.price ?? [], (name) => m.accelerator(name).id);
  const unpriced = prices.size > 0 ? gpus.find((g) => !prices.has(g.id)) : undefined;
  if (unpriced) throw new InputError(`--price: ${unpriced.id} has none; give one for every --gpu, or for none`);
  const tps =
    flags.tp === undefined
      ? [1, 2, 4, 8].filter((t) => model.heads % t === 0)
      : list(flags.tp, '--tp').map(numberFlags.whole('tp'));
  const weights = flags.weights === undefined ? undefined : list(flags.weights, '--weights');
  const read = flags.profile === undefined ? undefined : await profileOf(flags, flags.profile, model, gpus, weights);
  const fast = model.weights === 'bf16' && gpus.some((g) => g.flops.fp8 !== undefined);
  const grid: GridAsk = {
    gpus,
    tps: read ? [read.profile.tp] : tps,
    weights: weights?.map((d) => m.parseDtype(d, '--weights')) ?? [
      model.weights,
      ...(fast && !read ? (['fp8'] as const) : []),
    ],
    native: weights === undefined,
    kvs:
      flags.kvDtype === undefined
        ? ['bf16']
        : list(flags.kvDtype, '--kv-dtype').map((d) => m.parseDtype(d, '--kv-dtype')),
    chunks: read
      ? [read.profile.profile.limits.max_batched_tokens]
      : list(flags.chunks ?? '2048,8192', '--chunks').map(numberFlags.whole('chunks')),
  };
  const ask: PlanAsk = {
    model,
    traffic,
    rate,
    contract,
    ...(Object.keys(contracts).length > 0 && { contracts }),
    seed: flags.seed,
    basis: flags.ideal ? 'ideal' : 'calibrated',
    ...(flags.engine && { engine: flags.engine }),
    headroom,
    ...(read && { profile: read.profile }),
  };
  return { ask, grid, prices, isDefault, traffic: text, remarks: read?.remarks ?? [] };
}

interface TrafficAsked {
  readonly traffic: Traffic;
  readonly text: string;
  readonly rate: number;
  readonly contracts: Readonly<Record<string, Contract>>;
}

async function trafficOf(flags: PlanFlags): Promise<TrafficAsked> {
  const w = await import('../workload/index.ts');
  const given = [
    flags.workload !== undefined && '--workload',
    flags.replay !== undefined && '--replay',
    (flags.input ?? flags.output) !== undefined && '--input or --output',
  ].filter((x) => x !== false);
  if (given.length > 1)
    throw new InputError(`${given.join(' and ')}: each says what requests ask for; give one of them`);
  const files = await import('./workload-file.ts');
  const read = flags.workload === undefined ? undefined : await files.readWorkload(flags.workload, flags.seed);
  const trace = flags.replay === undefined ? read?.trace : await files.readReplay(flags.replay, {}, flags.seed);
  if (trace) return traced(trace, flags, read?.contracts ?? {});
  const length = (value: string | undefined, flag: string, otherwise: string) =>
    w.parseLength(value ?? otherwise, flag);
  const classes = read?.classes ?? [
    {
      name: 'default',
      share: 1,
      input: length(flags.input, '--input', '512'),
      output: length(flags.output, '--output', '128'),
      choices: 1,
      stream: true,
      ignoreEos: true,
    },
  ];
  const several = classes.find((c) => c.choices > 1);
  if (several)
    throw new InputError(
      `${oneLine(flags.workload ?? '')}: class ${several.name} asks for ${several.choices} choices; plan them as requests of one choice each, at that multiple of its share`,
    );
  const rate = flags.rate ?? read?.file.rate;
  if (rate === undefined)
    throw new InputError('--rate: say how many requests a second are to be served, with --rate 120');
  const { process, burstiness } = w.parseArrivals(
    flags.arrivals ?? read?.file.arrivals ?? 'poisson',
    rate,
    read?.file.burstiness,
  );
  const traffic: Traffic = {
    kind: 'mix',
    mix: { classes, prompt: 'none' },
    process: { process, ...(burstiness !== undefined && { burstiness }) },
  };
  const unit = w.hasSessions({ classes, prompt: 'none' }) ? 'sessions' : 'requests';
  const each = classes
    .map(
      (c) =>
        `${classes.length > 1 ? `${oneLine(c.name, 40)} ` : ''}${w.lengthText(c.input)} in, ${w.lengthText(c.output)} out`,
    )
    .join('; ');
  const text = `${trim(rate, 4)} ${unit}/s, ${process} arrivals: ${each} tokens`;
  return { traffic, text, rate, contracts: read?.contracts ?? {} };
}

async function traced(
  trace: Extract<Traffic, { kind: 'trace' }>['trace'],
  flags: PlanFlags,
  contracts: Readonly<Record<string, Contract>>,
): Promise<TrafficAsked> {
  if (flags.arrivals !== undefined) throw new InputError('--arrivals: a trace has its own; leave it out');
  if (trace.length < 2) throw new InputError(`${oneLine(trace.name)}: one request has no rate; give a longer trace`);
  const { recordedRate } = await import('../plan/index.ts');
  const recorded = recordedRate(trace);
  const rate = flags.rate ?? recorded;
  const text =
    `the trace ${oneLine(trace.name, 80)} (${trace.length} requests, recorded at ${trim(recorded, 3)}/s) at ${trim(rate, 4)}/s: its clock is kept; ` +
    'to bring it to a rate requests are left out by chance, or copies come an exponential delay after the original; ' +
    'each replication begins at a request of its own, and again at the first after the last';
  return { traffic: { kind: 'trace', trace }, text, rate, contracts };
}

function pricesOf(entries: readonly string[], idOf: (name: string) => string): Map<string, number> {
  const prices = new Map<string, number>();
  for (const part of entries.flatMap((e) => e.split(','))) {
    const [name = '', value] = part.split('=');
    const price = Number(value);
    if (value === undefined || !(price > 0) || !Number.isFinite(price))
      throw new InputError(`--price: '${oneLine(part)}' is not gpu=price; write h100-sxm=2.5`);
    prices.set(idOf(name), price);
  }
  return prices;
}

async function profileOf(
  flags: PlanFlags,
  file: string,
  model: ModelShape,
  gpus: readonly { readonly id: string }[],
  weights: readonly string[] | undefined,
) {
  const [gpu, ...others] = gpus;
  if (!gpu || others.length > 0)
    throw new InputError('--profile: it holds for one accelerator; give that one as --gpu');
  if (flags.ideal) throw new InputError('--profile and --ideal: give one of them');
  if (flags.engine) throw new InputError('--profile and --engine: the profile is of its own engine; give one of them');
  if (flags.chunks !== undefined)
    throw new InputError(
      '--profile and --chunks: the profile has the prompt budget it was measured with; leave --chunks out',
    );
  if ((weights?.length ?? 1) > 1)
    throw new InputError('--profile: it was measured with one precision; give that one as --weights');
  const tps = flags.tp === undefined ? [] : list(flags.tp, '--tp').map(numberFlags.whole('tp'));
  if (tps.length > 1)
    throw new InputError('--profile: it was measured on one number of devices; give that one as --tp');
  const [{ readFile }, p] = await Promise.all([import('node:fs/promises'), import('../plan/index.ts')]);
  const content = await readFile(file, 'utf8').catch((error: unknown) => {
    throw new InputError(
      `--profile ${oneLine(file)}: cannot be read (${messageOf(error)}); make it with goodput calibrate`,
    );
  });
  const profile = p.parseProfile(content, file);
  const said = (profile.target.emulated as { tp?: unknown } | undefined)?.tp ?? profile.target.tp;
  const tp = tps[0] ?? (typeof said === 'number' && Number.isInteger(said) && said >= 1 ? said : 1);
  const remarks = p.checkProfile(profile, { model, gpu: gpu.id, tp }, file);
  return { profile: { gpu: gpu.id, tp, profile }, remarks };
}

function list(value: string, flag: string): string[] {
  const parts = value
    .split(',')
    .map((s) => s.trim())
    .filter((s) => s !== '');
  if (parts.length === 0) throw new InputError(`${flag}: '${oneLine(value)}' names nothing; write a list like a,b`);
  return [...new Set(parts)];
}
