/** Quantities from a client's records. */

import { type Estimate, meanEstimate, quantileEstimate, type Source } from './estimate.ts';
import type { QuantityId } from './quantities.ts';
import type { ClientState, RequestRow, Requests } from './side.ts';
import { regularity } from './stalls.ts';
import { type Measures, put } from './table.ts';

/** Fewest requests that say anything. */
const FEWEST = 20;

export function measureRequests(requests: Requests, client: ClientState | undefined, into: Measures): void {
  const { rows, span } = requests;
  if (rows.length < FEWEST) return;
  const timed = rows.filter((r) => r.ttft !== undefined);
  const mean = (
    id: QuantityId,
    from: readonly RequestRow[],
    of: (r: RequestRow) => number | undefined,
    source: Source = 'requests',
    least = 0.5,
  ): void => {
    const values = valuesOf(from, of);
    // A figure a minority has is one of that minority.
    if (values.length >= FEWEST && values.length >= least * from.length)
      put(into, id, meanEstimate(values, source, `${values.length} requests`));
  };
  const whole = (id: QuantityId, value: number, se: number, population = `${rows.length} requests`): void =>
    put(into, id, { value, se, n: rows.length, source: 'requests', population });

  mean('ttft', timed, (r) => r.ttft);
  for (const [id, p] of [
    ['ttft_p50', 0.5],
    ['ttft_p99', 0.99],
  ] as const)
    put(
      into,
      id,
      quantileEstimate(
        valuesOf(timed, (r) => r.ttft),
        p,
        'requests',
        `${timed.length} requests`,
      ),
    );
  mean('tpot', timed, (r) => r.tpot);
  mean('gap', timed, (r) => r.gap);
  // Nothing is quicker than a tenth of a millisecond: chunks of one read have no gap, and no ratio.
  mean('itl_p50', timed, (r) => (r.middle === undefined ? undefined : Math.max(0.1, r.middle)));
  mean('at_once', timed, (r) =>
    r.chunks > 5 && r.latency !== undefined && r.ttft !== undefined
      ? Number(r.latency - r.ttft < Math.max(5, 0.01 * r.latency))
      : undefined,
  );
  put(
    into,
    'itl_p99',
    quantileEstimate(
      valuesOf(timed, (r) => r.gap),
      0.9,
      'requests',
      'largest gaps, p90',
    ),
  );
  mean('latency', timed, (r) => r.latency);
  mean('client', timed, (r) => r.client);
  put(
    into,
    'send_lag_p99',
    quantileEstimate(
      valuesOf(timed, (r) => r.client),
      0.99,
      'requests',
      `${timed.length} requests`,
    ),
  );
  mean('connect', timed, (r) => r.connect);
  mean('queue', timed, (r) => r.queue, 'server-per-request');
  mean('prefill', timed, (r) => r.prefill, 'server-per-request');
  mean('server_ttft', timed, (r) => r.serverTtft, 'server-per-request');
  mean('frontend', timed, frontendOf, 'server-per-request');
  mean('delivery', timed, deliveryOf, 'server-per-request');
  mean('load', timed, (r) => r.load, 'server-per-request');
  const loads = valuesOf(timed, (r) => r.load);
  if (loads.length > 0.5 * timed.length) {
    const share = loads.filter((x) => x > 50).length / loads.length;
    put(into, 'load_share', {
      value: share,
      se: Math.sqrt((share * (1 - share) + 0.01) / loads.length),
      n: loads.length,
      source: 'server-per-request',
      population: `${loads.length} requests`,
    });
  }
  mean('prompt', rows, (r) => r.prompt);
  mean('output', timed, (r) => r.output);
  const cached = timed.filter((r) => r.prompt !== undefined && r.prompt > 0 && (r.cached ?? 0) > 0);
  if (cached.length > 0) {
    // A server that tells of cached tokens at all leaves the field out where there are none.
    const known = timed.filter((r) => r.prompt !== undefined);
    const prompt = known.reduce((s, r) => s + r.prompt!, 0);
    const hits = known.reduce((s, r) => s + (r.cached ?? 0), 0);
    const shares = meanEstimate(
      valuesOf(known, (r) => (r.cached ?? 0) / Math.max(1, r.prompt!)),
      'requests',
      `${known.length} requests`,
    );
    if (shares) put(into, 'hit_rate', { ...shares, value: hits / prompt });
    mean('computed', known, (r) => r.prompt! - (r.cached ?? 0));
    perToken(into, known, (r) => r.prompt! - (r.cached ?? 0));
  }
  mean('attempts', rows, (r) => r.attempts);
  const bad = rows.filter((r) => !r.ok).length / rows.length;
  whole('failed', bad, Math.sqrt((bad * (1 - bad) + 0.25 / rows.length) / rows.length));
  if (span > 0) {
    const { rate, se, dispersion } = arrivals(rows, span);
    whole('rate', rate, se, `${rows.length} arrivals in ${span.toFixed(1)} s`);
    if (dispersion) put(into, 'dispersion', dispersion);
  }
  mean('chunk_tokens', timed, (r) => (r.output !== undefined && r.chunks > 0 ? r.output / r.chunks : undefined));
  mean('bunched', timed, (r) => (r.chunks > 3 ? r.bunched / (r.chunks - 1) : undefined));
  mean('ttft_share', timed, (r) =>
    r.ttft !== undefined && r.latency !== undefined && r.chunks > 3 ? r.ttft / r.latency : undefined,
  );
  if (client?.eventLoopP99 !== undefined)
    whole('event_loop_p99', client.eventLoopP99, 0.3 * client.eventLoopP99 + 0.5, 'the client');
  if (span > 0 && timed.some((r) => r.chunks > 3)) stallsOf(requests, whole);
}

function valuesOf(rows: readonly RequestRow[], of: (r: RequestRow) => number | undefined): number[] {
  const values: number[] = [];
  for (const row of rows) {
    const x = of(row);
    if (x !== undefined) values.push(x);
  }
  return values;
}

export function frontendOf(r: RequestRow): number | undefined {
  if (r.serverTtft === undefined || r.queue === undefined || r.prefill === undefined) return undefined;
  return r.serverTtft - r.queue - r.prefill - (r.load ?? 0);
}

export function deliveryOf(r: RequestRow): number | undefined {
  if (r.serverTtft === undefined || r.ttft === undefined) return undefined;
  return r.ttft - (r.client ?? 0) - (r.connect ?? 0) - r.serverTtft;
}

/** Σ prefill over Σ computed tokens: the mean rate over tokens, not over requests. */
function perToken(into: Measures, rows: readonly RequestRow[], tokens: (r: RequestRow) => number): void {
  const timed = rows.filter((r) => r.prefill !== undefined);
  if (timed.length < FEWEST) return;
  const total = timed.reduce((s, r) => s + tokens(r), 0);
  const spread = meanEstimate(
    valuesOf(timed, (r) => r.prefill),
    'server-per-request',
    `${timed.length} requests`,
  );
  if (!spread || !(total > 0)) return;
  const value = (spread.value * timed.length) / total;
  put(into, 'prefill_per_token', { ...spread, value, se: (value * spread.se) / Math.max(1e-9, spread.value) });
}

/** Rate and the index of dispersion of counts over a hundred windows, or as many as hold five arrivals on average. */
function arrivals(rows: readonly RequestRow[], span: number): { rate: number; se: number; dispersion?: Estimate } {
  const n = rows.length;
  const windows = Math.min(100, Math.floor(n / 5));
  const rate = (n - 1) / span;
  if (windows < 8) return { rate, se: rate / Math.sqrt(n) };
  const counts = new Float64Array(windows);
  const first = rows[0]!.at;
  for (const r of rows) counts[Math.min(windows - 1, Math.floor(((r.at - first) / 1000 / span) * windows))]! += 1;
  const mean = n / windows;
  let variance = 0;
  for (const c of counts) variance += (c - mean) ** 2;
  const value = variance / (windows - 1) / mean;
  return {
    rate,
    se: (rate * Math.sqrt(Math.max(value, 0.2))) / Math.sqrt(n),
    dispersion: {
      value,
      // That of a variance of `windows` counts, wider for bursts: their own count is small.
      se: value * Math.sqrt(2 / (windows - 1)) * (1 + 0.3 * Math.max(0, value - 1)),
      n: windows,
      source: 'requests',
      population: `${windows} windows of ${(span / windows).toFixed(2)} s`,
    },
  };
}

function stallsOf(
  { stalls, span }: Requests,
  whole: (id: QuantityId, value: number, se: number, p?: string) => void,
): void {
  let silent = 0;
  let withFirst = 0;
  let released = 0;
  for (const s of stalls) {
    silent += s.end - s.start;
    if (s.withFirst) withFirst++;
    released += s.released;
  }
  const population = `${stalls.length} joint silences in ${span.toFixed(1)} s`;
  const share = silent / 1000 / span;
  whole('stall_time', share, share / Math.sqrt(stalls.length + 1) + 0.001, population);
  if (stalls.length < 6) {
    whole('stall_regular', 0, 0.05, population);
    whole('stall_released', 1, 0.1, population);
    return;
  }
  whole('stall_regular', regularity(stalls)?.regular ?? 0, 0.08, population);
  whole('stall_released', released / stalls.length, 0.1, population);
  whole('stall_prefill', withFirst / stalls.length, 0.5 / Math.sqrt(stalls.length), population);
}
