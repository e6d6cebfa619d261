/** The built project: `npm run build` first. GOODPUT_DIST names another build, for long runs while the project is worked on. */
import { pathToFileURL } from 'node:url';

const root = process.env.GOODPUT_DIST
  ? pathToFileURL(`${process.env.GOODPUT_DIST}/`)
  : new URL('../../dist/', import.meta.url);

export const load = (path) => import(new URL(path, root).href);
