/**
 * A window read from a Prometheus: the raw samples of every engine's series between two times, as they were scraped. No
 * `rate` and no `increase`: those extrapolate, and raw counters keep resets visible.
 */
import { InputError, messageOf, oneLine } from '../base/errors.ts';
import { type Snapshot, SnapshotReader } from '../observe/evidence/index.ts';
import { type Labels, type MetricFamily, prometheusText } from '../wire/index.ts';

export interface Range {
  /** Base URL, without credentials in it. */
  readonly url: URL;
  readonly from: number;
  readonly to: number;
  readonly selector: string;
}

/** Scrapes taken from a range: enough for gauges, few enough for one answer. */
const POINTS = 60;
const TIMEOUT = 30_000;
const LARGEST = 256 * 1024 * 1024;
const DEFAULT_SELECTOR =
  '{__name__=~"(ray_|kserve_)?(vllm|sglang|trtllm|lmdeploy|llamacpp|tgi|dynamo|triton|nv)[:_].*|DCGM_FI.*|process_start_time_seconds"}';

/**
 * `prometheus+http://host:9090@FROM/TO` or `…@FROM/TO?match=SELECTOR`: times are Unix seconds or milliseconds, or ISO 8601.
 * @throws InputError naming the flag.
 */
export function parseRange(source: string, flag: string): Range {
  const bad = (why: string): never => {
    throw new InputError(
      `${flag}: ${oneLine(source, 120)}: ${why}; write prometheus+http://host:9090@FROM/TO with Unix or ISO times`,
    );
  };
  const m = /^prometheus\+(https?:\/\/.+)@([^@/]+)\/([^@/?]+)(?:\?match=(.+))?$/.exec(source);
  if (!m) return bad('is no address with a time range');
  let url: URL;
  try {
    url = new URL(m[1] as string);
  } catch {
    return bad('the address cannot be read');
  }
  const [from, to] = [timeOf(m[2] as string), timeOf(m[3] as string)];
  if (from === undefined || to === undefined) return bad('a time cannot be read');
  if (!(to > from)) return bad('the range ends before it starts');
  return { url, from, to, selector: m[4] === undefined ? DEFAULT_SELECTOR : decodeURIComponent(m[4]) };
}

function timeOf(text: string): number | undefined {
  if (/^\d{9,10}(\.\d+)?$/.test(text)) return Number(text) * 1000;
  if (/^\d{12,13}$/.test(text)) return Number(text);
  const parsed = Date.parse(text);
  return Number.isNaN(parsed) ? undefined : parsed;
}

interface Series {
  readonly metric: Labels;
  readonly values: readonly (readonly [number, string])[];
}

/** @throws InputError where the server cannot be asked, or has nothing in the range. */
export async function readPrometheusRange(source: string, flag: string): Promise<Snapshot[][]> {
  const range = parseRange(source, flag);
  const series = await ask(range, flag);
  if (series.length === 0) {
    throw new InputError(
      `${flag}: ${oneLine(range.url.host)} has no series of an engine between those times; check the range, or name them with ?match={job="…"}`,
    );
  }
  const types = await typesOf(range);
  return snapshotsOf(series, types, range);
}

async function ask(range: Range, flag: string): Promise<Series[]> {
  // A range vector in an instant query: the samples themselves, at the times they were scraped.
  const seconds = Math.max(1, Math.ceil((range.to - range.from) / 1000));
  const body = new URLSearchParams({ query: `${range.selector}[${seconds}s]`, time: String(range.to / 1000) });
  const answer = (await get(range, 'api/v1/query', body, flag)) as {
    status?: string;
    error?: string;
    data?: { result?: Series[] };
  };
  if (answer.status !== 'success')
    throw new InputError(`${flag}: Prometheus refused: ${oneLine(String(answer.error ?? 'no reason given'))}`);
  return answer.data?.result ?? [];
}

/** Types come from metadata; without it, names tell them well enough. */
async function typesOf(range: Range): Promise<ReadonlyMap<string, string>> {
  const types = new Map<string, string>();
  try {
    const answer = (await get(range, 'api/v1/metadata', undefined, '')) as {
      data?: Record<string, { type?: string }[]>;
    };
    for (const [name, [first]] of Object.entries(answer.data ?? {})) if (first?.type) types.set(name, first.type);
  } catch {
    // Thanos and others may not serve it.
  }
  return types;
}

async function get(range: Range, path: string, body: URLSearchParams | undefined, flag: string): Promise<unknown> {
  const base = range.url.href.endsWith('/') ? range.url.href : `${range.url.href}/`;
  const url = new URL(path, base);
  const { username, password } = url;
  url.username = '';
  url.password = '';
  const headers: Record<string, string> =
    username === ''
      ? {}
      : { authorization: `Basic ${btoa(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`)}` };
  try {
    const response = await fetch(url, {
      ...(body && { method: 'POST', body }),
      headers,
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT),
    });
    const text = await bounded(response);
    return JSON.parse(text) as unknown;
  } catch (error) {
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    throw new InputError(
      `${flag}: Prometheus at ${oneLine(range.url.host)} cannot be asked (${messageOf(cause)}); is it up, and is that its base address?`,
    );
  }
}

async function bounded(response: Response): Promise<string> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of response.body ?? []) {
    size += (piece as Uint8Array).length;
    if (size > LARGEST) throw new Error('its answer is larger than 256 MB; narrow it with ?match=');
    pieces.push(piece as Uint8Array);
  }
  return Buffer.concat(pieces).toString('utf8');
}

/** The samples of each target put back into scrapes: every series' last value at or before each of the times taken. */
function snapshotsOf(series: readonly Series[], types: ReadonlyMap<string, string>, range: Range): Snapshot[][] {
  const targets = new Map<string, Series[]>();
  for (const s of series) {
    const key = s.metric.instance ?? s.metric.pod ?? 'prometheus';
    const own = targets.get(key);
    if (own) own.push(s);
    else targets.set(key, [s]);
  }
  const out: Snapshot[][] = [];
  for (const [target, own] of targets) {
    const stamps = [...new Set(own.flatMap((s) => s.values.map(([t]) => t)))].sort((a, b) => a - b);
    // Series of one scrape share its time; of those times the first, the last and some between are taken.
    const step = Math.max(1, Math.ceil(stamps.length / POINTS));
    const taken = stamps.filter((_, i) => i === 0 || i === stamps.length - 1 || i % step === 0);
    if (taken.length < 2) continue;
    const reader = new SnapshotReader();
    const cursors = own.map(() => 0);
    const name = oneLine(target, 80);
    const gap = (stamps.at(-1)! - stamps[0]!) / Math.max(1, stamps.length - 1);
    out.push(
      taken.map((t) => {
        const families = new Map<
          string,
          { type: string; samples: { suffix?: string; labels: Labels; value: number }[] }
        >();
        own.forEach((s, i) => {
          let at = cursors[i]!;
          while (at + 1 < s.values.length && s.values[at + 1]![0] <= t) at++;
          cursors[i] = at;
          const value = s.values[at];
          // Stale: it was not in this scrape.
          if (!value || value[0] > t || t - value[0] > 3 * gap + 1) return;
          const { __name__: full = '', instance: _, job: __, ...labels } = s.metric as Record<string, string>;
          const { family, suffix, type } = placeOf(full, labels, types);
          let f = families.get(family);
          if (!f) families.set(family, (f = { type, samples: [] }));
          f.samples.push({ ...(suffix !== '' && { suffix }), labels, value: Number(value[1]) });
        });
        const list = [...families].map(
          ([family, f]) => ({ name: family, type: f.type, samples: f.samples }) as MetricFamily,
        );
        return reader.read(prometheusText(list), name, t * 1000);
      }),
    );
  }
  if (out.length === 0)
    throw new InputError(
      `Prometheus has one scrape alone between ${new Date(range.from).toISOString()} and ${new Date(range.to).toISOString()}; a window takes two`,
    );
  return out;
}

function placeOf(
  name: string,
  labels: Labels,
  types: ReadonlyMap<string, string>,
): { readonly family: string; readonly suffix: string; readonly type: string } {
  const m = /^(.+)(_bucket|_sum|_count)$/.exec(name);
  if (
    m &&
    (types.get(m[1]!) === 'histogram' ||
      (m[2] === '_bucket' && labels.le !== undefined) ||
      (!types.has(name) && types.size === 0))
  )
    return { family: m[1]!, suffix: m[2]!, type: 'histogram' };
  if (m && types.get(m[1]!) === 'summary') return { family: m[1]!, suffix: m[2]!, type: 'summary' };
  const type = types.get(name) ?? (name.endsWith('_total') ? 'counter' : 'gauge');
  return { family: name, suffix: '', type: type === 'counter' || type === 'gauge' ? type : 'untyped' };
}
