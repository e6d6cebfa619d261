/** Models by name. */
import { InputError } from '../base/errors.ts';
import { didYouMean } from '../base/nearest.ts';
import { MODELS } from './catalogue/models.ts';
import type { ModelShape } from './shape.ts';

/**
 * `llama-3.1-8b`, `meta-llama/Meta-Llama-3.1-8B`, `Llama-3.1-8B-Instruct`: case, organisation, `meta-`, `-instruct`,
 * `-base` and a trailing version are let go. @throws InputError with the nearest name.
 */
export function model(name: string): ModelShape {
  const key = modelKey(name);
  const found = MODELS.find((m) => m.name === key) ?? MODELS.find((m) => m.name === plain(key));
  if (found) return found;
  const names = MODELS.map((m) => m.name);
  throw new InputError(
    `unknown model '${name}'${didYouMean(key, names)}; known: ${names.join(', ')}; or give the path of a config.json`,
  );
}

/** The catalogue's form of a name. */
export function modelKey(name: string): string {
  const last = name.trim().split('/').at(-1) as string;
  return last
    .toLowerCase()
    .replaceAll(/[_\s]+/g, '-')
    .replace(/^(meta|nvidia)-(?=\w)/, '')
    .replace(/-v0\.\d+$/, '');
}

function plain(key: string): string {
  return key.replace(/-(instruct|base|chat|it|hf|thinking)(?=-|$)/g, '');
}
