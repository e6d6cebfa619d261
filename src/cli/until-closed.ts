/** Ctrl-C for commands that serve until told to stop. */
import type { Millis } from '../base/units.ts';

export interface Closable {
  /** @param grace how long open streams may still take. */
  close(grace: Millis): Promise<void>;
}

/** Resolves when the server has closed: after a signal, with time for open streams; after a second signal at once. */
export function untilClosed(server: Closable, grace: Millis): Promise<void> {
  return new Promise((resolve, reject) => {
    let signals = 0;
    const stop = (): void => {
      const closed = server.close(signals++ === 0 ? grace : 0);
      if (signals > 1) return;
      closed.then(() => {
        process.off('SIGTERM', stop);
        process.off('SIGINT', stop);
        resolve();
      }, reject);
    };
    process.on('SIGTERM', stop);
    process.on('SIGINT', stop);
  });
}
