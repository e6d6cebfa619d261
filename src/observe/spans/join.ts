/**
 * Client records beside the engine's account of the same requests. Each duration stays in its own clock's domain; what of the
 * client's time the engine does not account for is frontend, network and delivery together, by difference of durations.
 */
import type { DurationConcept } from '../../core/evidence.ts';
import type { SpanEvidence } from './request.ts';

/** A request as its client saw it. Seconds. */
export interface ClientRequest {
  readonly operation: number;
  readonly attempt: number;
  /** Ids by which a server may know it: `x-request-id`, the response's id. */
  readonly ids: readonly string[];
  readonly trace?: string;
  /** From dispatch to the first output, and to the end. */
  readonly ttft?: number;
  readonly e2e?: number;
}

export interface JoinedRequest {
  readonly operation: number;
  readonly attempt: number;
  readonly request: string;
  readonly client: { readonly ttft?: number; readonly e2e?: number };
  readonly server: Readonly<Partial<Record<DurationConcept, number>>>;
  /** Server's own: its TTFT less queue and prefill. */
  readonly frontend?: number;
  /** Client TTFT less what the server accounts for until its first token: network and delivery, and the frontend where `frontend` is not known. */
  readonly rest?: number;
}

export interface Joined {
  readonly requests: readonly JoinedRequest[];
  /** Client requests no span was found for, and spans no request. */
  readonly withoutSpan: number;
  readonly withoutRequest: number;
  /** Spans that fit several requests, or requests several spans: left out. */
  readonly ambiguous: number;
  /** Joined ones whose engine claims more time than the client waited: clocks or ids are wrong. */
  readonly impossible: number;
}

export function joinSpans(clients: Iterable<ClientRequest>, spans: Iterable<SpanEvidence>): Joined {
  const byId = new Map<string, ClientRequest | null>();
  const put = (key: string, client: ClientRequest): void => {
    const known = byId.get(key);
    byId.set(key, known !== undefined && known !== client ? null : client);
  };
  const all = [...clients];
  for (const client of all) {
    for (const id of client.ids) put(`id ${id}`, client);
    if (client.trace !== undefined) put(`trace ${client.trace}`, client);
  }
  const matches = new Map<ClientRequest, SpanEvidence[]>();
  let withoutRequest = 0;
  let ambiguous = 0;
  for (const span of spans) {
    const keys = [
      ...idsOf(span.request).map((id) => `id ${id}`),
      ...(span.trace === undefined ? [] : [`trace ${span.trace}`]),
    ];
    const found = keys.map((key) => byId.get(key)).find((x) => x !== undefined);
    if (found === undefined) withoutRequest++;
    else if (found === null) ambiguous++;
    else matches.set(found, [...(matches.get(found) ?? []), span]);
  }
  const requests: JoinedRequest[] = [];
  let impossible = 0;
  let joined = 0;
  for (const client of all) {
    const found = matches.get(client);
    if (found === undefined) continue;
    joined++;
    if (found.length > 1) {
      ambiguous += found.length;
      continue;
    }
    const one = partsOf(client, found[0]!);
    if ((one.rest ?? 0) < -0.001) impossible++;
    requests.push(one);
  }
  return { requests, withoutSpan: all.length - joined, withoutRequest, ambiguous, impossible };
}

/** vLLM names a request after `x-request-id`: behind its API's prefix, and with an index or a random tail in some versions. */
export function idsOf(id: string): string[] {
  if (id === '') return [];
  const bare = id.replace(/^(?:chatcmpl|cmpl|resp|msg|embd|pool|score|generate-tokens)-/, '');
  const tails = [bare, id].flatMap((x) => [x.replace(/-\d{1,3}$/, ''), x.replace(/-[0-9a-f]{8}$/, '')]);
  return [...new Set([id, bare, ...tails])];
}

function partsOf(client: ClientRequest, span: SpanEvidence): JoinedRequest {
  const { queue, prefill, ttft } = span.durations;
  const phases = queue === undefined && prefill === undefined ? undefined : (queue ?? 0) + (prefill ?? 0);
  const server = ttft ?? phases;
  return {
    operation: client.operation,
    attempt: client.attempt,
    request: span.request,
    client: {
      ...(client.ttft !== undefined && { ttft: client.ttft }),
      ...(client.e2e !== undefined && { e2e: client.e2e }),
    },
    server: span.durations,
    ...(ttft !== undefined && queue !== undefined && prefill !== undefined && { frontend: ttft - queue - prefill }),
    ...(client.ttft !== undefined && server !== undefined && { rest: client.ttft - server }),
  };
}

export interface PartMeans {
  readonly requests: number;
  /** Seconds: of the client's TTFT, and the parts that add up to it. */
  readonly ttft: number;
  readonly queue: number;
  readonly prefill: number;
  readonly frontend: number;
  readonly network_delivery: number;
}

/**
 * Means of the parts over requests that have them all, and over their slowest share by client TTFT: conditional means add up,
 * differences of quantiles do not.
 */
export function partMeans(joined: readonly JoinedRequest[], slowest = 1): PartMeans | undefined {
  const whole = joined.filter((j) => j.client.ttft !== undefined && j.rest !== undefined && j.frontend !== undefined);
  whole.sort((a, b) => b.client.ttft! - a.client.ttft!);
  const taken = whole.slice(0, slowest >= 1 ? whole.length : Math.max(1, Math.round(whole.length * slowest)));
  if (taken.length === 0) return undefined;
  const mean = (of: (j: JoinedRequest) => number): number => taken.reduce((sum, j) => sum + of(j), 0) / taken.length;
  return {
    requests: taken.length,
    ttft: mean((j) => j.client.ttft!),
    queue: mean((j) => j.server.queue!),
    prefill: mean((j) => j.server.prefill!),
    frontend: mean((j) => j.frontend!),
    network_delivery: mean((j) => j.rest!),
  };
}
