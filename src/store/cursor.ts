/** `cursor.json`: what a run that is cut off can still say about itself. */
import { type Micros, type Millis, toMicroGrid } from '../base/units.ts';
import type { Window } from '../core/cohort.ts';
import type { Asked } from '../core/record.ts';
import { toMicros } from './batch.ts';
import { CURSOR_SCHEMA, type CursorState, type OpenOperation, type StoredCursor } from './meta.ts';

interface OpenOnDisk {
  readonly operation: number;
  readonly attempt: number;
  readonly scheduled_us: Micros;
  readonly class: string;
  readonly dispatched_us?: Micros;
  readonly session?: number;
  readonly turn?: number;
  readonly asked?: Asked;
}

/** `cursor.json` but for `segments` and `rows`, which the writing thread adds. */
export function cursorToDisk(
  state: CursorState,
  rest: { time: Millis; dropped: number; pid: number; host: string },
): object {
  const { window } = state;
  return {
    schema: CURSOR_SCHEMA,
    time_us: toMicros(rest.time),
    closed: false,
    pid: rest.pid,
    host: rest.host,
    offered: state.offered,
    dropped: rest.dropped,
    ...(window && { window: windowToDisk(window) }),
    open: state.open.map(openToDisk),
  };
}

function windowToDisk({ start, end, estimated, operations, sessions }: Window): object {
  return {
    start_us: toMicros(start),
    end_us: toMicros(end),
    ...(estimated && { estimated }),
    ...(operations && { operations }),
    ...(sessions && { sessions }),
  };
}

function windowFromDisk(value: unknown): Window | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { start_us, end_us, estimated, operations, sessions } = value as Record<string, unknown>;
  const range = (x: unknown): readonly [number, number] | undefined =>
    Array.isArray(x) && x.length === 2 && x.every(Number.isSafeInteger) ? [x[0], x[1]] : undefined;
  const counted = range(operations);
  const arrived = range(sessions);
  return {
    start: millis(start_us),
    end: millis(end_us),
    ...(estimated === true && { estimated }),
    ...(counted && { operations: counted }),
    ...(arrived && { sessions: arrived }),
  };
}

function openToDisk(open: OpenOperation): OpenOnDisk {
  const { scheduled, dispatched, ...same } = open;
  return {
    ...same,
    scheduled_us: toMicros(scheduled),
    ...(dispatched !== undefined && { dispatched_us: toMicros(dispatched) }),
  };
}

/** @returns undefined when `disk` is not a cursor: then the run says only what its rows say. */
export function cursorFromDisk(disk: Readonly<Record<string, unknown>>): StoredCursor | undefined {
  if (disk.schema !== CURSOR_SCHEMA || !Array.isArray(disk.open)) return undefined;
  const window = windowFromDisk(disk.window);
  return {
    time: millis(disk.time_us),
    segments: whole(disk.segments),
    rows: whole(disk.rows),
    dropped: whole(disk.dropped),
    closed: disk.closed === true,
    pid: whole(disk.pid),
    host: typeof disk.host === 'string' ? disk.host : '',
    offered: whole(disk.offered),
    ...(window && { window }),
    open: (disk.open as unknown[]).map(openFromDisk).filter((open) => open !== undefined),
  };
}

function openFromDisk(value: unknown): OpenOperation | undefined {
  const open = (value ?? {}) as Partial<OpenOnDisk>;
  if (!Number.isSafeInteger(open.operation) || !Number.isSafeInteger(open.scheduled_us)) return undefined;
  const { scheduled_us, dispatched_us, ...same } = open as OpenOnDisk;
  return {
    ...same,
    attempt: whole(open.attempt),
    class: typeof open.class === 'string' ? open.class : 'default',
    scheduled: millis(scheduled_us),
    ...(dispatched_us !== undefined && { dispatched: millis(dispatched_us) }),
  };
}

const whole = (value: unknown): number => (Number.isSafeInteger(value) ? (value as number) : 0);
const millis = (us: unknown): Millis => toMicroGrid(whole(us) / 1000);
