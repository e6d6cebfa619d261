/** Work that may wait until what was just changed is on the screen. */

/** A page that is not shown paints nothing; its work is done all the same, this much later. Ms. */
const UNSHOWN = 200;

/**
 * Returns a function that asks for `act` to be run, once, after the next frame is painted. Asked for again before that it
 * is run once for all: it never falls behind, and never starves.
 */
export function afterPaint(act: () => void): () => void {
  let isAsked = false;
  return () => {
    if (isAsked) return;
    isAsked = true;
    let isDone = false;
    const run = (): void => {
      if (isDone) return;
      isDone = true;
      isAsked = false;
      act();
    };
    requestAnimationFrame(() => setTimeout(run));
    setTimeout(run, UNSHOWN);
  };
}
