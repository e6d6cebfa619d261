/** Light and dark: as the system has it, unless the reader chose. */
import { effect, signal } from '@preact/signals';

export type Theme = 'auto' | 'light' | 'dark';
const KEY = 'goodput-theme';

function stored(): Theme {
  try {
    const t = localStorage.getItem(KEY);
    return t === 'light' || t === 'dark' ? t : 'auto';
  } catch {
    return 'auto'; // a page opened from a file may have no storage
  }
}

export const theme = signal<Theme>('auto');
const systemDark = signal(false);
/** Changes with anything that changes colours: charts drawn on canvas draw again. */
export const isDark = signal(false);

export function startTheme(): void {
  const query = matchMedia('(prefers-color-scheme: dark)');
  systemDark.value = query.matches;
  query.addEventListener('change', () => (systemDark.value = query.matches));
  theme.value = stored();
  effect(() => {
    const dark = theme.value === 'auto' ? systemDark.value : theme.value === 'dark';
    document.documentElement.dataset.theme = dark ? 'dark' : 'light';
    isDark.value = dark;
    try {
      if (theme.value === 'auto') localStorage.removeItem(KEY);
      else localStorage.setItem(KEY, theme.value);
    } catch {
      // kept for this page alone
    }
  });
}

const read = new Map<string, string>();

/** A colour of the style sheet, as `#rrggbb`. Read once a theme: to read it lays out whatever was changed before. */
export function color(name: string): string {
  const key = `${isDark.value} ${name}`;
  let found = read.get(key);
  if (found === undefined) {
    found = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    if (found === '') return '#888888';
    read.set(key, found);
  }
  return found;
}
