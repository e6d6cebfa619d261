/** Errors on record, and how far beyond them a figure may drift before `validate` fails. Replaced when the model is refitted. */
export const RECORDED_ON = '2026-11-29';

/** Figures are absolute relative errors, but `attainment` in points of share. `value + margin` is the most allowed. */
export interface Recorded {
  readonly value: number;
  readonly margin: number;
}

export const RECORDED: Readonly<Record<string, Recorded>> = {
  'served/experts/tpot': { value: 0.139, margin: 0.02 },
  'served/experts/ttft': { value: 0.286, margin: 0.04 },
  'served/dense H100, H200/tpot': { value: 0.103, margin: 0.02 },
  'served/dense H100, H200/ttft': { value: 0.212, margin: 0.04 },
  'served/dense elsewhere/tpot': { value: 0.088, margin: 0.02 },
  'served/dense elsewhere/ttft': { value: 0.333, margin: 0.04 },
  'left out/model/experts/tpot': { value: 0.22, margin: 0.03 },
  'left out/model/experts/ttft': { value: 0.347, margin: 0.06 },
  'left out/model/dense H100, H200/tpot': { value: 0.135, margin: 0.03 },
  'left out/model/dense H100, H200/ttft': { value: 0.177, margin: 0.06 },
  'left out/model/dense elsewhere/tpot': { value: 0.127, margin: 0.03 },
  'left out/model/dense elsewhere/ttft': { value: 0.357, margin: 0.06 },
  'left out/gpu/experts/tpot': { value: 0.184, margin: 0.03 },
  'left out/gpu/experts/ttft': { value: 0.316, margin: 0.06 },
  'left out/gpu/dense H100, H200/tpot': { value: 0.187, margin: 0.03 },
  'left out/gpu/dense H100, H200/ttft': { value: 0.179, margin: 0.06 },
  'left out/gpu/dense elsewhere/tpot': { value: 0.082, margin: 0.03 },
  'left out/gpu/dense elsewhere/ttft': { value: 0.364, margin: 0.06 },
  'requests/RTX4090-Llama-3.1-8B → RTXPRO6000-Llama-3.1-8B/makespan': { value: 0.032, margin: 0.05 },
  'requests/RTX4090-Llama-3.1-8B → RTXPRO6000-Llama-3.1-8B/tpot': { value: 0.023, margin: 0.05 },
  'requests/RTX4090-Llama-3.1-8B → RTXPRO6000-Llama-3.1-8B/prefill': { value: 0.198, margin: 0.08 },
  'requests/RTXPRO6000-Llama-3.1-8B → RTX4090-Llama-3.1-8B/makespan': { value: 0.066, margin: 0.05 },
  'requests/RTXPRO6000-Llama-3.1-8B → RTX4090-Llama-3.1-8B/tpot': { value: 0.055, margin: 0.05 },
  'requests/RTXPRO6000-Llama-3.1-8B → RTX4090-Llama-3.1-8B/prefill': { value: 0.432, margin: 0.1 },
  'knees/vllm/attainment': { value: 0.053, margin: 0.03 },
  'knees/distserve/attainment': { value: 0.075, margin: 0.03 },
  'interference/chunked': { value: 0.076, margin: 0.03 },
  'interference/mixed': { value: 0.016, margin: 0.03 },
};

/** Served rows that the recorded figures are of: another table is not held against them. */
export const RECORDED_ROWS = 2307;

/** What others print of their own fits, to be read beside ours. */
export const PEERS: readonly string[] = [
  'aiconfigurator (own tables): ITL 5–13 %, TTFT 18 %',
  'ideal formula on dense served rows: TPOT 69 %; with 80 % of bandwidth, 75 % of FLOPs and all-reduce 52 %; with prefill interleaving 32 %; with 2 ms a step 22 %',
];
