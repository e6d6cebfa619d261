/** What every command is handed, and how its errors and exit codes leave the process. */
import type { CommandContext, StricliProcess } from '@stricli/core';

/** Exit codes scripts can use. A defect of ours exits 70 (EX_SOFTWARE), with its stack. */
export const EXIT = { ok: 0, missed: 1, usage: 2, invalid: 3, defect: 70 } as const;

/** The context of a command: `this` inside its `func`. */
export interface Cli extends CommandContext {
  readonly process: StricliProcess & { exitCode?: number | string | null | undefined };
  readonly stdout: Terminal;
  readonly stderr: Terminal;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Sets the exit code of the process; commands return normally. */
  exit(code: number): void;
}

export interface Terminal {
  write(text: string): void;
  /** Writes `text` and a line feed. */
  line(text?: string): void;
  readonly isTTY: boolean;
  /** Colour is wanted: a terminal, and neither NO_COLOR nor TERM=dumb. */
  readonly color: boolean;
  readonly columns: number;
}

type Stream = Pick<NodeJS.WriteStream, 'write' | 'isTTY' | 'columns'>;

export function terminal(stream: Stream, env: Cli['env']): Terminal {
  const isTTY = stream.isTTY === true;
  const noColor = env.NO_COLOR !== undefined && env.NO_COLOR !== '';
  return {
    write: (text) => void stream.write(text),
    line: (text = '') => void stream.write(`${text}\n`),
    isTTY,
    color: isTTY && !noColor && env.TERM !== 'dumb',
    get columns() {
      return stream.columns ?? 100;
    },
  };
}

export function cliOf(process: NodeJS.Process): Cli {
  return {
    process: process as unknown as Cli['process'],
    stdout: terminal(process.stdout, process.env),
    stderr: terminal(process.stderr, process.env),
    env: process.env,
    exit: (code) => {
      process.exitCode = code;
    },
  };
}
