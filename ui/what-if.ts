/** A contract as it is tried: the run's own with some terms moved. In the address, `c.ttft=400` and the like. */
import { CONTRACT_DEFAULTS, type Contract, LIMIT_NAMES, type LimitName, type Limits } from '../src/core/contract.ts';

/** Terms moved; null takes a limit away. Times in ms, smoothness and attainment as shares. */
export type Moved = Readonly<Partial<Record<LimitName | 'deadline' | 'attainment', number | null>>>;

export const TERMS: readonly (LimitName | 'deadline' | 'attainment')[] = [...LIMIT_NAMES, 'deadline', 'attainment'];

export function moved(own: Contract, by: Moved): Contract {
  const limits: { -readonly [K in LimitName]?: number } = { ...own.limits };
  for (const name of LIMIT_NAMES) {
    const x = by[name];
    if (x === null) delete limits[name];
    else if (x !== undefined) limits[name] = x;
  }
  return {
    ...own,
    limits,
    ...(by.deadline !== undefined && { deadline: by.deadline ?? Number.POSITIVE_INFINITY }),
    ...(typeof by.attainment === 'number' && { attainment: by.attainment }),
  };
}

export function movedFromParams(params: URLSearchParams): Moved {
  const by: Partial<Record<LimitName | 'deadline' | 'attainment', number | null>> = {};
  for (const name of TERMS) {
    const text = params.get(`c.${name}`);
    if (text === null) continue;
    if (text === 'none') by[name] = null;
    else if (Number.isFinite(Number(text)) && Number(text) >= 0) by[name] = Number(text);
  }
  return by;
}

/** What of `contract` differs from `own`, as parameters; a term that is back where it was is undefined. */
export function paramsOfMoved(own: Contract, contract: Contract): Record<string, string | undefined> {
  const out: Record<string, string | undefined> = {};
  for (const name of LIMIT_NAMES) {
    const [a, b] = [own.limits[name], contract.limits[name]];
    out[`c.${name}`] = a === b ? undefined : b === undefined ? 'none' : String(b);
  }
  out['c.deadline'] =
    own.deadline === contract.deadline
      ? undefined
      : Number.isFinite(contract.deadline)
        ? String(contract.deadline)
        : 'none';
  out['c.attainment'] = own.attainment === contract.attainment ? undefined : String(contract.attainment);
  return out;
}

export const isMoved = (by: Moved): boolean => Object.keys(by).length > 0;

/** The contract as a file that `--contract` reads. JSON is YAML. */
export function contractFile(contract: Contract): string {
  const { valid, cases } = contract;
  const duration = (ms: number): string => `${ms}ms`;
  const limits = Object.fromEntries(
    Object.entries(contract.limits as Limits).map(([name, x]) => [name, name === 'smoothness' ? x : duration(x)]),
  );
  return `${JSON.stringify(
    {
      schema: 'goodput.contract/1',
      name: contract.name,
      attainment: contract.attainment,
      boundary: contract.boundary,
      ...(Number.isFinite(contract.deadline) && { deadline: duration(contract.deadline) }),
      limits,
      valid: {
        min_tokens: valid.minTokens,
        min_share_of_asked: valid.minShareOfAsked,
        finish: valid.finish.length > 0 ? valid.finish : CONTRACT_DEFAULTS.valid.finish,
      },
      cases: {
        cancelled: cases.cancelled,
        non_streamed: cases.nonStreamed,
        one_token: cases.oneToken,
        unmeasurable: cases.unmeasurable,
      },
    },
    null,
    2,
  )}\n`;
}

/** Reads `500`, `500ms`, `1.5s` as milliseconds; undefined when it is none of these. */
export function readMs(text: string): number | undefined {
  const m = /^\s*(\d+(?:\.\d+)?)\s*(us|µs|ms|s|m|min)?\s*$/.exec(text);
  if (!m) return undefined;
  const unit = { us: 0.001, µs: 0.001, ms: 1, s: 1000, m: 60_000, min: 60_000 }[m[2] ?? 'ms'] as number;
  return Number(m[1]) * unit;
}
