/**
 * Most events of a stream repeat the one before them byte for byte, except for one text. Such an event means what that one
 * meant, with the other text, and need not be parsed again: JSON between an equal beginning and an equal end is the same
 * tree, as long as what stands between is a plain piece of a JSON string. It saves about two thirds of the decoding.
 */
import type { OutputKind, StreamEvent } from '../core/stream.ts';
import type { Decoder } from './dialect.ts';
import { decodeUtf8 } from './framing/bytes.ts';
import type { Frame } from './framing/frame.ts';
import { isObject } from './json.ts';

const QUOTE = 34;
const BACKSLASH = 92;
const NONE = new Uint8Array(0);
const ENCODER = new TextEncoder();
const PROBE = 'probe of the text';

/** Frames longer than this are parsed: comparing them would save nothing that counts. */
const LONGEST = 4096;

export class Repeated {
  #before = '';
  #after = '';
  #event: string | undefined;
  #choice = 0;
  #kind: OutputKind = 'text';
  #known = false;
  /** The bytes around the text of a read that is one such event, as nearly every server writes it: `data: …`, blank line. */
  #head: Uint8Array = NONE;
  #tail: Uint8Array = NONE;
  /** How often it may still be learnt anew; earned by matches, so that a stream that never repeats is soon left alone. */
  #credit = 4;

  /** The meaning of a frame that repeats the one learnt, else undefined. */
  match(frame: Frame): StreamEvent | undefined {
    if (!this.#known) return undefined;
    const { data } = frame;
    const from = this.#before.length;
    const to = data.length - this.#after.length;
    // Comparing slices is several times faster here than startsWith and endsWith, which go character by character.
    if (to <= from || frame.event !== this.#event) return undefined;
    if (data.slice(0, from) !== this.#before || data.slice(to) !== this.#after) return undefined;
    for (let i = from; i < to; i++) {
      const c = data.charCodeAt(i);
      if (c < 0x20 || c === QUOTE || c === BACKSLASH) return undefined;
    }
    if (this.#credit < 16) this.#credit++;
    return { outputs: [{ choice: this.#choice, kind: this.#kind, text: data.slice(from, to) }] };
  }

  /**
   * The same for a whole read, before it is cut into frames or even decoded. Only for a read that begins between events:
   * it is one event, since a line feed inside the text would end the match.
   */
  matchRead(bytes: Uint8Array): { readonly event: StreamEvent; readonly frame: Frame } | undefined {
    const head = this.#head;
    const tail = this.#tail;
    const from = head.length;
    const to = bytes.length - tail.length;
    if (from === 0 || to <= from) return undefined;
    // The end differs first, when anything does: finish reasons and counts stand there.
    for (let i = tail.length - 1, j = bytes.length - 1; i >= 0; i--, j--) if (bytes[j] !== tail[i]) return undefined;
    for (let i = 0; i < from; i++) if (bytes[i] !== head[i]) return undefined;
    for (let i = from; i < to; i++) {
      const c = bytes[i]!;
      if (c < 0x20 || c === QUOTE || c === BACKSLASH) return undefined;
    }
    const text = decodeUtf8(bytes, from, to);
    return {
      event: { outputs: [{ choice: this.#choice, kind: this.#kind, text }] },
      frame: { data: this.#before + text + this.#after },
    };
  }

  /** @param fresh a decoder that has seen nothing, to try out what was learnt. */
  learn(frame: Frame, event: StreamEvent, fresh: () => Decoder): void {
    if (this.#credit === 0 || frame.data.length > LONGEST) return;
    const part = event.outputs[0];
    if (part === undefined || !isPlain(event)) return;
    this.#credit--;
    const literal = JSON.stringify(part.text);
    const at = frame.data.indexOf(literal);
    if (at < 0 || frame.data.indexOf(literal, at + 1) >= 0) return;
    const before = frame.data.slice(0, at + 1);
    const after = frame.data.slice(at + literal.length - 1);
    const tried: unknown = JSON.parse(before + PROBE + after);
    const probed = isObject(tried) ? fresh().event(tried, frame.event).outputs : [];
    const [found] = probed;
    if (probed.length !== 1 || found?.text !== PROBE || found.kind !== part.kind || found.choice !== part.choice)
      return;
    this.#before = flat(before);
    this.#after = flat(after);
    this.#event = frame.event;
    this.#choice = part.choice;
    this.#kind = part.kind;
    this.#known = true;
    const named = frame.event !== undefined;
    this.#head = named ? NONE : ENCODER.encode(`data: ${before}`);
    this.#tail = named ? NONE : ENCODER.encode(`${after}\n\n`);
  }
}

/** The text as characters of its own, not a window on the read it came in, which it would keep alive. */
function flat(text: string): string {
  return JSON.parse(JSON.stringify(text)) as string;
}

/** One text of one choice, and nothing else at all. */
function isPlain(event: StreamEvent): boolean {
  const part = event.outputs[0];
  if (part === undefined || event.outputs.length !== 1 || part.text === undefined) return false;
  if (part.tokens !== undefined || part.kind === 'unclassified') return false;
  for (const key in event) if (key !== 'outputs') return false;
  return true;
}
