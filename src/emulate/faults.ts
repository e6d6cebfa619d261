/**
 * Faults on demand. Each is drawn for each request by keyed randomness (seed, request number), so a run can be repeated
 * and a test knows what to expect. Of the faults that decide how a request ends at most one is drawn for a request, each
 * at exactly its own rate: they share one uniform. The others change timing or framing and are drawn independently.
 */
import { didYouMean, InputError, keyed, type Millis, parseDuration, parseShare } from '../base/index.ts';
import type { Outcome } from '../core/index.ts';

interface FaultKind {
  readonly brief: string;
  /** The outcome a client should record. Absent where the fault leaves the outcome as it was. */
  readonly outcome?: Outcome;
  /** What the parameter after the second colon is, with its default. */
  readonly param?: { readonly unit: 'ms' | 'count' | 'bytes'; readonly default: number; readonly what: string };
}

/** Kinds of fault. Those with an `outcome` decide the end of a request and exclude each other. */
export const FAULTS = {
  'role-first': { brief: 'the role chunk comes at once, the first token at its own time' },
  'multi-token': {
    brief: 'several tokens in a chunk',
    param: { unit: 'count', default: 4, what: 'tokens a chunk' },
  },
  'no-usage': { brief: 'usage is left out though asked for' },
  'no-done': { brief: 'a clean end without [DONE]' },
  stall: {
    brief: 'output stops once, at a random token, then comes in a burst',
    param: { unit: 'ms', default: 2000, what: 'how long' },
  },
  buffer: {
    brief: 'as behind a buffering proxy: bytes are held until a block is full, or the end',
    param: { unit: 'bytes', default: 8192, what: 'bytes a block, 0 for all at the end' },
  },
  'slow-headers': {
    brief: 'the response headers come late',
    param: { unit: 'ms', default: 1000, what: 'how late' },
  },
  'early-eof': { brief: 'a clean end in mid-stream without a finish reason', outcome: 'truncated' },
  reset: { brief: 'the connection is reset in mid-stream', outcome: 'failed' },
  'error-in-stream': { brief: 'an error object in mid-stream, then [DONE]', outcome: 'failed' },
  malformed: { brief: 'one frame is cut off in the middle of its JSON', outcome: 'failed' },
  abort: { brief: 'the engine gives up in mid-stream: finish_reason "abort"', outcome: 'failed' },
  'http-429': { brief: 'refused with 429 and Retry-After', outcome: 'rejected' },
  'http-503': { brief: 'refused with 503 and Retry-After', outcome: 'rejected' },
  'http-500': { brief: 'an internal server error', outcome: 'failed' },
  html: { brief: 'the HTML error page of a gateway, status 502', outcome: 'failed' },
  'queue-full-in-stream': {
    brief: 'a 200 stream that says the queue is full, then [DONE] (as SGLang does)',
    outcome: 'rejected',
  },
  empty: { brief: 'an end token and nothing else', outcome: 'completed' },
  'one-token': { brief: 'one visible token and an end token', outcome: 'completed' },
} as const satisfies Readonly<Record<string, FaultKind>>;

export type FaultName = keyof typeof FAULTS;
export const FAULT_NAMES = Object.keys(FAULTS) as readonly FaultName[];
const kindOf = (name: FaultName): FaultKind => FAULTS[name];

/** True for faults that decide how a request ends. */
export function isDeciding(name: FaultName): boolean {
  return kindOf(name).outcome !== undefined;
}

/** A fault at a rate. */
export interface FaultRate {
  readonly kind: FaultName;
  /** Share of requests, 0 to 1. */
  readonly rate: number;
  /** Milliseconds, tokens or bytes, as the kind says. */
  readonly param: number;
}

/** The faults one request got: at most one deciding, with its place, and any of the others with their parameters. */
export interface DrawnFaults {
  readonly names: readonly FaultName[];
  readonly deciding?: FaultName;
  /** In (0, 1): where in the stream a deciding fault or a stall strikes. */
  readonly place: number;
  readonly stallPlace: number;
  readonly roleFirst: boolean;
  readonly tokensPerChunk: number;
  readonly noUsage: boolean;
  readonly noDone: boolean;
  readonly stall?: Millis;
  /** Bytes a block; 0 holds everything to the end. */
  readonly buffer?: number;
  readonly slowHeaders?: Millis;
}

export const NO_FAULTS: DrawnFaults = {
  names: [],
  place: 0.5,
  stallPlace: 0.5,
  roleFirst: false,
  tokensPerChunk: 1,
  noUsage: false,
  noDone: false,
};

/** Reads `KIND=RATE[:PARAM]`, like `reset=5%` or `stall=0.05:2s`. @throws InputError */
export function parseFault(text: string): FaultRate {
  const m = /^\s*([\w-]+)\s*=\s*([^:]+)(?::(.+))?$/.exec(text);
  if (!m) throw new InputError(`--fault: '${text}' is not KIND=RATE[:PARAM]; write reset=5% or stall=0.05:2s`);
  const kind = faultName(m[1]!, '--fault');
  return { kind, rate: parseShare(m[2]!.trim(), `--fault ${kind}`), param: parseParam(kind, m[3]?.trim()) };
}

/** Reads the value of the `x-goodput-fault` header: `KIND[:PARAM]`, several with commas. @throws InputError */
export function parseForced(text: string): FaultRate[] {
  return text.split(',').map((item) => {
    const [word = '', param] = item.trim().split(':');
    const kind = faultName(word, 'x-goodput-fault');
    return { kind, rate: 1, param: parseParam(kind, param) };
  });
}

function faultName(word: string, where: string): FaultName {
  if ((FAULT_NAMES as readonly string[]).includes(word)) return word as FaultName;
  if (word === 'role-delay') return 'role-first';
  throw new InputError(
    `${where}: no fault is called '${word}'${didYouMean(word, FAULT_NAMES)}; there are ${FAULT_NAMES.join(', ')}`,
  );
}

function parseParam(kind: FaultName, text: string | undefined): number {
  const param = kindOf(kind).param;
  if (text === undefined) return param?.default ?? 0;
  if (!param) throw new InputError(`--fault ${kind}: takes no parameter, but '${text}' was given`);
  if (param.unit === 'ms') return parseDuration(text, `--fault ${kind}`, 'ms');
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  const least = param.unit === 'count' ? 1 : 0;
  if (!(value >= least && value <= 1 << 20)) {
    throw new InputError(`--fault ${kind}: '${text}' is not a whole number of ${param.what} from ${least} to 1048576`);
  }
  return value;
}

/** Refuses rates that cannot hold at once. @throws InputError */
export function checkFaults(faults: readonly FaultRate[]): readonly FaultRate[] {
  const seen = new Set<FaultName>();
  let sum = 0;
  for (const { kind, rate } of faults) {
    if (seen.has(kind)) throw new InputError(`--fault ${kind}: given twice; give each kind once`);
    seen.add(kind);
    if (isDeciding(kind)) sum += rate;
  }
  if (sum > 1 + 1e-9) {
    throw new InputError(
      `--fault: the faults that decide how a request ends add up to ${(100 * sum).toFixed(1)} %; a request can have one, so keep their sum at or below 100 %`,
    );
  }
  return faults;
}

/** What request number `request` (from 0) gets. */
export function drawFaults(faults: readonly FaultRate[], seed: number, request: number): DrawnFaults {
  if (faults.length === 0) return NO_FAULTS;
  const drawn: FaultRate[] = [];
  let edge = 0;
  const decide = keyed(seed, 'emulator-fault', request)();
  let decided = false;
  for (const fault of faults) {
    if (isDeciding(fault.kind)) {
      edge += fault.rate;
      if (!decided && decide < edge) {
        drawn.push(fault);
        decided = true;
      }
    } else if (keyed(seed, `emulator-fault-${fault.kind}`, request)() < fault.rate) {
      drawn.push(fault);
    }
  }
  return drawn.length === 0 ? NO_FAULTS : withPlaces(drawn, seed, request);
}

/** `faults` taken as drawn, whatever their rates: for a request that asks for them. Only the first deciding one counts. */
export function forceFaults(faults: readonly FaultRate[], seed: number, request: number): DrawnFaults {
  const first = faults.find((f) => isDeciding(f.kind));
  return withPlaces(
    faults.filter((f) => !isDeciding(f.kind) || f === first),
    seed,
    request,
  );
}

function withPlaces(drawn: readonly FaultRate[], seed: number, request: number): DrawnFaults {
  const place = keyed(seed, 'emulator-fault-place', request);
  const param = (kind: FaultName): number | undefined => drawn.find((f) => f.kind === kind)?.param;
  const deciding = drawn.find((f) => isDeciding(f.kind))?.kind;
  const [stall, buffer, slowHeaders] = [param('stall'), param('buffer'), param('slow-headers')];
  return {
    names: drawn.map((f) => f.kind),
    ...(deciding && { deciding }),
    place: place(),
    stallPlace: place(),
    roleFirst: param('role-first') !== undefined,
    tokensPerChunk: param('multi-token') ?? 1,
    noUsage: param('no-usage') !== undefined,
    noDone: param('no-done') !== undefined,
    ...(stall !== undefined && { stall }),
    ...(buffer !== undefined && { buffer }),
    ...(slowHeaders !== undefined && { slowHeaders }),
  };
}

/**
 * The number of tokens after which a fault at `place` strikes a stream of `tokens`: at least one token is out, and at
 * least the last is not, so that a cut stream is never a whole one. A stream of one token is struck before it.
 */
export function strikeAfter(place: number, tokens: number): number {
  if (tokens <= 1) return 0;
  return 1 + Math.floor(place * (tokens - 1));
}
