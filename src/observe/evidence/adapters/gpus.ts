/** GPU exporters: NVIDIA's DCGM and Triton's own. */
import type { Adapter } from '../adapter.ts';

const MIB = 1024 * 1024;

export const DCGM: Adapter = {
  engine: 'DCGM',
  role: 'gpu',
  local: (name) => (name.startsWith('DCGM_FI_') ? name.slice('DCGM_FI_'.length) : undefined),
  metrics: [
    {
      concept: 'gpu_utilisation',
      names: ['PROF_GR_ENGINE_ACTIVE'],
      observation: 'the share of time the graphics engine was active',
      unit: 'share',
    },
    {
      concept: 'gpu_utilisation',
      names: ['DEV_GPU_UTIL'],
      scale: 0.01,
      observation: 'the share of time any kernel ran: not how much of the GPU it used',
      unit: 'share',
    },
    { concept: 'gpu_memory', names: ['DEV_FB_USED'], scale: MIB, observation: 'frame buffer in use', unit: 'bytes' },
    { concept: 'gpu_power', names: ['DEV_POWER_USAGE'], observation: 'power drawn', unit: 'watts' },
    { concept: 'gpu_clock', names: ['DEV_SM_CLOCK'], observation: 'SM clock', unit: 'megahertz' },
  ],
};

export const TRITON_GPU: Adapter = {
  engine: 'Triton GPU',
  role: 'gpu',
  local: (name) => (name.startsWith('nv_gpu_') ? name.slice('nv_gpu_'.length) : undefined),
  metrics: [
    {
      concept: 'gpu_utilisation',
      names: ['utilization'],
      observation: 'the share of time any kernel ran',
      unit: 'share',
    },
    { concept: 'gpu_memory', names: ['memory_used_bytes'], observation: 'device memory in use', unit: 'bytes' },
    { concept: 'gpu_power', names: ['power_usage'], observation: 'power drawn', unit: 'watts' },
  ],
};
