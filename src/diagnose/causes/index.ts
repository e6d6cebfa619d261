/** The table of causes. */
import type { Cause } from './cause.ts';
import { DECODE } from './decode.ts';
import { FLEET } from './fleet.ts';
import { PATH } from './path.ts';
import { PREFILL } from './prefill.ts';
import { QUEUEING } from './queueing.ts';

export type { Cause, Locus } from './cause.ts';
export const CAUSES: readonly Cause[] = [...QUEUEING, ...PREFILL, ...PATH, ...DECODE, ...FLEET];
