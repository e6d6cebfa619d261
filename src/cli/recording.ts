/** What a driven load tells its run folder, whichever command drives it: how far it is, and how the client fared. */
import type { Drive, DriveResult } from '../drive/drive.ts';
import type { SelfWatch } from '../drive/self-watch.ts';
import type { CursorState, JsonObject } from '../store/index.ts';
import type { OpenTarget } from './target.ts';

/** An operation's rows are written when it is final, so what is open has none yet: its attempt 0 stands for it. */
export function cursorOf(running: Drive): CursorState {
  return {
    offered: running.progress().offered,
    open: running.open().map((o) => ({ ...o, attempt: 0 })),
    ...(running.window && { window: running.window }),
  };
}

/** `health.json`. Times in ms. */
export function healthOf(result: DriveResult, watch: SelfWatch, target: OpenTarget): JsonObject {
  const { eventLoop, cpu } = watch.readings();
  return {
    event_loop_ms: eventLoop,
    cpu,
    unsent: result.unsent,
    dropped: result.dropped,
    stopped: result.stopped,
    offered: result.offered,
    attempts: result.attempts,
    stale_connections: result.stale,
    max_in_flight: result.maxInFlight,
    ...(target.evidence && { evidence: target.evidence() }),
  };
}
