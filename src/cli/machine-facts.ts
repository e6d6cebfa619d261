/** What a run folder says of the machine it was measured on. */
import { availableParallelism, cpus, platform, release, totalmem } from 'node:os';
import type { HostClock } from './host.ts';

export function machineFacts(host: HostClock) {
  return {
    platform: `${platform()} ${release()}`,
    cpus: availableParallelism(),
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    memory_bytes: totalmem(),
    epoch_monotonic_ms: host.epochMonotonic,
  };
}
