/**
 * Where the reader is: a view and its parameters, all of it in the address after `#`, so that a link gives the same view.
 */
import { computed, signal } from '@preact/signals';
import { hashOf, parseHash, type Route, type View } from './hash.ts';

export { hashOf, type View } from './hash.ts';

const now = signal<Route>({ view: 'runs', params: new URLSearchParams() });
export const route = computed(() => now.value);
export const param = (name: string): string | undefined => now.value.params.get(name) ?? undefined;

export function startRouting(fallback: View): void {
  const read = (): void => {
    // What was to be written belongs to where the reader was.
    clearTimeout(writing);
    writing = undefined;
    now.value = parseHash(location.hash, fallback);
  };
  read();
  addEventListener('hashchange', read);
  addEventListener('pagehide', writeNow);
}

/** The address follows what is shown this much later, ms: browsers take it amiss when it changes with every frame. */
const SETTLING = 120;
let writing: ReturnType<typeof setTimeout> | undefined;

function writeNow(): void {
  if (writing === undefined) return;
  clearTimeout(writing);
  writing = undefined;
  history.replaceState(null, '', hashOf(now.value.view, Object.fromEntries(now.value.params)));
}

export function go(view: View, params: Readonly<Record<string, string | number | undefined>> = {}): void {
  writeNow();
  location.hash = hashOf(view, params);
}

/** Changes some parameters of the view without a step in the history; undefined takes one away. */
export function adjust(changes: Readonly<Record<string, string | number | undefined>>): void {
  const { view, params } = now.value;
  const next = new URLSearchParams(params);
  for (const [key, value] of Object.entries(changes)) {
    if (value === undefined || value === '') next.delete(key);
    else next.set(key, String(value));
  }
  now.value = { view, params: next };
  writing ??= setTimeout(writeNow, SETTLING);
}

/** Of the present address, what belongs to a run and is carried from view to view: the run and the limits tried on it. */
export function carried(): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [key, value] of now.value.params) if (key === 'run' || key.startsWith('c.')) kept[key] = value;
  return kept;
}
