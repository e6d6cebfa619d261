/** Ctrl-C, for commands that make several runs. */
import type { Cli } from './cli.ts';

export interface Interruption {
  readonly now: () => boolean;
  /** Called when it comes, until released. */
  readonly onto: (run: () => void) => () => void;
  readonly forget: () => void;
}

/** Ctrl-C once ends the search and reports what is known; twice is the system's. */
export function interruption(cli: Cli): Interruption {
  let stopped = false;
  const listeners = new Set<() => void>();
  const handler = (): void => {
    stopped = true;
    cli.stderr.line('\nStopping: what is known is reported. Ctrl-C again to leave at once.');
    for (const run of listeners) run();
    process.off('SIGINT', handler);
    process.off('SIGTERM', handler);
  };
  process.on('SIGINT', handler);
  process.on('SIGTERM', handler);
  return {
    now: () => stopped,
    onto: (run) => {
      listeners.add(run);
      return () => listeners.delete(run);
    },
    forget: () => {
      process.off('SIGINT', handler);
      process.off('SIGTERM', handler);
    },
  };
}
