/** What every request of one emulator shares. */
import type { Millis } from '../base/index.ts';
import type { Clock, Engine } from '../core/index.ts';
import type { ServedModel } from './body.ts';
import type { FaultRate } from './faults.ts';
import type { LatenessMeter } from './lateness.ts';
import type { EngineLoad, VllmMetrics } from './metrics.ts';
import type { StampsFile } from './stamps.ts';

/** An engine and what the emulator can ask of it beside its stream of events. */
export interface ServedEngine {
  readonly engine: Engine;
  /** Gauges and counters for `/metrics`; without it the emulator counts the requests it has open as running. */
  readonly load?: () => EngineLoad;
  /** When, on the wall clock, an event the engine stamps with `t` was planned: for the lateness report. */
  readonly plannedAt?: (t: Millis) => Millis;
  /** Engine milliseconds a wall millisecond; 1 when the engine runs in real time. */
  readonly speed: number;
  /** What it is, in one line. */
  readonly about: string;
  /** It tells of its steps itself; else a step is taken to be what shares one engine time. */
  readonly tellsSteps: boolean;
  readonly cache?: CacheConfig;
}

/** For `vllm:cache_config_info`. */
export interface CacheConfig {
  readonly blocks: number;
  readonly blockTokens: number;
  readonly gpuMemoryUtilization: number;
  readonly prefixCaching: boolean;
}

export interface Service {
  readonly served: ServedEngine;
  readonly model: ServedModel;
  /** The wall clock, in monotonic milliseconds of the machine. */
  readonly clock: Clock;
  readonly unixSeconds: () => number;
  readonly metrics: VllmMetrics;
  readonly lateness: LatenessMeter;
  readonly stamps: StampsFile | undefined;
  readonly faults: readonly FaultRate[];
  readonly seed: number;
  /** Requests that wait in the engine above which new ones are refused with 503. */
  readonly maxQueue: number;
  /** Requests with the engine now. */
  open: number;
}
