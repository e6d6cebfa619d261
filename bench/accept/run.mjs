/**
 * What an acceptance run is made of: the built command line, an emulator in a process of its own, a run folder read back.
 * All on loopback; every process started here is ended here, by its id.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

/** A temporary folder, removed at exit. */
export function scratch() {
  const dir = mkdtempSync(join(tmpdir(), 'goodput-accept-'));
  process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** Runs the command line to its end. @returns {Promise<{code: number, stdout: string, stderr: string}>} */
export function goodput(args, { env = process.env, onSpawn } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [MAIN, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (d) => (stdout += d));
    child.stderr.on('data', (d) => (stderr += d));
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, stdout, stderr }));
    onSpawn?.(child);
  });
}

/** Starts any server and waits for `ready` in its output. */
export async function startServer(command, args, ready, options = {}) {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
  let out = '';
  const said = new Promise((resolve, reject) => {
    const look = (d) => {
      out += d;
      const m = ready.exec(out);
      if (m) resolve(m);
    };
    child.stdout.on('data', look);
    child.stderr.on('data', look);
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`${command} ended with ${code}: ${out.slice(-500)}`)));
    setTimeout(() => reject(new Error(`${command} did not come up: ${out.slice(-500)}`)), 60_000).unref();
  });
  const match = await said;
  return {
    match,
    child,
    output: () => out,
    stop: () =>
      new Promise((resolve) => {
        if (child.exitCode !== null || child.signalCode !== null) return resolve();
        child.once('exit', () => resolve());
        child.kill('SIGTERM');
        setTimeout(() => child.kill('SIGKILL'), 12_000).unref();
      }),
  };
}

/** Starts `goodput emulate` on a free port. */
export async function emulator(args) {
  const server = await startServer(
    process.execPath,
    [MAIN, 'emulate', '--port', '0', ...args],
    /listening on (http:\/\/\S+)/,
  );
  return { ...server, url: server.match[1] };
}

/** Every row of a run folder, and its epoch on the machine's monotonic clock. */
export async function readRun(folder) {
  const { openRun } = await import(fileURLToPath(new URL('../../dist/store/index.js', import.meta.url)));
  const run = await openRun(folder);
  const records = [];
  await run.records((r) => records.push(r));
  run.close();
  return {
    records,
    meta: run.meta,
    epoch: run.meta.machine.epoch_monotonic_ms,
    prefix: run.meta.target.request_id_prefix,
    cursor: run.cursor,
  };
}

/** The run folder that `bench` named. */
export function folderOf({ stdout, stderr }) {
  const m = /Run folder: (\S+)/.exec(stdout) ?? /Run folder: (\S+)/.exec(stderr);
  if (!m) throw new Error(`no run folder in: ${stdout.slice(-500)}\n${stderr.slice(-1500)}`);
  return m[1];
}

export const readStamps = (file) =>
  readFileSync(file, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
    // vLLM prefixes the caller's own id.
    .map((s) => ({ ...s, id: s.id.replace(/^(chat)?cmpl-/, '') }));

/** Type-7 quantile. */
export function quantile(values, p) {
  const s = Float64Array.from(values).sort();
  if (s.length === 0) return Number.NaN;
  const h = (s.length - 1) * p;
  const lo = Math.floor(h);
  return s[lo] + (h - lo) * ((s[lo + 1] ?? s[lo]) - s[lo]);
}

export const median = (values) => quantile(values, 0.5);

/** Prints `name: asked … reached …` and remembers misses for the exit code. */
export function figures() {
  let missed = 0;
  return {
    figure(name, asked, reached, ok) {
      if (!ok) missed++;
      console.log(`${ok ? 'ok  ' : 'MISS'} ${name}: asked ${asked}, reached ${reached}`);
    },
    end() {
      process.exitCode = missed > 0 ? 1 : 0;
    },
  };
}
