/** The built pages: read once, served from memory by exact name, so that no path from outside reaches the disk. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { InputError } from '../base/errors.ts';

export interface Page {
  readonly type: string;
  readonly body: Buffer;
}

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
};

/** Where the build puts them: beside the rooms. */
export const PAGES = fileURLToPath(new URL('../ui/', import.meta.url));

/** By path, `/` first. @throws InputError when they were not built. */
export function readPages(folder: string = PAGES): ReadonlyMap<string, Page> {
  const pages = new Map<string, Page>();
  let names: string[];
  try {
    names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  } catch (error) {
    throw new InputError(`the dashboard's pages are not built (${folder}); run 'npm run build'`, { cause: error });
  }
  for (const name of names) {
    const type = TYPES[name.split('.').at(-1) ?? ''];
    if (type) pages.set(`/${name.replaceAll('\\', '/')}`, { type, body: readFileSync(join(folder, name)) });
  }
  const index = pages.get('/index.html');
  if (!index) throw new InputError(`the dashboard's pages are not built (${folder}); run 'npm run build'`);
  pages.set('/', index);
  return pages;
}
