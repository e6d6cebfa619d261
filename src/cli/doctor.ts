/** `goodput doctor`: what works on this machine, and what to do about the rest. */
import { availableParallelism, freemem, totalmem } from 'node:os';
import { type Cli, EXIT } from './cli.ts';
import { command, JSON_FLAG } from './command.ts';

interface Check {
  readonly name: string;
  readonly state: 'ok' | 'warn' | 'fail';
  readonly found: string;
  /** What to do about it; empty when there is nothing to do. */
  readonly advice: string;
}

export const doctor = command({
  func: async function (this: Cli, flags: { json: boolean }) {
    const checks = [
      nodeVersion(),
      openFiles(),
      cores(),
      memory(),
      await clockResolution(),
      await timerLateness(),
      await duckdb(),
      await loopback(),
      ...services(),
    ];
    if (flags.json) this.stdout.line(JSON.stringify({ schema: 'goodput.doctor/1', checks }, null, 2));
    else {
      const width = Math.max(...checks.map((c) => c.name.length));
      for (const c of checks) {
        this.stdout.line(`${MARK[c.state].padEnd(5)} ${c.name.padEnd(width)}  ${c.found}`);
        if (c.advice) this.stdout.line(`      ${' '.repeat(width)}  → ${c.advice}`);
      }
    }
    if (checks.some((c) => c.state === 'fail')) this.exit(EXIT.usage);
  },
  parameters: { flags: { json: JSON_FLAG } },
  docs: { brief: 'Say what works on this machine and what to do about the rest' },
});

const MARK = { ok: 'ok', warn: 'warn', fail: 'FAIL' } as const;
const ok = (name: string, found: string): Check => ({ name, state: 'ok', found, advice: '' });

function nodeVersion(): Check {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major > 20 || (major === 20 && minor >= 20)) return ok('Node', process.version);
  return { name: 'Node', state: 'fail', found: process.version, advice: 'install Node 20.20 or later' };
}

function openFiles(): Check {
  const limits = (process.report?.getReport() as unknown as { userLimits?: { open_files?: { soft: number | string } } })
    ?.userLimits;
  const soft = limits?.open_files?.soft;
  if (soft === undefined) return { name: 'open files', state: 'warn', found: 'unknown on this system', advice: '' };
  if (soft === 'unlimited' || Number(soft) >= 4096) return ok('open files', String(soft));
  return {
    name: 'open files',
    state: 'warn',
    found: String(soft),
    advice: 'each stream needs one; raise it: ulimit -n 65536',
  };
}

function cores(): Check {
  const n = availableParallelism();
  if (n >= 2) return ok('cores', String(n));
  return {
    name: 'cores',
    state: 'warn',
    found: '1',
    advice: 'load and server share it: measure a server on another machine',
  };
}

function memory(): Check {
  const gib = (bytes: number): string => `${(bytes / 2 ** 30).toFixed(1)} GiB`;
  const found = `${gib(freemem())} free of ${gib(totalmem())}`;
  if (freemem() > 2 ** 30) return ok('memory', found);
  return { name: 'memory', state: 'warn', found, advice: '1,000 long streams and their report want about 1 GiB' };
}

/** The smallest step the monotonic clock shows. */
async function clockResolution(): Promise<Check> {
  let smallest = Number.POSITIVE_INFINITY;
  let last = process.hrtime.bigint();
  for (let i = 0; i < 10_000; i++) {
    const now = process.hrtime.bigint();
    if (now > last) smallest = Math.min(smallest, Number(now - last));
    last = now;
  }
  if (smallest <= 10_000) return ok('monotonic clock', `steps of ${smallest} ns`);
  return {
    name: 'monotonic clock',
    state: 'warn',
    found: `steps of ${smallest} ns`,
    advice: 'figures are no finer than this; check the clock source of the machine (tsc)',
  };
}

/** How late this process's event loop comes round while idle. */
async function timerLateness(): Promise<Check> {
  const { hostClock } = await import('./host.ts');
  const { clock } = hostClock();
  const late: number[] = [];
  for (let i = 0; i < 50; i++) {
    const due = clock.now() + 5;
    await new Promise<void>((resolve) => {
      clock.at(due, () => resolve());
    });
    late.push(clock.now() - due);
  }
  const p90 = late.sort((a, b) => a - b)[44] ?? 0;
  const found = `an idle timer is ${(p90 * 1000).toFixed(0)} µs late at p90`;
  if (p90 < 2) return ok('timers', found);
  return { name: 'timers', state: 'warn', found, advice: 'the machine is busy; measure when it is not' };
}

async function duckdb(): Promise<Check> {
  try {
    const { version } = await import('@duckdb/node-api');
    return ok('run folders (DuckDB)', version());
  } catch {
    return {
      name: 'run folders (DuckDB)',
      state: 'fail',
      found: 'does not load',
      advice: 'run npm ci on this machine and system',
    };
  }
}

async function loopback(): Promise<Check> {
  const { createServer } = await import('node:net');
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error) =>
      resolve({ name: 'loopback', state: 'fail', found: error.message, advice: 'allow listening on 127.0.0.1' }),
    );
    server.listen(0, '127.0.0.1', () => server.close(() => resolve(ok('loopback', '127.0.0.1 can be listened on'))));
  });
}

/** What the environment asks of HTTP, and the programs that only some suites need. */
function services(): Check[] {
  const proxy = process.env.HTTPS_PROXY ?? process.env.https_proxy;
  return proxy
    ? [
        {
          name: 'HTTPS_PROXY',
          state: 'warn',
          found: 'set',
          advice: 'requests off loopback go through it, and it is part of what is measured',
        },
      ]
    : [ok('HTTPS_PROXY', 'not set: connections are direct')];
}
