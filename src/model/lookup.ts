/** Models by name. */
import { InputError } from '../base/errors.ts';
import { didYouMean } from '../base/nearest.ts';
import { MODELS } from './catalogue/models.ts';
import type { Dtype } from './dtype.ts';
import type { ModelShape } from './shape.ts';

/**
 * `llama-3.1-8b`, `meta-llama/Meta-Llama-3.1-8B`, `Llama-3.1-8B-Instruct`, `Qwen3-30B-A3B-Instruct-2507`: case, organisation,
 * `meta-`, what kind of tuning it is, its date and its version are let go. A precision in the name that the catalogue has
 * no row of (`-FP8`, `-NVFP4`, `-AWQ`) is that of the same shape's weights. @throws InputError with the nearest name.
 */
export function model(name: string): ModelShape {
  const key = modelKey(name);
  const found = named(key) ?? quantised(key);
  if (found) return found;
  const names = MODELS.map((m) => m.name);
  throw new InputError(
    `unknown model '${name}'${didYouMean(key, names)}; known: ${names.join(', ')}; or give the path of a config.json`,
  );
}

/** The catalogue's form of a name. */
export function modelKey(name: string): string {
  const last = name.trim().split('/').at(-1) as string;
  return last
    .toLowerCase()
    .replaceAll(/[_\s]+/g, '-')
    .replace(/^(meta|nvidia)-(?=\w)/, '')
    .replace(/-v0\.\d+$/, '');
}

/** Releases and distillations of a shape under a name of their own. Facts of their model cards. */
const SAME_SHAPE: readonly (readonly [RegExp, string])[] = [
  [/^deepseek-v3\.1(-terminus)?$/, 'deepseek-v3'],
  [/^deepseek-v3\.2-exp$/, 'deepseek-v3.2'],
  [/^deepseek-v2\.5$/, 'deepseek-v2'],
  [/^deepseek-r1-distill-llama-(8b|70b)$/, 'llama-3.1-$1'],
  [/^deepseek-r1-distill-qwen-(1\.5b|7b|14b|32b)$/, 'qwen2.5-$1'],
  [/^qwen2\.5-(?:coder|math)-([\d.]+b)$/, 'qwen2.5-$1'],
  [/^qwq-32b(-preview)?$/, 'qwen2.5-32b'],
  [/^llama-3\.1-nemotron-(8b|70b)$/, 'llama-3.1-$1'],
  [/^phi-3\.5-mini$/, 'phi-3-mini'],
  [/^phi-3-mini-(4|128)k$/, 'phi-3-mini'],
  [/^phi-4(-mini)?-reasoning(-plus)?$/, 'phi-4$1'],
];

function named(key: string): ModelShape | undefined {
  const bare = plain(key);
  for (const k of [key, bare, ...SAME_SHAPE.filter(([p]) => p.test(bare)).map(([p, to]) => bare.replace(p, to))]) {
    const found = MODELS.find((m) => m.name === k);
    if (found) return found;
  }
  return undefined;
}

function plain(key: string): string {
  return key
    .replaceAll(/-(instruct|base|chat|it|hf|thinking|preview)(?=-|$)/g, '')
    .replace(/-(\d{4})$/, '')
    .replace(/-v0\.\d+$/, '');
}

const PRECISIONS: readonly (readonly [RegExp, Dtype])[] = [
  [/-(nvfp4|mxfp4|fp4)(-.*)?$/, 'fp4'],
  [/-(awq|gptq|w4a16|int4|4bit)(-.*)?$/, 'int4'],
  [/-(w8a8|int8|8bit)(-.*)?$/, 'int8'],
  [/-fp8(-.*)?$/, 'fp8'],
];

/** The shape of the same name without its precision, in that precision. */
function quantised(key: string): ModelShape | undefined {
  for (const [pattern, weights] of PRECISIONS) {
    const shape = pattern.test(key) ? named(key.replace(pattern, '')) : undefined;
    if (!shape) continue;
    const { expertWeights: _, ...rest } = shape;
    return { ...rest, weights };
  }
  return undefined;
}
