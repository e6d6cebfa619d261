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
const DATASHEETS = "NVIDIA's datasheet, as in astroC86/gpu-datasheet";

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
  { id: 'rtx-4090', aliases: ['geforce-rtx-4090'], memory: 24, bandwidth: 1.008, bf16: 165.2, fp8: 330.3, int8: 660.6, link: 32, domain: 1, source: 'NVIDIA Ada architecture whitepaper, Appendix A (dense; FP32 accumulation, which a GeForce does at half the rate)' },
  { id: 'rtx-pro-6000', aliases: ['rtx-pro-6000-server'], memory: 102.6, bandwidth: 1.597, bf16: 467.8, fp8: 935.6, fp4: 1871, link: 64, source: `${AIC}, FLOPs scaled to 2,430 MHz; bandwidth of the Server Edition's datasheet (1,792 GB/s is the workstation's)` },
  { id: 'a100-sxm-40gb', aliases: ['a100-40gb'], memory: 40, bandwidth: 1.555, bf16: 312, int8: 624, link: 300, source: `${DATASHEETS}; link as the 80 GB's` },
  { id: 'a10', memory: 24, bandwidth: 0.6, bf16: 125, int8: 250, link: 32, domain: 1, source: DATASHEETS },
  { id: 'a10g', memory: 24, bandwidth: 0.6, bf16: 70, int8: 140, link: 32, domain: 1, source: "NVIDIA A10G datasheet of AWS, 2022 (BF16 70 dense; the A10's is 125)" },
  { id: 'a40', memory: 48, bandwidth: 0.696, bf16: 149.7, int8: 299.3, link: 32, source: DATASHEETS },
  { id: 'rtx-a6000', aliases: ['a6000'], memory: 48, bandwidth: 0.768, bf16: 154.8, int8: 309.7, link: 32, source: 'NVIDIA Ada professional architecture whitepaper, as in LLM-Viewer' },
  { id: 'v100-pcie', aliases: ['v100', 'v100-32gb', 'tesla-v100'], memory: 32, bandwidth: 0.9, bf16: 112, link: 16, source: 'NVIDIA Volta whitepaper, as in LLM-Viewer; FP16 (it has no BF16)' },
  { id: 't4', aliases: ['tesla-t4'], memory: 16, bandwidth: 0.32, bf16: 65, int8: 130, link: 16, domain: 1, source: 'NVIDIA T4 datasheet, as in winston-zhang-orz/gpu-specs; FP16 (it has no BF16)' },
  { id: 'h20', memory: 96, bandwidth: 4.0, bf16: 148, fp8: 296, int8: 296, link: 450, source: 'citsjtu2020/LLM-Prof hardware table (FP8 as INT8)' },
  { id: 'h800-sxm', aliases: ['h800'], memory: 80, bandwidth: 3.35, bf16: 989, fp8: 1979, int8: 1979, link: 200, source: 'NVIDIA H800 datasheet, as in citsjtu2020/LLM-Prof' },
  { id: 'a800-sxm', aliases: ['a800'], memory: 80, bandwidth: 2.039, bf16: 312, int8: 624, link: 200, source: 'citsjtu2020/LLM-Prof hardware table' },
  { id: 'l20', memory: 48, bandwidth: 0.864, bf16: 119.5, fp8: 239, int8: 239, link: 32, source: 'citsjtu2020/LLM-Prof hardware table (FP8 as INT8)' },
  { id: 'h200-nvl', memory: 141, bandwidth: 4.8, bf16: 835, fp8: 1670, int8: 1670, link: 64, domain: 4, source: 'morphllm.com/nvidia-h200 (1,671 TFLOP/s with sparsity); link as PCIe 5' },
  { id: 'h100-nvl', memory: 94, bandwidth: 3.94, bf16: 835, fp8: 1670, int8: 1670, link: 64, domain: 2, source: 'grokipedia.com/page/210100120; FLOPs as the H200 NVL, link as PCIe 5' },
  { id: 'rtx-3090', aliases: ['geforce-rtx-3090'], memory: 24, bandwidth: 0.936, bf16: 71, link: 32, domain: 1, source: 'NVIDIA GA102 whitepaper (dense, FP32 accumulation)' },
  { id: 'rtx-5090', aliases: ['geforce-rtx-5090'], memory: 32, bandwidth: 1.792, bf16: 209.5, fp8: 419, fp4: 1676, link: 64, domain: 1, source: 'spheron.network/blog/nvidia-rtx-5090-specs (with sparsity, FP16 accumulation; a quarter of it dense with FP32 accumulation, as on every GeForce)' },
  { id: 'rtx-pro-6000-workstation', memory: 102.6, bandwidth: 1.792, bf16: 503.8, fp8: 1007.6, fp4: 2015, link: 64, source: 'hmc-tech.com, NVIDIA RTX PRO 6000 Blackwell (FP32 accumulation at the full rate, unlike a GeForce)' },
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
