/** Which labels tell replicas apart, and which of them say the same replica. */
import type { Labels } from '../../wire/prometheus/family.ts';

/** Labels that name a process, an engine in it, a device, or what it serves. All others split one replica's own numbers. */
const IDENTITY = new Set([
  'instance',
  'pod',
  'pod_name',
  'model_server_pod',
  'host',
  'hostname',
  'Hostname',
  'node',
  'namespace',
  'job',
  'server',
  'worker_addr',
  'worker_url',
  'worker_id',
  'WorkerId',
  'ReplicaId',
  'replica',
  'deployment',
  'application',
  'engine',
  'engine_idx',
  'engine_index',
  'dp_rank',
  'gpu',
  'gpu_uuid',
  'UUID',
]);

/** Labels that name what is served, by as many names: the first that is there. What a client asked for is none of them. */
const MODEL = ['model_name', 'served_model_name', 'model', 'gen_ai_request_model', 'gen_ai.request.model'];

/** Ranks that hold parts of one engine: each tells the same requests, so one of them is enough. */
export const SHARDS: readonly string[] = ['tp_rank', 'pp_rank', 'moe_ep_rank', 'ep_rank'];

export type Identity = ReadonlyMap<string, string>;

export function identityOf(labels: Labels): Identity {
  const identity = new Map<string, string>();
  for (const name of Object.keys(labels).sort()) {
    if (IDENTITY.has(name) && labels[name] !== '') identity.set(name, labels[name]!);
  }
  const model = MODEL.map((name) => labels[name]).find((value) => value !== undefined && value !== '');
  if (model !== undefined) identity.set('model', model);
  return identity;
}

export function identityKey(identity: Identity): string {
  return JSON.stringify([...identity]);
}

/** All of `a` is said by `b` too, and `b` says more. */
function isWithin(a: Identity, b: Identity): boolean {
  if (a.size >= b.size) return false;
  for (const [name, value] of a) if (b.get(name) !== value) return false;
  return true;
}

/**
 * Names of metrics by identity, by its key → for each identity the one it belongs to: metrics of one replica differ in how
 * many labels they carry. A shorter identity joins the one longer one that includes it, unless one metric has series of both.
 */
export function joinIdentities(
  found: ReadonlyMap<string, { readonly identity: Identity; readonly metrics: ReadonlySet<string> }>,
): Map<string, string> {
  const joined = new Map<string, string>();
  const all = [...found].sort(([, a], [, b]) => b.identity.size - a.identity.size);
  for (const [key, { identity, metrics }] of all) {
    const over = new Set<string>();
    for (const [other, { identity: larger }] of all) {
      if (other !== key && isWithin(identity, larger)) over.add(joined.get(other) ?? other);
    }
    const [only] = over;
    const clashes =
      only === undefined ||
      [...all].some(
        ([other, o]) => (other === only || joined.get(other) === only) && [...o.metrics].some((m) => metrics.has(m)),
      );
    joined.set(key, over.size === 1 && !clashes ? only! : key);
  }
  return joined;
}

/** The labels in which `identity` differs from the others, as `engine=1`. */
export function distinguished(identity: Identity, others: readonly Identity[]): string {
  return [...identity]
    .filter(([name, value]) => others.some((o) => o !== identity && o.get(name) !== value))
    .map(([name, value]) => `${name}=${value}`)
    .join(' ');
}
