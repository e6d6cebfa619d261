/** What a load is put on: a live server, the embedded engine in a process of its own, or nothing at all (`null:`). */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { InputError, MeasurementError, oneLine } from '../base/errors.ts';
import type { Clock } from '../core/clock.ts';
import type { Engine } from '../core/engine.ts';
import type { LiveEngine, LiveOptions } from '../live/index.ts';
import type { Cli } from './cli.ts';

export interface TargetFlags {
  readonly model?: string;
  readonly dialect?: string;
  readonly apiKeyEnv?: string;
  readonly header?: readonly string[];
  readonly body?: string;
  readonly cacert?: string;
  readonly insecure: boolean;
  readonly continuousUsage: boolean;
}

export const TARGET_FLAGS = {
  model: {
    kind: 'parsed',
    parse: String,
    optional: true,
    brief: 'Model to ask for (default: the one the server lists)',
    placeholder: 'name',
  },
  dialect: {
    kind: 'parsed',
    parse: String,
    optional: true,
    brief: 'API spoken there (default: by the path of the URL)',
    placeholder: 'dialect',
  },
  apiKeyEnv: {
    kind: 'parsed',
    parse: String,
    optional: true,
    brief: 'Environment variable that holds the API key',
    placeholder: 'NAME',
  },
  header: {
    kind: 'parsed',
    parse: String,
    optional: true,
    variadic: true,
    brief: "Header to send, 'Name: value' (may be repeated)",
    placeholder: 'header',
  },
  body: {
    kind: 'parsed',
    parse: String,
    optional: true,
    brief: 'JSON object merged into each request body',
    placeholder: 'json',
  },
  cacert: {
    kind: 'parsed',
    parse: String,
    optional: true,
    brief: 'File of certificate authorities to trust',
    placeholder: 'FILE',
  },
  insecure: { kind: 'boolean', default: false, brief: 'Accept any certificate' },
  continuousUsage: {
    kind: 'boolean',
    default: false,
    brief: 'Ask for token counts in every chunk (vLLM: continuous_usage_stats)',
  },
} as const;

export interface OpenTarget {
  readonly engine: Engine;
  /** For people: where, what, and how we know. */
  readonly text: string;
  /** Shown beside figures: an address without secrets. */
  readonly name: string;
  readonly model?: string;
  readonly dialect?: string;
  /** Whether requests need a text, or only lengths. */
  readonly prompt: 'text' | 'none';
  /** On this machine, so that no confirmation is asked. */
  readonly local: boolean;
  readonly notes: readonly string[];
  /** For `run.json`. */
  readonly facts: Readonly<Record<string, unknown>>;
  warm(connections: number): Promise<string | undefined>;
  /**
   * JSON to another path of the server, with the headers and the trust of any request; its answer, or undefined where there is
   * none. Absent where there is no server.
   */
  post?(path: string, body: unknown): Promise<unknown>;
  /** What the transport showed; absent where there is none. */
  evidence?(): Readonly<Record<string, unknown>>;
  close(): Promise<void>;
}

/** @param url undefined for the embedded engine. @throws InputError saying what to do next. */
export async function openTarget(
  cli: Cli,
  url: string | undefined,
  flags: TargetFlags,
  clock: Clock,
): Promise<OpenTarget> {
  if (url === undefined) return embedded(cli, flags, clock);
  if (url.startsWith('null:')) {
    if (url !== 'null:') throw new InputError(`'${oneLine(url)}': the null engine takes no address; write null:`);
    return nullTarget(clock);
  }
  return liveTarget(cli, url, flags, clock);
}

async function nullTarget(clock: Clock): Promise<OpenTarget> {
  const { nullEngine } = await import('../sim/scripted.ts');
  const engine = nullEngine(clock);
  return {
    engine,
    text: 'null: answers at once, without a network; what is measured is this tool',
    name: 'null:',
    prompt: 'none',
    local: true,
    notes: [],
    facts: { kind: 'null' },
    warm: async () => undefined,
    close: () => engine.close(),
  };
}

async function liveTarget(cli: Cli, url: string, flags: TargetFlags, clock: Clock): Promise<OpenTarget> {
  const { isLoopback, keyFromEnvironment, liveEngine, post, probe } = await import('../live/index.ts');
  const key = flags.apiKeyEnv === undefined ? undefined : keyFromEnvironment(cli.env, flags.apiKeyEnv);
  const asked: LiveOptions = {
    url,
    env: cli.env,
    ...(flags.model !== undefined && { model: flags.model }),
    ...(flags.dialect !== undefined && { dialect: flags.dialect }),
    ...(key !== undefined && { key }),
    ...(flags.header?.length && { headers: parseHeaders(flags.header) }),
    ...(flags.cacert !== undefined && { cacert: flags.cacert }),
    ...(flags.insecure && { insecure: true }),
    body: {
      usage: true,
      continuousUsage: flags.continuousUsage,
      ...(flags.body !== undefined && { extra: parseBody(flags.body) }),
    },
  };
  const found = await probe(asked);
  const idPrefix = `goodput-${randomUUID().slice(0, 8)}-`;
  const engine: LiveEngine = liveEngine({ ...found.options, idPrefix }, clock);
  const server = found.server ? `, ${found.server.name} (${found.server.sign})` : '';
  return {
    engine,
    text: `${found.endpoint}${server}: model ${oneLine(found.model, 100)} (from ${found.modelFrom}), dialect ${found.dialect} (${found.why})`,
    name: found.endpoint,
    model: oneLine(found.model, 200),
    dialect: found.dialect,
    prompt: 'text',
    local: isLoopback(new URL(found.endpoint).hostname),
    notes: found.notes,
    facts: {
      kind: 'live',
      endpoint: found.endpoint,
      model: oneLine(found.model, 200),
      dialect: found.dialect,
      why: found.why,
      request_id_prefix: idPrefix,
      ...(found.server && { server: found.server }),
    },
    warm: async (connections) => (await engine.warm(connections)).problem,
    post: async (path, body) => {
      try {
        const { status, body: text } = await post(found.options, path, body);
        return status < 300 ? (JSON.parse(text) as unknown) : undefined;
      } catch {
        return undefined;
      }
    },
    evidence: () => ({ ...engine.evidence() }),
    close: () => engine.close(),
  };
}

const EMBEDDED_MODEL = 'llama-3.1-8b';
const EMBEDDED_GPU = 'h100-sxm';

/** Starts `goodput emulate` on loopback in a process of its own, so that load and engine share no event loop. */
async function embedded(cli: Cli, flags: TargetFlags, clock: Clock): Promise<OpenTarget> {
  const main = fileURLToPath(new URL('./main.js', import.meta.url));
  const child = spawn(
    process.execPath,
    [main, 'emulate', '--model', EMBEDDED_MODEL, '--gpu', EMBEDDED_GPU, '--port', '0', '--json'],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
      // Ctrl-C is for us: we still need the engine to finish what is in flight.
      detached: true,
    },
  );
  const stop = (): void => {
    child.kill('SIGTERM');
  };
  process.once('exit', stop);
  try {
    const url = await listeningUrl(child);
    const target = await liveTarget(cli, url, { ...flags, insecure: false }, clock);
    return {
      ...target,
      text: `the embedded engine (${EMBEDDED_MODEL} on one ${EMBEDDED_GPU}, ideal step times) at ${target.name}`,
      facts: { ...target.facts, kind: 'embedded', emulated: { model: EMBEDDED_MODEL, gpu: EMBEDDED_GPU } },
      close: async () => {
        await target.close();
        process.off('exit', stop);
        await ended(child);
      },
    };
  } catch (error) {
    stop();
    throw error;
  }
}

const START_TIMEOUT = 20_000;

function listeningUrl(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let out = '';
    let err = '';
    const fail = (why: string): void => {
      clearTimeout(timer);
      reject(
        new MeasurementError(
          `the embedded engine did not start: ${oneLine(why || 'no reason given')}; run 'goodput emulate' to see why`,
        ),
      );
    };
    const timer = setTimeout(() => fail(`silent for ${START_TIMEOUT / 1000} s`), START_TIMEOUT);
    child.stderr?.on('data', (d: Buffer) => {
      err = (err + d).slice(-2000);
    });
    child.stdout?.on('data', (d: Buffer) => {
      out = (out + d).slice(-10_000);
      const url = /http:\/\/[^\s"]+/.exec(out)?.[0];
      if (url === undefined || !out.includes('\n')) return;
      clearTimeout(timer);
      child.stdout?.resume();
      resolve(url);
    });
    child.once('error', (error) => fail(error.message));
    child.once('exit', (code) => fail(err || `exit code ${code}`));
  });
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.kill('SIGTERM');
  const kill = setTimeout(() => child.kill('SIGKILL'), 3000);
  await exit;
  clearTimeout(kill);
}

function parseHeaders(headers: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    headers.map((header) => {
      const m = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):\s*(.*)$/.exec(header);
      // The value may be a secret: only the name is ever shown.
      if (!m) throw new InputError("--header: one is not of the form 'Name: value'");
      return [(m[1] as string).toLowerCase(), m[2] as string];
    }),
  );
}

function parseBody(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // said below
  }
  throw new InputError(`--body: not a JSON object; write something like '{"temperature": 0}'`);
}
