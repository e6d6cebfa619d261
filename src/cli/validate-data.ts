/** Reads a folder of reference data: which files there are, and what they say of a run. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { InputError, messageOf, oneLine } from '../base/errors.ts';
import type { Accelerator, Dtype, ModelShape } from '../model/index.ts';
import type { RequestLog } from '../plan/validate/index.ts';

export function textOf(dir: string, file: string): string {
  try {
    return readFileSync(join(dir, file), 'utf8');
  } catch (error) {
    throw new InputError(`${oneLine(file)}: cannot be read (${messageOf(error)})`, { cause: error });
  }
}

export function jsonOf(dir: string, file: string): unknown {
  const text = textOf(dir, file);
  try {
    return JSON.parse(text);
  } catch {
    throw new InputError(`${oneLine(file)}: not JSON; fetch the reference data again`);
  }
}

/** What vLLM was run with, as the log's meta.json says it; every field may be missing. */
interface Meta {
  readonly model?: string;
  readonly engine_kwargs?: {
    readonly model?: string;
    readonly tensor_parallel_size?: number;
    readonly pipeline_parallel_size?: number;
    readonly data_parallel_size?: number;
    readonly max_num_seqs?: number;
    readonly max_num_batched_tokens?: number;
    readonly max_model_len?: number | null;
    readonly kv_cache_dtype?: string;
    readonly quantization?: string | null;
  };
  readonly kv_cache?: { readonly num_gpu_blocks?: number | null; readonly block_size?: number | null };
  readonly hardware?: { readonly device_name?: string };
  readonly resolved_config?: {
    readonly scheduler_config?: { readonly async_scheduling?: boolean; readonly scheduler_reserve_full_isl?: boolean };
  };
}

/** How deep under `requests/` a log may stand. */
const DEPTH = 3;

/** Every log under `requests/` whose accelerator and model are known; of the others the reason. */
export async function logsIn(dir: string, skipped: string[]): Promise<RequestLog[]> {
  const logs: RequestLog[] = [];
  for (const name of logFolders(join(dir, 'requests'), DEPTH)) {
    try {
      logs.push(await logOf(dir, name));
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      skipped.push(`request log ${oneLine(name)}: ${error.message.replace(/; known: .*/, '')}`);
    }
  }
  return logs;
}

/** Folders with a `requests.jsonl`, by their path from `at`. */
function logFolders(at: string, depth: number): string[] {
  const found: string[] = [];
  for (const entry of readdirSync(at, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (!entry.isDirectory()) continue;
    const path = join(at, entry.name);
    if (existsSync(join(path, 'requests.jsonl'))) found.push(entry.name);
    else if (depth > 1) found.push(...logFolders(path, depth - 1).map((below) => `${entry.name}/${below}`));
  }
  return found;
}

async function logOf(dir: string, name: string): Promise<RequestLog> {
  const [m, { limitsFor }, { readLog }] = await Promise.all([
    import('../model/index.ts'),
    import('../sim/index.ts'),
    import('../plan/validate/index.ts'),
  ]);
  const folder = `requests/${name}`;
  const meta = jsonOf(dir, `${folder}/meta.json`) as Meta;
  const args = meta.engine_kwargs ?? {};
  if ((args.data_parallel_size ?? 1) > 1)
    throw new InputError('it was served by several data-parallel replicas, and does not say which took which request');
  const shape = await modelOf(dir, folder, meta);
  const weights = args.quantization ? m.parseDtype(args.quantization, 'quantization') : shape.weights;
  const on = m.deployment(shape, await deviceOf(name, meta), {
    tp: args.tensor_parallel_size ?? 1,
    pp: args.pipeline_parallel_size ?? 1,
    weights: weights satisfies Dtype,
    kv: /^fp8/.test(args.kv_cache_dtype ?? '') ? 'fp8' : 'bf16',
  });
  const scheduler = meta.resolved_config?.scheduler_config;
  const { num_gpu_blocks: kvBlocks, block_size: blockTokens } = meta.kv_cache ?? {};
  return {
    name,
    on,
    limits: limitsFor(on, {
      maxSeqs: args.max_num_seqs ?? 256,
      maxBatchedTokens: Math.max(args.max_num_batched_tokens ?? 2048, args.max_num_seqs ?? 256),
      // The default since vLLM 0.14.
      asyncScheduling: scheduler?.async_scheduling ?? true,
      reservePrompt: scheduler?.scheduler_reserve_full_isl ?? true,
      ...(args.max_model_len && { maxLength: args.max_model_len }),
      ...(blockTokens && { blockTokens }),
      ...(kvBlocks && { kvBlocks }),
    }),
    requests: readLog(textOf(dir, `${folder}/requests.jsonl`), `${name}/requests.jsonl`),
  };
}

/** A Hugging Face config beside the log tells the shape of a model that the catalogue does not have. */
async function modelOf(dir: string, folder: string, meta: Meta): Promise<ModelShape> {
  const { model, modelFromConfig } = await import('../model/index.ts');
  const name = meta.model ?? meta.engine_kwargs?.model;
  for (const file of ['hf_config.json', 'model_config.json', 'config.json']) {
    if (!existsSync(join(dir, folder, file))) continue;
    const json = jsonOf(dir, `${folder}/${file}`);
    if (typeof json === 'object' && json !== null && ('num_hidden_layers' in json || 'text_config' in json))
      return modelFromConfig(json, name ?? folder);
  }
  if (name === undefined) throw new InputError("its meta.json lacks 'model'; add it");
  return model(name);
}

/** What the driver called it, else the beginning of the folder's name. */
async function deviceOf(name: string, meta: Meta): Promise<Accelerator> {
  const { ACCELERATORS, accelerator } = await import('../model/index.ts');
  const told = meta.hardware?.device_name;
  const bare = (text: string): string => text.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
  // `RTX4090-Llama-3.1-8B`, `H100-SXM-…`: the longest name of the catalogue that it begins with.
  const begins = ACCELERATORS.flatMap((a) => [a.id, ...a.aliases].map((n) => ({ a, n: bare(n) })))
    .filter(({ n }) => bare(name).startsWith(n))
    .sort((x, y) => y.n.length - x.n.length)[0]?.a;
  if (told !== undefined) {
    try {
      return accelerator(told);
    } catch (error) {
      if (!begins) throw error;
    }
  }
  return begins ?? accelerator(name.split(/[-/]/)[0] as string);
}

interface CurveFile {
  readonly curves?: readonly {
    readonly ttft_slo_s: number;
    readonly tpot_slo_s: number;
    readonly rates: readonly number[];
    readonly vllm: { readonly attain: readonly number[] };
    readonly distserve: { readonly attain: readonly number[] };
  }[];
}

export async function kneesIn(dir: string, [vllm, distserve]: readonly [string, string]) {
  const v = await import('../plan/validate/index.ts');
  const curve = (jsonOf(dir, 'knees/attainment_vs_rate.json') as CurveFile).curves?.[0];
  if (!curve) throw new InputError("attainment_vs_rate.json lacks 'curves'; fetch the reference data again");
  const split = jsonOf(dir, distserve);
  const systems = v.kneeSystems(
    v.profileOf(jsonOf(dir, vllm), 'facebook/opt-13b', 1, vllm),
    v.profileOf(split, 'facebook/opt-13b', 2, distserve),
    v.profileOf(split, 'facebook/opt-13b', 1, distserve),
  );
  const share = (points: readonly number[]): number[] => points.map((x) => x / 100);
  return v.scoreKnees(systems, {
    rates: curve.rates,
    vllm: share(curve.vllm.attain),
    distserve: share(curve.distserve.attain),
    slo: { ttft: 1000 * curve.ttft_slo_s, tpot: 1000 * curve.tpot_slo_s },
  });
}
