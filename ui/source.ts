/** Where the pages get a run from: the API of `goodput ui`, or the page they were exported to. */

import type { Stamps } from '../src/core/record.ts';
import type { Listed } from '../src/dashboard/catalogue.ts';
import {
  type Chunks,
  decodeChunks,
  decodePacked,
  decodeStamps,
  type Packed,
  type StampColumns,
  stampsOf,
} from '../src/dashboard/packed/index.ts';
import type { StoredPlan } from '../src/dashboard/plans.ts';
import type { ProfileEngine } from '../src/dashboard/profile.ts';
import type { Detail, RunReport } from '../src/dashboard/run-data.ts';
import type { Saved } from '../src/dashboard/saved.ts';
import type { Setting } from '../src/dashboard/setting.ts';
import type { CapacityReport } from '../src/report/curve-report.ts';

export interface Listing {
  readonly version: string;
  readonly folder: string;
  readonly runs: readonly Listed[];
  readonly live: string | null;
}

export interface Source {
  /** `file`: an exported page, which has one run and no server. */
  readonly kind: 'api' | 'file';
  /** Chunks kept, of how many, where ticks were left out. */
  readonly thinned: { readonly kept: number; readonly of: number } | null;
  list(): Promise<Listing>;
  report(id: string): Promise<RunReport>;
  packed(id: string): Promise<Packed>;
  chunks(id: string, operations: readonly number[], signal?: AbortSignal): Promise<Chunks>;
  detail(id: string, operation: number): Promise<Detail | undefined>;
  /** What an exported page holds of row `i`, which is no whole record; undefined where a server has that. */
  outline(p: Packed, i: number): Promise<Outline | undefined>;
  capacity(id: string): Promise<{ readonly capacity: CapacityReport | null; readonly search: unknown }>;
  diagnosis(id: string): Promise<unknown>;
  /** What a run says of its engine and traffic. */
  setting(id: string): Promise<Setting>;
  /** Reads a profile's YAML. */
  profile(text: string): Promise<ProfileEngine>;
  /** Plans kept beside the runs. */
  plans(): Promise<readonly StoredPlan[]>;
  saved(): Promise<Saved>;
  save(saved: Saved): Promise<Saved>;
}

export interface Outline {
  readonly stamps: Stamps;
  /** Receipts of chunks, ms since the run's epoch: all, or as many as were kept. */
  readonly at: readonly number[];
  /** Chunks there were. */
  readonly of: number;
}

async function ask(path: string, init?: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, { credentials: 'same-origin', ...init });
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new Error('the dashboard does not answer; is goodput ui still running?');
  }
  if (response.ok) return response;
  const told = (await response.json().catch(() => ({}))) as { error?: unknown };
  throw new Error(typeof told.error === 'string' ? told.error : `the dashboard answered ${response.status}`);
}

const send = (method: string, path: string, value: unknown, signal?: AbortSignal): Promise<Response> =>
  ask(path, {
    method,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(value),
    ...(signal && { signal }),
  });

const q = (id: string): string => `run=${encodeURIComponent(id)}`;

export const apiSource: Source = {
  kind: 'api',
  thinned: null,
  list: async () => (await ask('api/runs')).json(),
  report: async (id) => (await ask(`api/report?${q(id)}`)).json(),
  packed: async (id) => decodePacked(await (await ask(`api/columns?${q(id)}`)).arrayBuffer()),
  chunks: async (id, operations, signal) => {
    const response = await send('POST', `api/chunks?${q(id)}`, operations, signal);
    return decodeChunks(await response.arrayBuffer());
  },
  detail: async (id, operation) => (await ask(`api/request?${q(id)}&operation=${operation}`)).json(),
  outline: async () => undefined,
  capacity: async (id) => (await ask(`api/capacity?${q(id)}`)).json(),
  diagnosis: async (id) => (await ask(`api/diagnosis?${q(id)}`)).json(),
  setting: async (id) => (await ask(`api/setting?${q(id)}`)).json(),
  profile: async (text) => (await send('POST', 'api/profile', { text })).json(),
  plans: async () => (await ask('api/plans')).json(),
  saved: async () => (await ask('api/saved')).json(),
  save: async (saved) => (await send('PUT', 'api/saved', saved)).json(),
};

interface Told {
  readonly id: string;
  readonly status: RunReport['status'];
  readonly epoch: number;
  readonly report: RunReport['report'];
  readonly capacity: CapacityReport | null;
  readonly thinned: { readonly kept: number; readonly of: number } | null;
}

/** The run inside this page, if it is an exported one. */
export function fileSource(): (Source & { readonly id: string; readonly hasCapacity: boolean }) | undefined {
  const told = document.getElementById('goodput-run')?.textContent;
  if (!told) return undefined;
  const { id, status, epoch, report, capacity, thinned } = JSON.parse(told) as Told;
  let packed: Promise<Packed> | undefined;
  let chunks: Promise<Chunks> | undefined;
  let stamps: Promise<StampColumns> | undefined;
  const none = async (): Promise<never> => {
    throw new Error('an exported page has no server to ask');
  };
  return {
    kind: 'file',
    id,
    hasCapacity: capacity !== null,
    thinned,
    list: async () => ({ version: '', folder: '', runs: [], live: null }),
    report: async () => ({ id, status, epoch, report, problems: [] }),
    packed: () => (packed ??= inside('goodput-columns').then(decodePacked)),
    chunks: async (_id, operations) => only(await (chunks ??= inside('goodput-chunks').then(decodeChunks)), operations),
    detail: async () => undefined,
    outline: async (p, i) => {
      const [ticks, extra] = await Promise.all([
        (chunks ??= inside('goodput-chunks').then(decodeChunks)),
        (stamps ??= inside('goodput-stamps').then(decodeStamps)),
      ]);
      const r = ticks.operation.indexOf(p.operation[i]!);
      const us = r < 0 ? [] : [...ticks.us.subarray(r === 0 ? 0 : ticks.end[r - 1]!, ticks.end[r]!)];
      const due = p.scheduled[i]!;
      return { stamps: stampsOf(p, i, extra), at: us.map((x) => due + x / 1000), of: p.chunks[i]! };
    },
    capacity: async () => ({ capacity, search: null }),
    diagnosis: async () => null,
    setting: none,
    profile: none,
    plans: async () => [],
    saved: none,
    save: none,
  };
}

async function inside(id: string): Promise<ArrayBuffer> {
  const text = document.getElementById(id)?.textContent ?? '';
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream).arrayBuffer();
}

function only(chunks: Chunks, operations: readonly number[]): Chunks {
  const wanted = new Set(operations);
  const operation: number[] = [];
  const end: number[] = [];
  const parts: Uint32Array[] = [];
  let n = 0;
  chunks.operation.forEach((op, r) => {
    if (!wanted.has(op)) return;
    const part = chunks.us.subarray(r === 0 ? 0 : chunks.end[r - 1]!, chunks.end[r]!);
    parts.push(part);
    n += part.length;
    operation.push(op);
    end.push(n);
  });
  const us = new Uint32Array(n);
  let at = 0;
  for (const part of parts) {
    us.set(part, at);
    at += part.length;
  }
  return { operation: Float64Array.from(operation), end: Uint32Array.from(end), us };
}
