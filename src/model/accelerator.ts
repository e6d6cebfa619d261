/** Accelerators: what a step's time is made of on the hardware side. */
import { InputError } from '../base/errors.ts';
import { didYouMean } from '../base/nearest.ts';
import { ACCELERATORS } from './catalogue/accelerators.ts';
import type { Dtype } from './dtype.ts';

export interface Accelerator {
  readonly id: string;
  readonly aliases: readonly string[];
  /** Device memory, bytes, as the vendor states it (decimal). */
  readonly memory: number;
  /** Memory bandwidth, bytes a second. */
  readonly bandwidth: number;
  /** Dense (not sparse) FLOPs a second by the precision of the operands; absent where the hardware has no such path. */
  readonly flops: Readonly<Partial<Record<Dtype, number>>> & { readonly bf16: number };
  /** Scale-up link, bytes a second in one direction for one device. */
  readonly link: number;
  /** Devices in one scale-up domain. */
  readonly domain: number;
  /** Where the row's figures come from. */
  readonly source: string;
}

/** `h100-sxm`, `H100_SXM`, `h100`, `RTXPRO6000`, `NVIDIA GeForce RTX 4090` … @throws InputError with the nearest name. */
export function accelerator(name: string): Accelerator {
  const key = name
    .trim()
    .toLowerCase()
    .replaceAll(/[_\s]+/g, '-');
  const found = find(key) ?? find(told(key));
  if (found) return found;
  const names = ACCELERATORS.flatMap((a) => [a.id, ...a.aliases]);
  throw new InputError(
    `unknown accelerator '${name}'${didYouMean(key, names)}; known: ${ACCELERATORS.map((a) => a.id).join(', ')}`,
  );
}

/** By its letters and figures alone: `RTXPRO6000` is `rtx-pro-6000`. */
function find(key: string): Accelerator | undefined {
  const bare = (text: string): string => text.replaceAll(/[^a-z0-9]/g, '');
  return ACCELERATORS.find((a) => [a.id, ...a.aliases].some((n) => bare(n) === bare(key)));
}

/** A name as a driver tells it, without maker, family, memory and edition. */
function told(key: string): string {
  return key
    .replace(/^(nvidia|amd|intel)-/, '')
    .replace(/^(tesla|geforce|instinct)-/, '')
    .replaceAll(/-(\d+gb|hbm\d?e?|blackwell|server|edition|generation)(?=-|$)/g, '')
    .replace(/-sxm\d$/, '-sxm');
}

/**
 * Dense FLOPs a second for operands of a precision. Weights of 4 bits without hardware for them are widened to the next
 * path there is (weight-only quantisation saves bytes, not operations).
 */
export function peakFlops(gpu: Accelerator, dtype: Dtype): number {
  const wider: Readonly<Record<Dtype, readonly Dtype[]>> = {
    bf16: ['bf16'],
    fp8: ['fp8', 'bf16'],
    int8: ['int8', 'bf16'],
    fp4: ['fp4', 'fp8', 'bf16'],
    int4: ['bf16'],
  };
  for (const d of wider[dtype]) {
    const f = gpu.flops[d];
    if (f !== undefined) return f;
  }
  return gpu.flops.bf16;
}
