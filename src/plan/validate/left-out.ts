/**
 * Errors on what a fit has not seen: each model, and each accelerator, left out in turn. Recorded, since the pass takes
 * minutes; `goodput validate DIR --leave-out` makes it again.
 */
import type { ErrorSummary } from './served.ts';

export interface LeftOutPass {
  readonly kinds: Readonly<Record<string, ErrorSummary>>;
  readonly groups: Readonly<Record<string, ErrorSummary>>;
  /** Groups that were not refitted for want of time. */
  readonly undone: readonly string[];
}

export interface LeftOut {
  /** When it was made: a date on record, or `now`. */
  readonly on: string;
  readonly model: LeftOutPass;
  readonly gpu: LeftOutPass;
}

// biome-ignore format: one row a line
export const RECORDED_LEFT_OUT: LeftOut = {
  on: '2026-11-29',
  model: {
    kinds: {
      'experts': { rows: 590, tpot: 0.2321, tpotBias: 0.141, ttft: 0.3371, ttftRows: 575 },
      'dense H100, H200': { rows: 311, tpot: 0.1352, tpotBias: 0.0207, ttft: 0.1426, ttftRows: 107 },
      'dense elsewhere': { rows: 158, tpot: 0.1363, tpotBias: 0.0759, ttft: 0.3749, ttftRows: 146 },
    },
    groups: {
      'qwen3-32b': { rows: 200, tpot: 0.1888, tpotBias: -0.0782, ttft: 0.1426, ttftRows: 93 },
      'deepseek-v3': { rows: 178, tpot: 0.2666, tpotBias: 0.2214, ttft: 0.469, ttftRows: 176 },
      'llama-3.1-70b': { rows: 146, tpot: 0.1205, tpotBias: 0.0899, ttft: 0.3749, ttftRows: 146 },
      'llama-3.1-8b': { rows: 123, tpot: 0.1037, tpotBias: 0.085, ttft: 0.1845, ttftRows: 14 },
      'gpt-oss-120b': { rows: 117, tpot: 0.2905, tpotBias: 0.2647, ttft: 0.5297, ttftRows: 110 },
      'minimax-m2.5': { rows: 115, tpot: 0.099, tpotBias: 0.0233, ttft: 0.212, ttftRows: 109 },
      'qwen3-235b-a22b-fp8': { rows: 104, tpot: 0.2167, tpotBias: 0.1793, ttft: 0.275, ttftRows: 104 },
      'kimi-k2.5': { rows: 43, tpot: 0.192, tpotBias: -0.1166, ttft: 0.2324, ttftRows: 43 },
      'glm-5': { rows: 33, tpot: 0.2772, tpotBias: -0.2772, ttft: 0.1661, ttftRows: 33 },
    },
    undone: [],
  },
  gpu: {
    kinds: {
      'experts': { rows: 590, tpot: 0.213, tpotBias: 0.0891, ttft: 0.3065, ttftRows: 575 },
      'dense H100, H200': { rows: 311, tpot: 0.1435, tpotBias: 0.0848, ttft: 0.2008, ttftRows: 107 },
      'dense elsewhere': { rows: 158, tpot: 0.1121, tpotBias: 0.0545, ttft: 0.3253, ttftRows: 146 },
    },
    groups: {
      'b200-sxm': { rows: 497, tpot: 0.1628, tpotBias: 0.0797, ttft: 0.3227, ttftRows: 489 },
      'h100-sxm': { rows: 398, tpot: 0.1692, tpotBias: 0.1513, ttft: 0.2334, ttftRows: 198 },
      'h200-sxm': { rows: 152, tpot: 0.1647, tpotBias: -0.1241, ttft: 0.3625, ttftRows: 141 },
      'gb200': { rows: 12, tpot: 0.727, tpotBias: -0.727, ttft: null, ttftRows: 0 },
    },
    undone: [],
  },
};
