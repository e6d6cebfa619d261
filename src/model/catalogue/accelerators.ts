/**
 * Accelerators, a source a row. FLOPs are dense. Rows whose figures could not be checked against a vendor's page or a
 * published system description are left out rather than guessed.
 */
import type { Accelerator } from '../accelerator.ts';

const GB = 1e9;
const TB_S = 1e12;
const TFLOPS = 1e12;
const GB_S = 1e9;

const AIC = 'aiconfigurator system description (Apache-2.0)';
const SEMI = 'InferenceX published GPU specifications';

interface Row {
  readonly id: string;
  readonly aliases?: readonly string[];
  readonly memory: number;
  readonly bandwidth: number;
  readonly bf16: number;
  readonly fp8?: number;
  readonly fp4?: number;
  readonly int8?: number;
  readonly link: number;
  readonly domain?: number;
  readonly source: string;
}

/** Memory in GB, bandwidth in TB/s, FLOPs in TFLOP/s, link in GB/s one way. */
// biome-ignore format: one row a line
const ROWS: readonly Row[] = [
  { id: 'a100-sxm', aliases: ['a100', 'a100-80gb', 'a100-sxm-80gb'], memory: 80, bandwidth: 2.039, bf16: 312, int8: 624, link: 300, source: AIC },
  { id: 'a100-pcie', aliases: ['a100-pcie-80gb'], memory: 80, bandwidth: 1.935, bf16: 312, int8: 624, link: 32, source: AIC },
  { id: 'a30', memory: 24, bandwidth: 0.933, bf16: 165, int8: 330, link: 32, source: AIC },
  { id: 'h100-sxm', aliases: ['h100', 'h100-sxm5', 'h100-80gb'], memory: 80, bandwidth: 3.35, bf16: 989, fp8: 1979, int8: 1979, link: 450, source: `${AIC}; ${SEMI}` },
  { id: 'h100-pcie', memory: 80, bandwidth: 2.0, bf16: 756, fp8: 1513, int8: 1513, link: 64, source: AIC },
  { id: 'h200-sxm', aliases: ['h200', 'h200-141gb'], memory: 141, bandwidth: 4.8, bf16: 989, fp8: 1979, int8: 1979, link: 450, source: `${AIC}; ${SEMI}` },
  { id: 'b200-sxm', aliases: ['b200'], memory: 180, bandwidth: 8.0, bf16: 2250, fp8: 4500, fp4: 9000, link: 900, source: `${SEMI} (${AIC} says 7.7 TB/s)` },
  { id: 'b300-sxm', aliases: ['b300'], memory: 268, bandwidth: 8.0, bf16: 2250, fp8: 4500, fp4: 13500, link: 900, source: SEMI },
  { id: 'gb200', aliases: ['gb200-nvl72'], memory: 192, bandwidth: 8.0, bf16: 2500, fp8: 5000, fp4: 10000, link: 900, domain: 72, source: `${AIC}; ${SEMI}` },
  { id: 'gb300', aliases: ['gb300-nvl72'], memory: 288, bandwidth: 8.0, bf16: 2500, fp8: 5000, fp4: 15000, link: 900, domain: 72, source: SEMI },
  { id: 'mi300x', memory: 192, bandwidth: 5.3, bf16: 1307, fp8: 2615, link: 448, source: `${SEMI}; Vultr documentation` },
  { id: 'mi325x', memory: 256, bandwidth: 6.0, bf16: 1307, fp8: 2615, link: 448, source: `${SEMI}; Vultr documentation` },
  { id: 'mi355x', memory: 288, bandwidth: 8.0, bf16: 2516, fp8: 5033, fp4: 10066, link: 576, source: `${SEMI}; ROCm GPU specifications` },
  { id: 'l4', memory: 24, bandwidth: 0.3, bf16: 121, fp8: 242, int8: 242, link: 32, domain: 1, source: AIC },
  { id: 'l40s', memory: 48, bandwidth: 0.864, bf16: 362, fp8: 733, int8: 733, link: 32, source: AIC },
  { id: 'rtx-4090', aliases: ['geforce-rtx-4090'], memory: 24, bandwidth: 1.008, bf16: 165.2, link: 32, domain: 1, source: 'NVIDIA Ada architecture whitepaper (dense, FP32 accumulation)' },
  { id: 'rtx-pro-6000', aliases: ['rtx-pro-6000-server'], memory: 102.6, bandwidth: 1.597, bf16: 467.8, fp8: 935.6, fp4: 1871, link: 64, source: `${AIC}, FLOPs scaled to 2,430 MHz; bandwidth of the Server Edition's datasheet (1,792 GB/s is the workstation's)` },
  { id: 'tpu-v5e', memory: 16, bandwidth: 0.819, bf16: 197, int8: 393, link: 50, domain: 256, source: 'Google Cloud TPU documentation' },
  { id: 'tpu-v6e', aliases: ['trillium'], memory: 32, bandwidth: 1.638, bf16: 918, int8: 1836, link: 100, domain: 256, source: 'Google Cloud TPU documentation' },
];

export const ACCELERATORS: readonly Accelerator[] = ROWS.map((r) => ({
  id: r.id,
  aliases: r.aliases ?? [],
  memory: r.memory * GB,
  bandwidth: r.bandwidth * TB_S,
  flops: {
    bf16: r.bf16 * TFLOPS,
    ...(r.fp8 !== undefined && { fp8: r.fp8 * TFLOPS }),
    ...(r.fp4 !== undefined && { fp4: r.fp4 * TFLOPS }),
    ...(r.int8 !== undefined && { int8: r.int8 * TFLOPS }),
  },
  link: r.link * GB_S,
  domain: r.domain ?? 8,
  source: r.source,
}));
