/** The dashboard over HTTP: the pages, the API behind them, and a stream of what is running. Reads run folders only. */
import { existsSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { InputError, messageOf, UserError } from '../base/errors.ts';
import type { Millis } from '../base/units.ts';
import type { Contract } from '../core/contract.ts';
import { readJson } from '../store/json.ts';
import { catalogue, readCapacity } from './catalogue.ts';
import { door, HEADERS } from './door.ts';
import { type LiveRun, snapshotOf, Tail } from './live.ts';
import { encodeChunks } from './packed/index.ts';
import { readPages } from './pages.ts';
import { storedPlans } from './plans.ts';
import { printable } from './printable.ts';
import { chunksOf, MOST_ROWS, type Readings, RunData } from './run-data.ts';
import { readSaved, writeSaved } from './saved.ts';
import { settingOf } from './setting.ts';

export interface DashboardOptions {
  /** Folder of run folders, or one of them. */
  readonly runs: string;
  readonly host: string;
  readonly port: number;
  /** Needed with every request where given. */
  readonly token?: string;
  readonly readings: Readings;
  readonly contractsOf: (workload: Readonly<Record<string, unknown>>) => Readonly<Record<string, Contract>>;
  /** Wall time, ms since 1970 UTC. */
  readonly wallNow: () => Millis;
  readonly version: string;
  /** `/live` of a proxy. */
  readonly live?: string;
  /** Where the built pages are; by default beside the code. */
  readonly pages?: string;
  /** Told of defects: what an answer of 500 hides. */
  readonly onDefect?: (error: unknown) => void;
}

export interface Dashboard {
  readonly host: string;
  readonly port: number;
  close(): Promise<void>;
}

/** Bodies that are read: tags and contracts, or a list of operations. */
const MOST_BYTES = 1_000_000;
const SECOND: Millis = 1000;

class Answer extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export async function startDashboard(options: DashboardOptions): Promise<Dashboard> {
  const pages = readPages(options.pages);
  const runs = catalogue(options.runs, options.wallNow);
  const data = new RunData(options.readings, options.wallNow);
  const guard = door(options.host, options.token);
  const live = new LiveFeed(options, runs);

  const folderOf = (id: string): string => {
    const folder = runs.folderOf(id);
    if (folder === undefined) throw new Answer(404, 'there is no such run here');
    return folder;
  };

  async function api(req: IncomingMessage, res: ServerResponse, path: string, url: URL): Promise<void> {
    const id = url.searchParams.get('run') ?? '';
    const is = (method: string, at: string): boolean => req.method === method && path === at;
    if (is('GET', '/api/runs')) {
      return json(res, {
        version: options.version,
        folder: options.runs,
        runs: await runs.list(),
        live: options.live ?? null,
      });
    }
    if (is('GET', '/api/report')) return json(res, await data.report(id, folderOf(id)));
    if (is('GET', '/api/columns')) return binary(res, await data.packed(folderOf(id)));
    if (is('POST', '/api/chunks'))
      return binary(res, encodeChunks(await chunksOf(folderOf(id), await operations(req))));
    if (is('GET', '/api/request')) {
      const detail = await data.detail(folderOf(id), Number(url.searchParams.get('operation') ?? -1));
      if (!detail) throw new Answer(404, 'this run has no such operation');
      return json(res, detail);
    }
    if (is('GET', '/api/capacity')) {
      const folder = folderOf(id);
      return json(res, { capacity: readCapacity(folder) ?? null, search: readJson(folder, 'search.json') ?? null });
    }
    if (is('GET', '/api/diagnosis')) {
      const file = join(folderOf(id), 'diagnosis.json');
      return json(res, existsSync(file) ? (readJson(folderOf(id), 'diagnosis.json') ?? null) : null);
    }
    if (is('GET', '/api/setting')) {
      const folder = folderOf(id);
      // A sweep says nothing itself; its runs do.
      const child = (await runs.list()).find((r) => r.parent === id && r.status !== 'corrupt');
      return json(res, settingOf(folder, child && runs.folderOf(child.id)));
    }
    if (is('POST', '/api/profile')) {
      const { text } = ((await body(req)) ?? {}) as { text?: unknown };
      if (typeof text !== 'string') throw new Answer(400, 'send {"text": the profile as YAML}');
      return json(res, (await import('./profile.ts')).profileEngine(text));
    }
    if (is('GET', '/api/plans')) return json(res, storedPlans(options.runs));
    if (is('GET', '/api/saved')) return json(res, readSaved(options.runs));
    if (is('PUT', '/api/saved')) return json(res, writeSaved(options.runs, await body(req)));
    if (is('GET', '/api/live')) return live.join(req, res);
    throw new Answer(404, 'there is nothing here');
  }

  const server = createServer((req, res) => {
    for (const [name, value] of Object.entries(HEADERS)) res.setHeader(name, value);
    const handled = async (): Promise<void> => {
      const url = new URL(req.url ?? '/', 'http://dashboard');
      const refused = guard.refuse(req, url);
      if (refused) throw new Answer(refused.status, refused.why);
      const cookie = guard.cookie(url);
      if (cookie !== undefined) {
        // The token leaves the address bar: it is in the cookie from here on.
        res.writeHead(303, { 'set-cookie': cookie, location: '/' }).end();
        return;
      }
      if (url.pathname.startsWith('/api/')) return await api(req, res, url.pathname, url);
      const page = pages.get(url.pathname);
      if (!page || (req.method !== 'GET' && req.method !== 'HEAD')) throw new Answer(404, 'there is no such page');
      res.writeHead(200, { 'content-type': page.type, 'content-length': page.body.length });
      res.end(req.method === 'HEAD' ? undefined : page.body);
    };
    handled().catch((error: unknown) => {
      const known = error instanceof Answer || error instanceof UserError;
      if (!known) options.onDefect?.(error);
      if (res.headersSent) return void res.destroy();
      const status = error instanceof Answer ? error.status : error instanceof UserError ? 422 : 500;
      json(res, { error: known ? messageOf(error) : `this cannot be shown: ${messageOf(error)}` }, status);
    });
  });
  server.requestTimeout = 30_000;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, resolve);
  }).catch((error: NodeJS.ErrnoException) => {
    throw new InputError(
      `the dashboard cannot listen on ${options.host}:${options.port} (${error.code ?? messageOf(error)}); choose another with --port`,
      { cause: error },
    );
  });
  const { address, port } = server.address() as AddressInfo;
  return {
    host: address,
    port,
    close: async () => {
      live.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function json(res: ServerResponse, value: unknown, status = 200): void {
  const text = JSON.stringify(value, printable);
  res.writeHead(status, { 'content-type': 'application/json; charset=utf-8' }).end(text);
}

function binary(res: ServerResponse, bytes: Uint8Array): void {
  res.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': bytes.byteLength }).end(bytes);
}

async function body(req: IncomingMessage): Promise<unknown> {
  if (!/^application\/json\b/.test(req.headers['content-type'] ?? '')) throw new Answer(415, 'send JSON');
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of req as AsyncIterable<Buffer>) {
    length += part.length;
    // What is too long is read to its end and dropped, so that the answer is heard; far too long, the line is cut.
    if (length <= MOST_BYTES) parts.push(part);
    else if (length > 16 * MOST_BYTES) break;
  }
  if (length > MOST_BYTES) throw new Answer(413, `send at most ${MOST_BYTES} bytes`);
  try {
    return JSON.parse(Buffer.concat(parts).toString('utf8'));
  } catch {
    throw new Answer(400, 'what was sent is not JSON');
  }
}

async function operations(req: IncomingMessage): Promise<readonly number[]> {
  const list = await body(req);
  if (!Array.isArray(list) || list.length > MOST_ROWS || !list.every((n) => Number.isSafeInteger(n) && n >= 0)) {
    throw new Answer(400, `send a list of at most ${MOST_ROWS} operations`);
  }
  return list as number[];
}

/** Everyone who watches gets the same second: the folder is read once a second however many there are, and not at all by none. */
class LiveFeed {
  readonly #options: DashboardOptions;
  readonly #runs: ReturnType<typeof catalogue>;
  readonly #watchers = new Set<ServerResponse>();
  readonly #tails = new Map<string, Tail>();
  #timer: NodeJS.Timeout | undefined;
  #isBeating = false;
  #closing = new AbortController();
  #last = '';

  constructor(options: DashboardOptions, runs: ReturnType<typeof catalogue>) {
    this.#options = options;
    this.#runs = runs;
  }

  join(req: IncomingMessage, res: ServerResponse): void {
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    this.#watchers.add(res);
    if (this.#last !== '') res.write(this.#last);
    req.once('close', () => {
      this.#watchers.delete(res);
      this.#rest();
    });
    if (this.#timer === undefined && !this.#isBeating) void this.#beat();
  }

  close(): void {
    this.#closing.abort();
    for (const res of this.#watchers) res.end();
    this.#watchers.clear();
    this.#rest();
  }

  /** Nobody watches: nothing is followed. A beat under way is let finish, and does this itself. */
  #rest(): void {
    if (this.#watchers.size > 0 || this.#isBeating) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#last = '';
    for (const tail of this.#tails.values()) tail.close();
    this.#tails.clear();
  }

  async #beat(): Promise<void> {
    const began = this.#options.wallNow();
    this.#timer = undefined;
    this.#isBeating = true;
    try {
      const said = `data: ${JSON.stringify(await this.#look(), printable)}\n\n`;
      this.#last = said;
      // A watcher that does not read is not written to: nothing piles up for it.
      for (const res of this.#watchers) if (res.writableLength < 2_000_000) res.write(said);
    } catch (error) {
      this.#options.onDefect?.(error);
    } finally {
      this.#isBeating = false;
    }
    if (this.#watchers.size === 0) return this.#rest();
    const spent = this.#options.wallNow() - began;
    this.#timer = setTimeout(() => void this.#beat(), Math.max(50, SECOND - spent));
    this.#timer.unref();
  }

  async #look(): Promise<object> {
    const { live, wallNow, contractsOf } = this.#options;
    const listed = await this.#runs.list();
    const running = new Set(listed.filter((r) => r.status === 'running' && r.kind === 'run').map((r) => r.id));
    const told: LiveRun[] = [];
    for (const id of new Set([...running, ...this.#tails.keys()])) {
      const folder = this.#runs.folderOf(id);
      if (folder === undefined) {
        this.#tails.get(id)?.close();
        this.#tails.delete(id);
        continue;
      }
      let tail = this.#tails.get(id);
      if (!tail) {
        tail = new Tail(id, folder, contractsOf);
        this.#tails.set(id, tail);
      }
      const state = await tail.step(wallNow());
      told.push(state);
      if (state.status !== 'running') {
        tail.close();
        this.#tails.delete(id);
      }
    }
    const parents = new Set(
      listed.filter((r) => running.has(r.id) && r.parent !== null).map((r) => r.parent as string),
    );
    const searches = [...parents].map((id) => ({
      id,
      search: probesSoFar(readJson(this.#runs.folderOf(id) as string, 'search.json')),
      capacity: readCapacity(this.#runs.folderOf(id) as string) ?? null,
    }));
    const proxy = live === undefined ? null : await snapshotOf(live, this.#closing.signal);
    return { time: wallNow(), runs: told, searches, proxy };
  }
}

/** Of a search under way: the rates that were run. */
function probesSoFar(search: Readonly<Record<string, unknown>> | undefined): readonly unknown[] {
  const probes = Array.isArray(search?.probes) ? (search.probes as Record<string, unknown>[]) : [];
  return probes.slice(-200).map((p) => {
    const { rate, role, why } = (p.request ?? {}) as Record<string, unknown>;
    const { attainment, goodput, offered } = (p.measure ?? {}) as Record<string, unknown>;
    return { rate, role, why, attainment, goodput, offered };
  });
}
