/**
 * How a command is written: one file exporting one stricli command, named after it. Parameters stand at the top; `func`
 * imports the rooms it needs with `await import(…)`, so that `--help` stays quick. Errors are thrown as `InputError` or
 * `MeasurementError`; the exit code of a missed contract is set by `this.exit(EXIT.missed)`.
 *
 *   export const hello = command({
 *     func: async function (this: Cli, flags: { json: boolean }, name: string) { this.stdout.line(name); },
 *     parameters: { flags: { json: JSON_FLAG }, positional: { kind: 'tuple', parameters: [...] } },
 *     docs: { brief: 'Say hello' },
 *   });
 */

import type { Cli } from './cli.ts';

export { buildCommand as command } from '@stricli/core';
export type { Cli };

/** `--json`: machine-readable output on stdout, and nothing else there. */
export const JSON_FLAG = { kind: 'boolean', brief: 'Print JSON', default: false } as const;

/** A flag that takes a string, for `flags` of a command. */
export function text(brief: string, placeholder = 'value') {
  return { kind: 'parsed', parse: String, brief, placeholder, optional: true } as const;
}
