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
      'experts': { rows: 594, tpot: 0.2201, tpotBias: 0.1104, ttft: 0.3466, ttftRows: 582 },
      'dense H100, H200': { rows: 321, tpot: 0.1347, tpotBias: 0.0065, ttft: 0.1772, ttftRows: 117 },
      'dense elsewhere': { rows: 158, tpot: 0.1265, tpotBias: 0.0489, ttft: 0.3573, ttftRows: 148 },
    },
    groups: {
      'qwen3-32b': { rows: 200, tpot: 0.2181, tpotBias: -0.0996, ttft: 0.1717, ttftRows: 95 },
      'deepseek-v3': { rows: 182, tpot: 0.2449, tpotBias: 0.1746, ttft: 0.4876, ttftRows: 180 },
      'llama-3.1-70b': { rows: 146, tpot: 0.1179, tpotBias: 0.0592, ttft: 0.3659, ttftRows: 146 },
      'llama-3.1-8b': { rows: 133, tpot: 0.0578, tpotBias: 0.0307, ttft: 0.3025, ttftRows: 24 },
      'gpt-oss-120b': { rows: 117, tpot: 0.2895, tpotBias: 0.2641, ttft: 0.5646, ttftRows: 113 },
      'minimax-m2.5': { rows: 115, tpot: 0.115, tpotBias: 0.0333, ttft: 0.1941, ttftRows: 109 },
      'qwen3-235b-a22b-fp8': { rows: 104, tpot: 0.1787, tpotBias: 0.122, ttft: 0.3332, ttftRows: 104 },
      'kimi-k2.5': { rows: 43, tpot: 0.188, tpotBias: -0.1107, ttft: 0.2385, ttftRows: 43 },
      'glm-5': { rows: 33, tpot: 0.2769, tpotBias: -0.2769, ttft: 0.177, ttftRows: 33 },
    },
    undone: [],
  },
  gpu: {
    kinds: {
      'experts': { rows: 594, tpot: 0.1836, tpotBias: 0.045, ttft: 0.3159, ttftRows: 582 },
      'dense H100, H200': { rows: 321, tpot: 0.1867, tpotBias: -0.1072, ttft: 0.1792, ttftRows: 117 },
      'dense elsewhere': { rows: 158, tpot: 0.0821, tpotBias: -0.0442, ttft: 0.3639, ttftRows: 148 },
    },
    groups: {
      'b200-sxm': { rows: 502, tpot: 0.1425, tpotBias: 0.0092, ttft: 0.3309, ttftRows: 494 },
      'h100-sxm': { rows: 398, tpot: 0.1826, tpotBias: -0.0155, ttft: 0.2289, ttftRows: 201 },
      'h200-sxm': { rows: 162, tpot: 0.1746, tpotBias: -0.1228, ttft: 0.2864, ttftRows: 151 },
      'gb200': { rows: 11, tpot: 0.7985, tpotBias: -0.7985, ttft: 0.217, ttftRows: 1 },
    },
    undone: [],
  },
};
