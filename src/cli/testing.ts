/** Runs one command as the command line would, for tests beside it. No test framework in here. */
import { buildApplication, type Command, run, text_en } from '@stricli/core';
import { messageOf } from '../base/errors.ts';
import { parsable } from './argv.ts';
import type { Cli } from './cli.ts';

export interface CommandRun {
  readonly out: string;
  readonly err: string;
  readonly code: number;
}

/** @param argv what would stand behind the command's name. */
export async function runCommand(command: Command<Cli>, argv: readonly string[]): Promise<CommandRun> {
  const out: string[] = [];
  const err: string[] = [];
  const terminal = (to: string[]) => ({
    write: (s: string) => void to.push(s),
    line: (s = '') => void to.push(`${s}\n`),
    isTTY: false,
    color: false,
    columns: 100,
  });
  const stdout = terminal(out);
  const stderr = terminal(err);
  const process = { stdout, stderr, exitCode: null as number | string | null };
  let code: number | undefined;
  const cli: Cli = { process, stdout, stderr, env: {}, exit: (c) => void (code = c) };
  const app = buildApplication(command, {
    name: 'goodput',
    scanner: { caseStyle: 'allow-kebab-for-camel' },
    localization: {
      text: { ...text_en, exceptionWhileRunningCommand: messageOf, commandErrorResult: messageOf },
    },
  });
  await run(app, parsable(argv), cli);
  return { out: out.join(''), err: err.join('').trim(), code: code ?? Number(process.exitCode ?? 0) };
}
