/** An address after `#`: a view and its parameters. Pure. */
export const VIEWS = ['runs', 'run', 'requests', 'capacity', 'plan', 'live', 'diagnosis', 'compare'] as const;
export type View = (typeof VIEWS)[number];

export interface Route {
  readonly view: View;
  readonly params: URLSearchParams;
}

export function parseHash(hash: string, fallback: View): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?');
  const view = (VIEWS as readonly string[]).includes(path) ? (path as View) : fallback;
  return { view, params: new URLSearchParams(query) };
}

export function hashOf(view: View, params: Readonly<Record<string, string | number | undefined>>): string {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(params))
    if (value !== undefined && value !== '') query.set(key, String(value));
  const text = query.toString();
  return `#/${view}${text === '' ? '' : `?${text}`}`;
}
