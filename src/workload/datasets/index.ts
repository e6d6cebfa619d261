/** Prompts of a file: which formats there are. */
import { InputError } from '../../base/errors.ts';
import { didYouMean } from '../../base/nearest.ts';
import type { Dataset } from '../dataset.ts';
import type { Chunks } from '../lines.ts';
import { readDocument } from './json.ts';
import { readJsonl, readText } from './jsonl.ts';
import type { DatasetOptions } from './options.ts';

export * from './options.ts';

export const DATASET_FORMATS = {
  sharegpt: readDocument,
  jsonl: readJsonl,
  json: readDocument,
  text: readText,
} as const satisfies Record<string, (chunks: Chunks, what: string, options: DatasetOptions) => Promise<Dataset>>;
export type DatasetFormat = keyof typeof DATASET_FORMATS;
export const DATASET_FORMAT_NAMES = Object.keys(DATASET_FORMATS) as readonly DatasetFormat[];

/** By its name when nobody says: `.json` is a document, `.txt` a prompt a line, anything else JSON lines. @throws InputError */
export function datasetFormat(file: string, name?: string): DatasetFormat {
  if (name === undefined) return /\.json$/i.test(file) ? 'json' : /\.txt$/i.test(file) ? 'text' : 'jsonl';
  if (Object.hasOwn(DATASET_FORMATS, name)) return name as DatasetFormat;
  throw new InputError(
    `format: '${name}' is not one of ${DATASET_FORMAT_NAMES.join(', ')}${didYouMean(name, DATASET_FORMAT_NAMES)}`,
  );
}
