/** The endpoints: which there are, and the plain ones. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { parseDetokenize, parseJson, parseTokenize, type ServedModel } from './body.ts';
import { METHOD_NOT_ALLOWED, NOT_FOUND, type Problem, TOO_LARGE } from './problem.ts';
import type { Vocabulary } from './words.ts';

export const MAX_BODY_BYTES = 16 << 20;

/** Calls `then` with the whole body. A larger one than allowed is answered with 413 and the connection closed. */
export function readBody(request: IncomingMessage, then: (text: string) => void, refuse: (p: Problem) => void): void {
  const declared = Number(request.headers['content-length'] ?? 0);
  if (declared > MAX_BODY_BYTES) {
    refuse(TOO_LARGE);
    return;
  }
  const pieces: Buffer[] = [];
  let size = 0;
  request.on('data', (piece: Buffer) => {
    size += piece.length;
    if (size <= MAX_BODY_BYTES) {
      pieces.push(piece);
      return;
    }
    request.removeAllListeners('data');
    request.removeAllListeners('end');
    refuse(TOO_LARGE);
  });
  request.on('end', () => then(pieces.length === 1 ? pieces[0]!.toString() : Buffer.concat(pieces).toString()));
}

export function sendJson(response: ServerResponse, status: number, body: string): void {
  send(response, status, 'application/json', body);
}

export function send(response: ServerResponse, status: number, type: string, body: string): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) });
  response.end(body);
}

export function sendProblem(response: ServerResponse, problem: Problem): void {
  // What was not read of a refused body would be taken for the next request.
  if (problem === TOO_LARGE) response.setHeader('connection', 'close');
  sendJson(response, problem.status, problem.json());
}

/** `GET /v1/models` and one of it. */
export function modelsJson(model: ServedModel, created: number): string {
  return JSON.stringify({ object: 'list', data: [modelCard(model, created)] });
}

export function modelCard(model: ServedModel, created: number): object {
  return {
    id: model.name,
    object: 'model',
    created,
    owned_by: 'vllm',
    root: model.name,
    parent: null,
    max_model_len: model.maxModelLen,
    permission: [],
  };
}

export function tokenizeJson(text: string, model: ServedModel, vocabulary: Vocabulary): string {
  const pieces = parseTokenize(parseJson(text), model);
  return JSON.stringify({
    count: pieces.length,
    max_model_len: model.maxModelLen,
    tokens: pieces.map((piece) => vocabulary.idOf(piece)),
    token_strs: null,
  });
}

export function detokenizeJson(text: string, model: ServedModel, vocabulary: Vocabulary): string {
  return JSON.stringify({ prompt: vocabulary.textOf(parseDetokenize(parseJson(text), model)) });
}

/** Paths and their method. */
export const ROUTES = {
  '/v1/models': 'GET',
  '/v1/chat/completions': 'POST',
  '/v1/completions': 'POST',
  '/tokenize': 'POST',
  '/detokenize': 'POST',
  '/health': 'GET',
  '/ping': 'GET',
  '/version': 'GET',
  '/load': 'GET',
  '/metrics': 'GET',
} as const satisfies Readonly<Record<string, 'GET' | 'POST'>>;

export type Route = keyof typeof ROUTES;

/** @throws Problem 404 or 405. */
export function routeOf(method: string | undefined, url: string | undefined): Route {
  const query = (url ?? '').indexOf('?');
  const path = query < 0 ? (url ?? '') : (url as string).slice(0, query);
  if (!Object.hasOwn(ROUTES, path)) throw NOT_FOUND;
  const route = path as Route;
  const wanted = ROUTES[route];
  if (method !== wanted && !(method === 'HEAD' && wanted === 'GET') && !(route === '/ping' && method === 'POST')) {
    throw METHOD_NOT_ALLOWED;
  }
  return route;
}
