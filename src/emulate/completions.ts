/** Serves one request for a completion: reads it, draws its faults, and joins a reply to the engine. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type InputError, keyed, type Millis, messageOf } from '../base/index.ts';
import type { RequestSpec } from '../core/index.ts';
import { type Api, type Asked, parseAsked, parseJson } from './body.ts';
import { submitChoices } from './fan-out.ts';
import { type DrawnFaults, drawFaults, type FaultName, forceFaults, parseForced } from './faults.ts';
import { Frames } from './frames.ts';
import { Ledger } from './ledger.ts';
import { Outlet } from './outlet.ts';
import { badRequest, Problem } from './problem.ts';
import type { Service } from './service.ts';
import { StreamReply } from './stream-reply.ts';
import { WholeReply } from './whole-reply.ts';

/** A request may ask for a fault of its own by this header: `KIND[:PARAM]`, several with commas, or `none`. */
const FAULT_HEADER = 'x-goodput-fault';
const RETRY_AFTER_SECONDS = '1';

/** Faults that answer instead of the engine. */
const REFUSALS: Partial<Record<FaultName, Problem>> = {
  'http-429': new Problem(429, 'RateLimitError', 'Too many requests. Please try again later.'),
  'http-503': new Problem(503, 'ServiceUnavailableError', 'The server is overloaded. Please try again later.'),
  'http-500': new Problem(500, 'InternalServerError', 'Internal server error'),
};
const GATEWAY_PAGE =
  '<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n</body>\r\n</html>\r\n';
const QUEUE_FULL = new Problem(503, 'ServiceUnavailableError', 'The request queue is full.');

/** @param nextNumber counts the requests that get as far as having faults drawn. @throws Problem for what is refused before it counts. */
export function serveCompletion(
  service: Service,
  api: Api,
  text: string,
  received: Millis,
  request: IncomingMessage,
  response: ServerResponse,
  nextNumber: () => number,
): void {
  const wanted = parseAsked(api, parseJson(text), service.model);
  const forced = request.headers[FAULT_HEADER];
  const given = typeof forced === 'string' ? forcedFaults(forced) : undefined;
  const number = nextNumber();
  const faults = given ? forceFaults(given, service.seed, number) : drawFaults(service.faults, service.seed, number);
  for (const name of faults.names) service.metrics.fault(name);

  const asked = shaped(wanted, faults);
  const own = requestId(request, service.seed, number);
  const id = `${api === 'chat' ? 'chatcmpl' : 'cmpl'}-${own}`;
  const outlet = new Outlet(request, response);
  const ledger = new Ledger(service, asked, number, id, received, faults);
  if (answeredByFault(faults.deciding, outlet)) {
    ledger.close(service.clock.now(), faults.deciding as FaultName, []);
    return;
  }
  if ((service.served.load?.().waiting ?? 0) >= service.maxQueue) {
    ledger.close(service.clock.now(), 'refused', []);
    refuse(QUEUE_FULL, outlet);
    return;
  }

  const name = { id, created: Math.floor(service.unixSeconds()), model: service.model.name };
  const start = number * 7;
  let inside = true;
  service.open++;
  const done = (): void => {
    if (inside) service.open--;
    inside = false;
  };
  const reply = asked.stream
    ? new StreamReply(service, asked, faults, new Frames(asked, name, start), outlet, ledger, done)
    : new WholeReply(service, asked, faults, name, start, outlet, ledger, done);
  response.on('close', () => reply.abandon());
  const headers: Record<string, string> = { 'x-request-id': own };
  if (asked.stream) {
    headers['content-type'] = 'text/event-stream; charset=utf-8';
    headers['cache-control'] = 'no-cache';
  }
  reply.open(headers, () => submitChoices(service.served.engine, specOf(asked, number), reply));
}

function forcedFaults(header: string): ReturnType<typeof parseForced> {
  if (header.trim() === 'none') return [];
  try {
    return parseForced(header);
  } catch (error) {
    throw badRequest(messageOf(error as InputError), FAULT_HEADER);
  }
}

/** What is really generated and shown, given the faults. */
function shaped(asked: Asked, faults: DrawnFaults): Asked {
  const quiet = faults.noUsage ? { ...asked, includeUsage: false, continuousUsage: false } : asked;
  if (faults.deciding === 'empty') return { ...quiet, outputTokens: 1, endToken: true };
  if (faults.deciding === 'one-token') return { ...quiet, outputTokens: 2, endToken: true };
  return quiet;
}

function answeredByFault(fault: FaultName | undefined, outlet: Outlet): boolean {
  if (fault === 'html') {
    outlet.whole(502, GATEWAY_PAGE, { 'content-type': 'text/html' });
    return true;
  }
  const problem = fault && REFUSALS[fault];
  if (problem) refuse(problem, outlet);
  return problem !== undefined;
}

function refuse(problem: Problem, outlet: Outlet): void {
  const retry = problem.status === 429 || problem.status === 503 ? { 'retry-after': RETRY_AFTER_SECONDS } : {};
  outlet.whole(problem.status, problem.json(), { 'content-type': 'application/json', ...retry });
}

function specOf(asked: Asked, number: number): RequestSpec {
  return {
    operation: number,
    attempt: 0,
    class: 'default',
    inputTokens: asked.promptTokens,
    outputTokens: asked.outputTokens,
    choices: asked.choices,
    stream: asked.stream,
    ignoreEos: asked.ignoreEos,
    prefixBlocks: asked.prefixBlocks,
  };
}

/** The caller's own id where it gave one, which vLLM puts behind the API's prefix; else one of ours that the seed repeats. */
function requestId(request: IncomingMessage, seed: number, number: number): string {
  const given = request.headers['x-request-id'];
  return typeof given === 'string' && /^[\x21-\x7e]{1,128}$/.test(given)
    ? given
    : hex(keyed(seed, 'request-id', number));
}

function hex(uniform: () => number): string {
  let text = '';
  for (let i = 0; i < 4; i++)
    text += Math.floor(uniform() * 2 ** 32)
      .toString(16)
      .padStart(8, '0');
  return text;
}
