/** A calibrated profile, read by the code that made it, as what the pages' simulator needs. */

import type { FormName, Values } from '../plan/form.ts';
import { parseProfile, valuesOfProfile } from '../plan/profile.ts';
import { LIMIT_DEFAULTS } from '../sim/limits.ts';

export interface ProfileEngine {
  readonly name: string;
  readonly form: FormName;
  readonly coefficients: Values;
  readonly stallFactor: number;
  readonly frontendMs: number;
  readonly limits: { readonly kvBlocks: number; readonly maxSeqs: number; readonly maxBatchedTokens: number };
}

const BLOCK_TOKENS = 16;
/** Where the pool was never seen to fill up, it is taken to suffice. */
const ENOUGH_BLOCKS = 1_000_000;

/** @throws InputError saying what is wrong in it. */
export function profileEngine(text: string): ProfileEngine {
  const p = parseProfile(text, 'the profile');
  const maxSeqs = p.limits.max_seqs ?? LIMIT_DEFAULTS.maxSeqs;
  return {
    name: p.name,
    form: p.form,
    coefficients: valuesOfProfile(p),
    stallFactor: p.stall_factor,
    frontendMs: p.coefficients.entry?.value ?? 0,
    limits: {
      kvBlocks: p.limits.kv_tokens === undefined ? ENOUGH_BLOCKS : Math.ceil(p.limits.kv_tokens / BLOCK_TOKENS),
      maxSeqs,
      maxBatchedTokens: Math.max(maxSeqs, p.limits.max_batched_tokens),
    },
  };
}
