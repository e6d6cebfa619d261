/** `goodput ui`: the dashboard, served on loopback unless told otherwise. */
import { InputError, oneLine } from '../base/errors.ts';
import { type Cli, command, JSON_FLAG, text } from './command.ts';

interface Flags {
  readonly port: number;
  readonly host: string;
  readonly live?: string;
  readonly open: boolean;
  readonly json: boolean;
}

export const ui = command({
  func: runUi,
  parameters: {
    flags: {
      port: { kind: 'parsed', parse: port, default: '4800', brief: 'Port; 0 takes a free one', placeholder: 'N' },
      host: {
        ...text('Address to listen on. Off loopback everyone who asks needs the token that is printed', 'address'),
        optional: false,
        default: '127.0.0.1',
      },
      live: text("A proxy's /live to show beside running measurements: http://127.0.0.1:8080/live", 'URL'),
      open: { kind: 'boolean', default: false, brief: 'Open a browser on it' },
      json: JSON_FLAG,
    },
    positional: {
      kind: 'tuple',
      parameters: [
        {
          brief: 'Folder of run folders, or one run (default runs)',
          parse: String,
          placeholder: 'RUNS_DIR',
          optional: true,
        },
      ],
    },
  },
  docs: {
    brief: 'Look at runs in a browser: figures, timelines, capacity, plans, and what is running now',
    fullDescription:
      'Serves the pages until it is interrupted. Nothing is loaded from elsewhere, and run folders are only read; tags and\n' +
      'contracts that are saved go to dashboard.json in RUNS_DIR.',
  },
});

function port(value: string): number {
  const n = Number(value);
  if (!/^\d{1,5}$/.test(value) || n > 65_535)
    throw new InputError(`--port: '${oneLine(value, 20)}' is not a port from 0 to 65535`);
  return n;
}

async function runUi(this: Cli, flags: Flags, folder = 'runs'): Promise<void> {
  const [
    { existsSync, statSync },
    { randomBytes },
    { startDashboard },
    { isLoopback },
    { READINGS },
    { storedContracts },
    { VERSION },
  ] = await Promise.all([
    import('node:fs'),
    import('node:crypto'),
    import('../dashboard/server.ts'),
    import('../dashboard/door.ts'),
    import('./dashboard-readings.ts'),
    import('./load-facts.ts'),
    import('./version.ts'),
  ]);
  if (!existsSync(folder) || !statSync(folder).isDirectory()) {
    throw new InputError(
      `${oneLine(folder)}: no such folder; give the one that holds your run folders (goodput bench makes runs/)`,
    );
  }
  const token = isLoopback(flags.host) ? undefined : randomBytes(24).toString('base64url');
  const dashboard = await startDashboard({
    runs: folder,
    host: flags.host,
    port: flags.port,
    ...(token !== undefined && { token }),
    readings: READINGS,
    contractsOf: storedContracts,
    wallNow: Date.now,
    version: VERSION,
    ...(flags.live !== undefined && { live: liveUrl(flags.live) }),
    onDefect: (error) =>
      this.stderr.line(
        `goodput: ${oneLine(error instanceof Error ? (error.stack ?? error.message) : String(error), 2000)}`,
      ),
  });
  const shown = dashboard.host.includes(':') ? `[${dashboard.host}]` : dashboard.host;
  const url = `http://${shown}:${dashboard.port}/${token === undefined ? '' : `?token=${token}`}`;
  if (flags.json)
    this.stdout.line(
      JSON.stringify({
        schema: 'goodput.ui/1',
        url,
        host: dashboard.host,
        port: dashboard.port,
        token: token ?? null,
        runs: folder,
      }),
    );
  else {
    this.stdout.line(`Dashboard of ${oneLine(folder)} on ${url}`);
    if (token !== undefined)
      this.stdout.line('Not on loopback: whoever has this address can read the runs. The connection is not encrypted.');
    this.stdout.line('Ctrl-C ends it.');
  }
  if (flags.open) await openBrowser(url, this);
  await signalled();
  await dashboard.close();
}

function liveUrl(value: string): string {
  let url: URL;
  try {
    url = new URL(value);
  } catch {
    throw new InputError(
      `--live: '${oneLine(value, 100)}' is not an address; give the proxy's, like http://127.0.0.1:8080/live`,
    );
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new InputError(`--live: only http and https, not ${url.protocol}`);
  if (url.pathname === '/') url.pathname = '/live';
  return url.href;
}

async function openBrowser(url: string, cli: Cli): Promise<void> {
  const { spawn } = await import('node:child_process');
  const by = process.platform === 'darwin' ? 'open' : process.platform === 'win32' ? 'explorer' : 'xdg-open';
  const child = spawn(by, [url], { stdio: 'ignore', detached: true });
  child.on('error', () =>
    cli.stderr.line(`goodput: no browser could be opened (${by} is not there); open the address yourself`),
  );
  child.unref();
}

function signalled(): Promise<void> {
  return new Promise((resolve) => {
    const stop = (): void => {
      process.off('SIGINT', stop);
      process.off('SIGTERM', stop);
      resolve();
    };
    process.on('SIGINT', stop);
    process.on('SIGTERM', stop);
  });
}
