/** What a contract promises, in sentences, and how it classes every edge. */
import { formatDuration } from '../base/units.ts';
import { type Contract, type LimitName, limitsSet } from '../core/index.ts';
import { LIMIT_WORDS, limitsText, limitText, percentText } from '../core/limit-text.ts';

export { LIMIT_WORDS, limitsText, limitText, percentText };

export interface Edge {
  readonly edge: string;
  readonly classed: string;
}

export interface ContractText {
  readonly promise: readonly string[];
  readonly edges: readonly Edge[];
}

const SENTENCE: Readonly<Record<LimitName, (limit: string) => string>> = {
  ttft: (x) => `The first token comes within ${x}.`,
  ttfa: (x) => `The first token of the answer, after any reasoning, comes within ${x}.`,
  tpot: (x) => `The tokens after the first take ${x} each on average, or less.`,
  gap: (x) => `No two chunks are more than ${x} apart.`,
  smoothness: (x) => `At least ${x} of the tokens arrive by their deadline in the schedule that TTFT and TPOT set.`,
  latency: (x) => `The last token comes within ${x}.`,
  e2e: (x) => `The response has ended within ${x}.`,
};

/** @throws nothing: a contract that parsed can be explained. */
export function explainContract(contract: Contract): ContractText {
  const { limits, valid } = contract;
  const names = limitsSet(limits);
  const count = names.length === 0 ? 'is complete and valid' : 'meets all of these at once';
  const from =
    contract.boundary === 'scheduled'
      ? "Times run from the moment the operation was scheduled to start, so the client's own queueing counts."
      : "Times run from the moment the request was handed to the HTTP client: the client's own queueing does not count.";
  return {
    promise: [
      `At least ${percentText(contract.attainment)} of all offered operations are good: each ${count}.`,
      ...names.map((name) =>
        SENTENCE[name](
          name === 'smoothness' ? percentText(limits[name] as number) : formatDuration(limits[name] as number),
        ),
      ),
      `The operation is complete within its deadline of ${formatDuration(contract.deadline)}.`,
      from,
      `A valid response has ${validText(contract)} and ends with ${listText(valid.finish, 'or')}.`,
    ],
    edges: edgesOf(contract),
  };
}

function validText({ valid }: Contract): string {
  const parts = [
    valid.minTokens === 0
      ? 'any length, none included'
      : `at least ${valid.minTokens} token${valid.minTokens === 1 ? '' : 's'}`,
  ];
  if (valid.minShareOfAsked > 0) parts.push(`at least ${percentText(valid.minShareOfAsked)} of the tokens asked for`);
  return listText(parts, 'and');
}

function edgesOf(contract: Contract): Edge[] {
  const { cases, valid, limits, deadline } = contract;
  const against = 'it counts against the target';
  const timesInside = limitsSet(limits).filter((n) => n !== 'e2e' && n !== 'latency');
  const inside = listText(
    timesInside.map((n) => LIMIT_WORDS[n]),
    'and',
  );
  const oneTokenLimits = limitsSet(limits).filter((n) => n === 'tpot' || n === 'gap');
  return [
    {
      edge: 'cancelled by the caller',
      classed: {
        'not-good': `cancelled: ${against}`,
        observed: `cancelled, judged on what was seen: against the target when a limit was already broken (elapsed TTFT included), else taken out of the denominator, and counted`,
        exclude: 'cancelled: taken out of the denominator, and counted',
      }[cases.cancelled],
    },
    {
      edge: 'retried',
      classed:
        'one operation, at most one success; TTFT runs from the first attempt to the first output the user kept, and a stall in mid-stream enters the gaps',
    },
    {
      edge: 'hedged',
      classed: 'one operation, judged on the attempt the user kept; losing hedges are load, not outcomes',
    },
    {
      edge: 'one token',
      classed:
        oneTokenLimits.length === 0
          ? 'nothing this contract limits is undefined for it'
          : cases.oneToken === 'vacuous'
            ? `${listText(
                oneTokenLimits.map((n) => LIMIT_WORDS[n]),
                'and',
              )} undefined: met vacuously, and counted apart`
            : `${listText(
                oneTokenLimits.map((n) => LIMIT_WORDS[n]),
                'and',
              )} undefined: late`,
    },
    {
      edge: 'empty',
      classed: valid.minTokens > 0 ? `invalid: ${against}` : 'valid; limits that need output are unmeasurable on it',
    },
    {
      edge: 'unmeasurable',
      classed: {
        late: 'a limit that could not be measured counts as missed: late (unmeasurable)',
        skip: 'a limit that could not be measured is skipped; the others decide',
        exclude: 'taken out of the denominator, unless another limit was missed',
      }[cases.unmeasurable],
    },
    {
      edge: 'non-streamed',
      classed:
        timesInside.length === 0
          ? 'judged like any other: this contract limits nothing inside the stream'
          : {
              unmeasurable: `${inside} cannot be measured: ${unmeasurableText(cases.unmeasurable)}`,
              skip: `${inside} skipped; last-token latency, E2E and the deadline decide`,
              exclude: 'taken out of the denominator, and counted',
            }[cases.nonStreamed],
    },
    { edge: 'rejected', classed: `rejected (429, 503, queue full, also inside a 200 stream): ${against}` },
    { edge: 'failed', classed: `failed (connection, HTTP error, error inside the stream, engine abort): ${against}` },
    {
      edge: 'truncated',
      classed: `truncated (ended without a finish reason or terminal event; [DONE] alone is not success): ${against}`,
    },
    {
      edge: 'deadline passed',
      classed: `timed out after ${formatDuration(deadline)}, also when it completes later: ${against}`,
    },
    {
      edge: 'another finish',
      classed: `a finish other than ${listText(valid.finish, 'or')}: invalid, ${against}`,
    },
    { edge: 'unsent', classed: `never sent, by the client's own limit or after a failed earlier turn: ${against}` },
    {
      edge: 'undecided',
      classed:
        'observation ended before the deadline did: attainment becomes a pair, with all of these not good and all of them good',
    },
    {
      edge: 'several choices',
      classed:
        "one operation: TTFT is the earliest choice's, TPOT, max gap and last-token latency the worst choice's; valid only if all choices are",
    },
  ];
}

function unmeasurableText(rule: Contract['cases']['unmeasurable']): string {
  return { late: 'late', skip: 'skipped', exclude: 'taken out of the denominator' }[rule];
}

function listText(items: readonly string[], word: 'and' | 'or'): string {
  if (items.length <= 1) return items[0] ?? 'nothing';
  return `${items.slice(0, -1).join(', ')} ${word} ${items.at(-1)}`;
}
