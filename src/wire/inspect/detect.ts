/** Which dialect a capture is in, where nobody says. */
import type { DialectName } from '../dialect.ts';
import { detectDialect, dialectOfError } from '../dialects/index.ts';
import type { Frame, Framing } from '../framing/frame.ts';
import { JsonArrayFraming } from '../framing/json-array.ts';
import { JsonBodyFraming } from '../framing/json-body.ts';
import { NdjsonFraming } from '../framing/ndjson.ts';
import { SseFraming } from '../framing/sse.ts';
import { isObject } from '../json.ts';

/** Frames looked at: a stream shows what it is in its first few, but may begin with pings. */
const LOOKED_AT = 1000;

/** The dialect that the first frames of a body show, or undefined. */
export function detectInBody(bytes: Uint8Array): DialectName | undefined {
  let ofError: DialectName | undefined;
  for (const framing of [new SseFraming(), new NdjsonFraming(), new JsonArrayFraming(), new JsonBodyFraming()]) {
    for (const frame of framesOf(framing, bytes)) {
      let json: unknown;
      try {
        json = JSON.parse(frame.data);
      } catch {
        continue;
      }
      const dialect = detectDialect(json, frame.event);
      if (dialect !== undefined) return dialect;
      if (isObject(json)) ofError ??= dialectOfError(json, framing.name !== 'sse');
    }
    if (ofError !== undefined) return ofError;
  }
  return undefined;
}

function framesOf(framing: Framing, bytes: Uint8Array): Frame[] {
  const frames: Frame[] = [];
  const keep = (frame: Frame): void => {
    if (frames.length < LOOKED_AT && frame.malformed === undefined) frames.push(frame);
  };
  framing.push(bytes, keep);
  framing.end(keep);
  return frames;
}
