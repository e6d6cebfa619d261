/** Number formats, and what a value of each costs to store. */

import { InputError } from '../base/errors.ts';
import { didYouMean } from '../base/nearest.ts';

export type Dtype = 'bf16' | 'fp8' | 'int8' | 'fp4' | 'int4';

/**
 * Bytes a weight, scales included: NVFP4 keeps one FP8 scale for 16 values (Blackwell whitepaper), INT4 (AWQ, GPTQ) one
 * FP16 scale and a 4-bit zero for 128.
 */
export const WEIGHT_BYTES: Readonly<Record<Dtype, number>> = { bf16: 2, fp8: 1, int8: 1, fp4: 0.5625, int4: 0.52 };

/** Bytes a cached key or value. */
export const KV_BYTES: Readonly<Record<Dtype, number>> = { bf16: 2, fp8: 1, int8: 1, fp4: 0.5625, int4: 0.5 };

const ALIASES: Readonly<Record<string, Dtype>> = {
  bf16: 'bf16',
  bfloat16: 'bf16',
  fp16: 'bf16',
  float16: 'bf16',
  half: 'bf16',
  fp8: 'fp8',
  fp8_e4m3: 'fp8',
  fp8_e5m2: 'fp8',
  fp8_block: 'fp8',
  int8: 'int8',
  int8_wo: 'int8',
  w8a8: 'int8',
  fp4: 'fp4',
  nvfp4: 'fp4',
  mxfp4: 'fp4',
  int4: 'int4',
  awq: 'int4',
  gptq: 'int4',
  int4_wo: 'int4',
  w4a16: 'int4',
};

/** Reads a precision by any of its usual names; 16-bit floats are all `bf16`, for they cost the same. */
export function parseDtype(text: string, what: string): Dtype {
  const dtype = ALIASES[text.trim().toLowerCase()];
  if (dtype) return dtype;
  throw new InputError(
    `${what}: '${text}' is not a precision${didYouMean(text, Object.keys(ALIASES))}; use bf16, fp8, int8, fp4 or int4`,
  );
}
