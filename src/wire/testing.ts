/** Bodies written down for tests. */
import type { DialectName } from './dialect.ts';
import { type Inspection, type InspectOptions, inspectCapture } from './inspect/inspect.ts';

const encoder = new TextEncoder();

export const bytesOf = (text: string): Uint8Array => encoder.encode(text);

/** An event stream of these data events; a text is sent as it stands, `[name, json]` is a named event. */
export function sse(...events: readonly unknown[]): string {
  return events
    .map((event) => {
      if (Array.isArray(event)) return `event: ${event[0]}\ndata: ${JSON.stringify(event[1])}\n\n`;
      return `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`;
    })
    .join('');
}

export function ndjson(...lines: readonly unknown[]): string {
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('');
}

export function inspectText(text: string, options: InspectOptions = {}): Inspection {
  return inspectCapture(bytesOf(text), options);
}

/** A chat chunk with this delta. */
export function chunk(delta: object, more: object = {}, choice: object = {}): object {
  return {
    id: 'c',
    object: 'chat.completion.chunk',
    model: 'm',
    choices: [{ index: 0, delta, finish_reason: null, ...choice }],
    ...more,
  };
}

export const finish = (reason: string, choice: object = {}): object =>
  chunk({}, {}, { finish_reason: reason, ...choice });

/** Inspects an event stream of a dialect, which it must also show by itself. */
export function inspectStream(dialect: DialectName, ...events: readonly unknown[]): Inspection {
  const text = sse(...events);
  const shown = inspectText(text).dialect;
  if (shown !== dialect) throw new Error(`the stream is ${dialect} but shows ${shown}`);
  return inspectText(text, { dialect });
}

/** Index, kind and text of each output event. */
export function outputsOf(x: Inspection): [number, string, string | undefined][] {
  return x.eventList.filter((e) => e.output).map((e) => [e.index, e.kinds.join(), e.text]);
}
