/** A framing cuts the bytes of a response body into frames; a dialect gives a frame its meaning. */

/** One data event of a body: an SSE event with data, a line of NDJSON, an element of a JSON array. */
export interface Frame {
  readonly data: string;
  /** The SSE event name, when one was given. */
  readonly event?: string;
  /** The body ended inside this frame: where it cannot be read it was cut, not malformed. */
  readonly cut?: boolean;
  /** Why the framing itself could not deliver the frame (it was too large); `data` is then empty. */
  readonly malformed?: string;
}

export type FrameSink = (frame: Frame) => void;

export type FramingName = 'sse' | 'ndjson' | 'json-array' | 'json';

/** Incremental; bytes handed to `push` may be reused by the caller afterwards. Memory is bounded by `MAX_FRAME_BYTES`. */
export interface Framing {
  readonly name: FramingName;
  push(bytes: Uint8Array, emit: FrameSink): void;
  /** The body ended cleanly: delivers what it still holds. */
  end(emit: FrameSink): void;
  /** SSE comments so far (keep-alives). They are no events. */
  readonly comments: number;
}

/** The largest frame that is kept, in bytes: a frame beyond it becomes one malformed frame and is skipped. */
export const MAX_FRAME_BYTES = 8 * 1024 * 1024;

export function tooLarge(limit: number): Frame {
  return { data: '', malformed: `a frame is larger than ${limit} bytes` };
}
