/** Where simulated requests spent their time on the server: queue, prefill, decode. */
import { formatDuration, type Millis } from '../base/units.ts';
import type { RequestRecord } from '../core/record.ts';
import { LogSketch } from '../stats/sketch.ts';

const PHASES = ['queue', 'prefill', 'decode'] as const;

export interface PhaseRow {
  readonly name: (typeof PHASES)[number];
  readonly mean: Millis;
  readonly p50: Millis;
  readonly p90: Millis;
  readonly p99: Millis;
}

/** Folds the server's own times; memory does not grow with the run. */
export class PhaseFold {
  readonly #sketches = { queue: new LogSketch(), prefill: new LogSketch(), decode: new LogSketch() };

  add({ server }: RequestRecord): void {
    if (!server) return;
    for (const name of PHASES) {
      const t = server[name];
      if (t !== undefined && t >= 0) this.#sketches[name].add(t);
    }
  }

  rows(): PhaseRow[] {
    return PHASES.flatMap((name) => {
      const s = this.#sketches[name];
      const [p50, p90, p99] = s.quantiles([0.5, 0.9, 0.99]);
      return s.mean === undefined || p50 === undefined || p90 === undefined || p99 === undefined
        ? []
        : [{ name, mean: s.mean, p50, p90, p99 }];
    });
  }

  sentences(): string[] {
    return this.rows().map(
      ({ name, mean, p50, p90, p99 }) =>
        `${name} time of completed requests: mean ${formatDuration(mean)}, p50 ${formatDuration(p50)}, p90 ${formatDuration(p90)}, p99 ${formatDuration(p99)}`,
    );
  }
}
