/** Running the built command line as a user does. Every process started here is ended by the test that started it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const MAIN = join(process.env.GOODPUT_DIST ?? join(import.meta.dirname, '..', '..', 'dist'), 'cli', 'main.js');

export interface Outcome {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly child: ChildProcess;
  readonly done: Promise<Outcome>;
  /** Resolves once stdout or stderr matches. */
  said(pattern: RegExp): Promise<RegExpExecArray>;
}

export function start(args: readonly string[], env: NodeJS.ProcessEnv = {}, stdin?: string): Running {
  if (!existsSync(MAIN)) throw new Error(`${MAIN} is not built; run npm run build`);
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { ...process.env, NO_COLOR: '1', ...env },
    stdio: [stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  const waiting = new Set<() => void>();
  const heard = (): void => {
    for (const look of waiting) look();
  };
  child.stdout?.on('data', (d) => {
    stdout += d;
    heard();
  });
  child.stderr?.on('data', (d) => {
    stderr += d;
    heard();
  });
  if (stdin !== undefined) child.stdin?.end(stdin);
  const done = new Promise<Outcome>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      resolve({ code, signal, stdout, stderr });
      heard();
    });
  });
  return {
    child,
    done,
    said: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const m = pattern.exec(stdout) ?? pattern.exec(stderr);
          if (!m && child.exitCode === null && child.signalCode === null) return;
          waiting.delete(look);
          if (m) resolve(m);
          else reject(new Error(`ended without saying ${pattern}:\n${stdout}\n${stderr}`));
        };
        waiting.add(look);
        look();
      }),
  };
}

export const run = (args: readonly string[], env?: NodeJS.ProcessEnv, stdin?: string): Promise<Outcome> =>
  start(args, env, stdin).done;

export interface Served {
  readonly url: string;
  stop(): Promise<void>;
}

/** `goodput emulate` on a free port, in a process of its own. */
export async function emulate(args: readonly string[]): Promise<Served> {
  const running = start(['emulate', '--port', '0', ...args]);
  const url = (await running.said(/listening on (http:\/\/\S+)/))[1] as string;
  return {
    url,
    stop: async () => {
      running.child.kill('SIGTERM');
      await running.done;
    },
  };
}

/** A folder of the test's own, removed by the returned function. */
export function scratch(): { dir: string; remove: () => void } {
  const dir = mkdtempSync(join(tmpdir(), 'goodput-test-'));
  return { dir, remove: () => rmSync(dir, { recursive: true, force: true }) };
}

/** The run folder `bench` named. */
export function folderOf({ stdout, stderr }: Pick<Outcome, 'stdout' | 'stderr'>): string {
  const m = /Run folder: (\S+)/.exec(stdout) ?? /Run folder: (\S+)/.exec(stderr);
  if (!m) throw new Error(`no run folder in:\n${stdout}\n${stderr}`);
  return m[1] as string;
}
