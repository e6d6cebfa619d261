/**
 * A workload drawn ahead of time. Writing a prompt of ten thousand tokens takes milliseconds; arrivals that come together
 * would wait for one another's prompts. So offers are drawn in the pauses between arrivals and kept until they are due: what
 * is offered, and when, stays as it was.
 */
import type { Millis } from '../base/units.ts';
import type { Clock } from '../core/clock.ts';
import type { Offer, Workload } from '../core/request.ts';

/** Offers kept, and characters of their prompts. */
const MOST = 256;
const MOST_TEXT = 64 << 20;
/** Kept free before an arrival beside what drawing takes. */
const MARGIN: Millis = 2;

/** @param clock when to draw; its time of now is taken for the start of the load. */
export function drawnAhead(workload: Workload, clock: Clock): Workload {
  const start = clock.now();
  const ready: Offer[] = [];
  let text = 0;
  let cost: Millis = 0;
  let exhausted = false;
  let isAsked = false;
  /** When the offer that was handed out last is due. */
  let due = Number.NEGATIVE_INFINITY;
  const draw = (): void => {
    const before = clock.now();
    const offer = workload.next();
    cost = Math.max(clock.now() - before, 0.9 * cost);
    if (!offer) exhausted = true;
    else {
      ready.push(offer);
      text += sizeOf(offer);
    }
  };
  const later = (at: Millis): void => {
    if (isAsked || exhausted) return;
    isAsked = true;
    clock.at(at, () => {
      isAsked = false;
      if (exhausted || ready.length >= MOST || text >= MOST_TEXT) return; // the next arrival asks again
      // Between the last arrival and the next there must be room for it.
      if (due - clock.now() <= cost + MARGIN) return;
      draw();
      later(clock.now());
    });
  };
  return {
    next() {
      if (ready.length === 0 && !exhausted) draw();
      const offer = ready.shift();
      if (!offer) return undefined;
      text -= sizeOf(offer);
      due = start + offer.at;
      later(clock.now());
      return offer;
    },
    ended: (operation, t, ok) => workload.ended(operation, t, ok),
  };
}

function sizeOf({ spec: { prompt } }: Offer): number {
  if (prompt === undefined) return 0;
  if (typeof prompt === 'string') return prompt.length;
  let size = 0;
  for (const { content } of prompt) {
    if (typeof content === 'string') size += content.length;
    else for (const part of content) size += part.type === 'text' ? part.text.length : part.url.length;
  }
  return size;
}
