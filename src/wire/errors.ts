/** Errors as servers tell them, inside a 200 stream or as a whole body, made into one shape. */
import type { StreamError } from '../core/stream.ts';
import { isObject, type Json, textOf } from './json.ts';

/** HTTP statuses that words stand for, where no number is given. Keys are lower case letters only. */
const STATUS_OF_WORD: Readonly<Record<string, number>> = {
  badrequest: 400,
  badrequesterror: 400,
  invalidrequest: 400,
  invalidrequesterror: 400,
  invalidargument: 400,
  failedprecondition: 400,
  contextlengthexceeded: 400,
  exceedcontextsizeerror: 400,
  invalidprompt: 400,
  unauthorized: 401,
  unauthenticated: 401,
  authenticationerror: 401,
  invalidapikey: 401,
  invalidauthenticationerror: 401,
  billingerror: 402,
  insufficientcredits: 402,
  forbidden: 403,
  permissiondenied: 403,
  permissionerror: 403,
  permissiondeniederror: 403,
  notfound: 404,
  notfounderror: 404,
  modelnotfound: 404,
  requesttoolarge: 413,
  validation: 422,
  unprocessableentityerror: 422,
  generation: 424,
  incompletegeneration: 500,
  ratelimit: 429,
  ratelimiterror: 429,
  ratelimitexceeded: 429,
  ratelimitreached: 429,
  ratelimitreachederror: 429,
  toomanyrequests: 429,
  toomanyrequestserror: 429,
  insufficientquota: 429,
  exceededcurrentquotaerror: 429,
  resourceexhausted: 429,
  enginedead: 500,
  internal: 500,
  internalerror: 500,
  internalservererror: 500,
  servererror: 500,
  apierror: 500,
  badgateway: 502,
  overloaded: 503,
  engineoverloaded: 503,
  engineoverloadederror: 503,
  serviceunavailable: 503,
  serviceunavailableerror: 503,
  unavailable: 503,
  unavailableerror: 503,
  modelloading: 503,
  timeout: 504,
  timeouterror: 504,
  gatewaytimeout: 504,
  deadlineexceeded: 504,
  overloadederror: 529,
};

function statusOfWord(word: string | undefined): number | undefined {
  return word === undefined ? undefined : STATUS_OF_WORD[word.toLowerCase().replace(/[^a-z]/g, '')];
}

/** A number that looks like an HTTP status, also written as a string. */
function statusOf(x: unknown): number | undefined {
  const n = typeof x === 'string' && /^\d{3}$/.test(x) ? Number(x) : x;
  return typeof n === 'number' && Number.isInteger(n) && n >= 100 && n <= 599 ? n : undefined;
}

/**
 * The error an object tells, if it tells one: `{"error": {…} | "…"}`, `{"object": "error", …}`, `{"type": "error", …}`,
 * `{"detail": …}` (FastAPI), and the bare `{"message", "code"}` of gateways when `bare` allows it.
 */
export function errorIn(json: Json, bare = true): StreamError | undefined {
  const { error } = json;
  if (isObject(error)) return describe(error, json);
  if (typeof error === 'string' && error !== '') {
    return made(error, textOf(json.error_type) ?? textOf(json.type), statusOf(json.code) ?? statusOf(json.status));
  }
  if (Array.isArray(error) && isObject(error[0])) return describe(error[0], json);
  if (json.object === 'error' || json.type === 'error') return describe(json, json);
  if (!bare || json.choices !== undefined) return undefined;
  if (json.detail !== undefined && json.detail !== null && json.object === undefined) {
    return made(detailText(json.detail), undefined, statusOf(json.status) ?? statusOf(json.code));
  }
  const message = textOf(json.message) ?? textOf(json.error_msg) ?? textOf(json.msg);
  const said = json.code ?? json.error_code ?? json.status ?? json.statusCode ?? json.status_code;
  if (message !== undefined && json.done === undefined && (said !== undefined || Object.keys(json).length === 1)) {
    return describe({ ...json, message, code: said }, json);
  }
  return undefined;
}

/** The error told by an object that is known to be one. */
export function describe(error: Json, around: Json = error): StreamError {
  const words = [
    textOf(error.type),
    textOf(error.status),
    textOf(error.code),
    textOf(error.error_type),
    textOf(error.err_type),
  ];
  const named = words.filter((w): w is string => w !== undefined && w !== 'error' && statusOf(w) === undefined);
  const code =
    statusOf(error.code) ??
    statusOf(error.status) ??
    statusOf(error.status_code) ??
    statusOf(error.http_code) ??
    statusOf(around.code) ??
    statusOf(around.status_code);
  const message =
    textOf(error.message) ??
    textOf(error.detail) ??
    textOf(error.msg) ??
    textOf(error.error) ??
    named[0] ??
    'an error without a message';
  return made(message, named[0], code ?? firstStatus(named));
}

function firstStatus(words: readonly string[]): number | undefined {
  for (const word of [...words].reverse()) {
    const status = statusOfWord(word); // a code says more than a type: `rate_limit_exceeded` than `requests`
    if (status !== undefined) return status;
  }
  return undefined;
}

function made(message: string, type: string | undefined, code: number | undefined): StreamError {
  const status = code ?? statusOfWord(type);
  return { message, ...(type !== undefined && { type }), ...(status !== undefined && { code: status }) };
}

/** FastAPI's `detail`: a text, or a list of what did not validate. */
function detailText(detail: unknown): string {
  if (typeof detail === 'string') return detail;
  const first: unknown = Array.isArray(detail) ? detail[0] : detail;
  if (isObject(first)) {
    const where = Array.isArray(first.loc) ? `${first.loc.join('.')}: ` : '';
    return where + (textOf(first.msg) ?? textOf(first.message) ?? JSON.stringify(first).slice(0, 300));
  }
  return JSON.stringify(detail).slice(0, 300);
}
