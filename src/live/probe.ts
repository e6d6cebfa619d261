/**
 * Looks at an endpoint before it is loaded: is it there, does it accept us, which model does it serve, what software is
 * it. A handful of small requests, none of which generates a token.
 */
import { didYouMean, InputError, oneLine } from '../base/index.ts';
import type { Millis } from '../base/units.ts';
import type { DialectName } from '../wire/index.ts';
import { type Answer, ask, NoAnswer } from './ask.ts';
import { type Dial, dialer } from './dial.ts';
import { placeOf } from './engine.ts';
import { describeErrorBody, htmlTitle, isHtml } from './error-body.ts';
import { failureOf } from './failure.ts';
import { requestHeaders } from './headers.ts';
import type { LiveOptions } from './options.ts';
import { type Redactor, redactUrl } from './secrets.ts';
import { type ServerSign, SIGNS, softwareOf } from './software.ts';
import { type Target, targetOf } from './target.ts';

export interface ProbeResult {
  /** The options given, with dialect and model filled in: what `liveEngine` takes. */
  readonly options: LiveOptions;
  /** The endpoint requests will go to, fit to be shown. */
  readonly endpoint: string;
  readonly dialect: DialectName;
  readonly why: string;
  readonly model: string;
  /** Where the model's name comes from: `--model`, `/v1/models`, … */
  readonly modelFrom: string;
  /** All the models the server lists. */
  readonly models: readonly string[];
  /** The server's software, as far as can be told, and by what sign. */
  readonly server?: { readonly name: string; readonly sign: string };
  /** What the user should know but need not act on. */
  readonly notes: readonly string[];
}

/** @throws InputError, one line that says what to do next, when the endpoint cannot be used as asked. */
export async function probe(options: LiveOptions, timeout: Millis = 5000): Promise<ProbeResult> {
  const { target: first, visit } = visitOf(options, timeout);

  const listed = await get(visit, modelsPath(first));
  let models = listed === undefined || listed.status > 299 ? [] : modelsIn(parse(listed.body));
  let modelFrom = shownPath(modelsPath(first));
  let server = softwareOf(listed, models);
  let target = first;
  const sign = models.length === 0 || server === undefined ? await firstSign(visit) : undefined;
  if (sign !== undefined) {
    server ??= { name: sign.sign.server, sign: `it answers ${sign.sign.path}` };
    if (models.length === 0) {
      models = sign.models.map((id) => ({ id }));
      modelFrom = sign.sign.path;
    }
  }

  const names = models.map((m) => m.id);
  let endpoint = await knock(visit, target, options.model ?? names[0] ?? '');
  if (endpoint.status === 404 && target.assumed && sign?.sign.dialect !== undefined) {
    // Not OpenAI's API, but we know the software and so its own.
    target = { ...targetOf(options.url, sign.sign.dialect), why: `${sign.sign.server} answers ${sign.sign.path}` };
    endpoint = await knock(visit, target, options.model ?? names[0] ?? '');
  }
  const notes = judgeEndpoint(visit, target, endpoint, listed, options);
  const model = chooseModel(options.model, models, visit.shown, modelFrom, notes);
  return {
    options: { ...options, dialect: target.dialect.name, model },
    endpoint: redactUrl(target.origin.origin + target.path(model, true)),
    dialect: target.dialect.name,
    why: target.why,
    model,
    modelFrom: options.model !== undefined ? '--model' : modelFrom,
    models: names,
    ...(server && { server }),
    notes,
  };
}

/** A question of JSON to another path of the server, by the same way and with the same headers as any request. */
export async function post(options: LiveOptions, path: string, body: unknown, timeout: Millis = 5000): Promise<Answer> {
  const { visit } = visitOf(options, timeout);
  const question = { method: 'POST', path: visit.prefix + path, headers: visit.headers } as const;
  return ask(visit.origin.origin, visit.dial, { ...question, body: JSON.stringify(body) }, timeout);
}

function visitOf(options: LiveOptions, timeout: Millis): { readonly target: Target; readonly visit: Visit } {
  const { target, proxy, redact } = placeOf(options);
  const dial = dialer(target.origin, proxy, options, timeout);
  const prefix = proxy !== undefined && target.origin.protocol === 'http:' ? target.origin.origin : '';
  const extra: Record<string, string> =
    prefix !== '' && proxy?.authorization !== undefined ? { 'proxy-authorization': proxy.authorization } : {};
  const headers = { ...requestHeaders(target, options), ...extra };
  return { target, visit: { origin: target.origin, dial, headers, prefix, timeout, shown: target.shown, redact } };
}

interface Visit {
  readonly origin: URL;
  readonly dial: Dial;
  readonly headers: Readonly<Record<string, string>>;
  /** Before each path: the origin, through a plain proxy. */
  readonly prefix: string;
  readonly timeout: Millis;
  readonly shown: string;
  readonly redact: Redactor;
}

interface Model {
  readonly id: string;
  readonly ownedBy?: string;
  /** Of an adapter, the model it adapts. */
  readonly parent?: string;
}

/** The answer to a GET; undefined when this path gives none, though the host can be reached. */
async function get(visit: Visit, path: string): Promise<Answer | undefined> {
  try {
    return await ask(
      visit.origin.origin,
      visit.dial,
      { method: 'GET', path: visit.prefix + path, headers: visit.headers },
      visit.timeout,
    );
  } catch (error) {
    throw unreachable(visit, error);
  }
}

/** An empty request: served paths refuse it (400, 422, …) without generating, others say 404. */
async function knock(visit: Visit, target: Target, model: string): Promise<Answer> {
  const question = {
    method: 'POST',
    path: visit.prefix + target.path(model, true),
    headers: visit.headers,
    body: '{}',
  } as const;
  try {
    return await ask(visit.origin.origin, visit.dial, question, visit.timeout);
  } catch (error) {
    throw unreachable(visit, error);
  }
}

function unreachable(visit: Visit, error: unknown): InputError {
  if (error instanceof NoAnswer) {
    return new InputError(
      `${visit.shown}: ${error.message}; check that the server is up, and not still loading its model`,
      { cause: error },
    );
  }
  const place = {
    host: visit.origin.host,
    secure: visit.origin.protocol === 'https:',
    phase: 'waiting',
    untouchedReuse: false,
  } as const;
  return new InputError(`${visit.shown}: ${failureOf(error, place, visit.redact).detail}`, { cause: error });
}

/** The first of the signs of known software that the server shows, asked all at once. */
async function firstSign(visit: Visit): Promise<{ sign: ServerSign; models: readonly string[] } | undefined> {
  const found = await Promise.all(
    SIGNS.map(async (sign) => {
      const answer = await get(visit, sign.path).catch(() => undefined);
      const models = answer?.status === 200 ? sign.models(parse(answer.body)) : undefined;
      return models === undefined ? undefined : { sign, models };
    }),
  );
  return found.find((f) => f !== undefined);
}

/** Throws where the endpoint cannot be used; else what is worth saying of it. */
function judgeEndpoint(
  visit: Visit,
  target: Target,
  answer: Answer,
  listed: Answer | undefined,
  options: LiveOptions,
): string[] {
  const { shown, redact } = visit;
  const path = redact(target.path('', true).split('?', 1)[0] ?? '');
  const contentType = answer.headers['content-type'] ?? '';
  const said = redact(describeErrorBody(answer.body, contentType));
  const words = said && `: ${said}`;
  const { status } = answer;
  if (status === 401 || status === 403 || status === 407) {
    const todo =
      options.key === undefined
        ? 'put the API key into an environment variable and name that variable with --api-key-env'
        : 'check that the key is right for this server, and may use this model';
    throw new InputError(`${shown}: the server refuses us (${status}${words}); ${todo}`);
  }
  if (isHtml(contentType, answer.body)) {
    const title = htmlTitle(answer.body);
    throw new InputError(
      `${shown}: ${path} answers ${status} with an HTML page${title && ` titled '${redact(title)}'`}, not an API; check the host, the port and the path`,
    );
  }
  if (status === 404 && !/model/i.test(said)) {
    const hint =
      listed !== undefined && listed.status < 300
        ? `the server answers ${shownPath(modelsPath(target))}, so only the path is wrong`
        : 'check the path; OpenAI-like servers serve /v1/chat/completions';
    throw new InputError(
      `${shown}: nothing is served at ${path} (404${words}); ${hint}, or name another API with --dialect`,
    );
  }
  if (status === 405) throw new InputError(`${shown}: ${path} takes no POST (405); check the path`);
  const moved = answer.headers.location;
  if (status >= 300 && status < 400 && moved !== undefined) {
    throw new InputError(`${shown}: the server sends us on to ${redact(oneLine(moved))} (${status}); use that URL`);
  }
  if (status === 429 || status >= 500) return [`${path} answers ${status} at the moment${words}`];
  return [];
}

function chooseModel(
  asked: string | undefined,
  models: readonly Model[],
  shown: string,
  from: string,
  notes: string[],
): string {
  const names = models.map((m) => m.id);
  if (asked !== undefined) {
    if (names.length > 0 && !names.includes(asked)) {
      notes.push(
        `the server does not list the model '${oneLine(asked)}'${didYouMean(asked, names)}; it lists ${listing(names)}`,
      );
    }
    return asked;
  }
  const bases = models.filter((m) => m.parent === undefined);
  const only = models.length === 1 ? models[0] : bases.length === 1 ? bases[0] : undefined;
  if (only !== undefined) return only.id;
  if (names.length === 0) {
    throw new InputError(`${shown}: the server does not say which model it serves (${from}); name it with --model`);
  }
  throw new InputError(`${shown}: the server has ${names.length} models; choose one with --model: ${listing(names)}`);
}

function listing(names: readonly string[]): string {
  const more = names.length > 5 ? `, and ${names.length - 5} more` : '';
  return (
    names
      .slice(0, 5)
      .map((n) => oneLine(n, 80))
      .join(', ') + more
  );
}

/** `…/v1/models` beside the endpoint, by OpenAI, Anthropic and Gemini alike. */
/** A path fit to be shown: a query may hold a key. */
function shownPath(path: string): string {
  return path.split('?', 1)[0] ?? '';
}

function modelsPath(target: Target): string {
  const [path = '', query] = target.path('', true).split('?', 2);
  const root = /^(.*?\/v\d\w*)(?:\/|$)/.exec(path)?.[1] ?? '/v1';
  return `${root}/models${query === undefined ? '' : `?${query}`}`;
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

/** OpenAI and Anthropic `data[].id`, Gemini `models[].name`. */
function modelsIn(json: unknown): Model[] {
  const { data, models } = (json ?? {}) as { data?: unknown; models?: unknown };
  const list = Array.isArray(data) ? data : Array.isArray(models) ? models : [];
  return list.flatMap((entry: unknown) => {
    const { id, name, owned_by, parent } = (entry ?? {}) as Record<string, unknown>;
    const called = typeof id === 'string' ? id : typeof name === 'string' ? name.replace(/^models\//, '') : undefined;
    if (called === undefined || called === '') return [];
    return [
      {
        id: called,
        ...(typeof owned_by === 'string' && { ownedBy: owned_by }),
        ...(typeof parent === 'string' && { parent }),
      },
    ];
  });
}
