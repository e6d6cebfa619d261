/** How wide an element is: charts are drawn to that, so that their words stay as large as the page's. */
import type { RefObject } from 'preact';
import { useEffect, useState } from 'preact/hooks';

/** @param usual until it is known; px. */
export function useWidth(of: RefObject<HTMLElement | null>, usual: number): number {
  const [width, setWidth] = useState(usual);
  useEffect(() => {
    const el = of.current;
    if (!el) return;
    const seen = new ResizeObserver(() => {
      if (el.clientWidth > 0) setWidth(Math.max(260, Math.floor(el.clientWidth)));
    });
    seen.observe(el);
    return () => seen.disconnect();
  }, []);
  return width;
}
