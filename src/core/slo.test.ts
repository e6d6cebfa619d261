import { describe, expect, test } from 'vitest';
import { InputError } from '../base/errors.ts';
import { contractOf } from './contract.ts';
import { checkContract, defaultDeadline, mergeTerms, parseGoodput, parseSlo } from './slo.ts';

const refusal = (run: () => unknown): string => {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(InputError);
    const { message } = error as Error;
    expect(message).not.toMatch(/\n/);
    return message;
  }
  throw new Error('was accepted');
};

describe('--slo', () => {
  test('reads names, aliases and units, over repeated flags', () => {
    expect(parseSlo(['ttft=500ms, tpot=50ms', 'max_gap=200ms,e2el=30s', 'last=2m', 'smoothness=99%'])).toEqual({
      limits: { ttft: 500, tpot: 50, gap: 200, e2e: 30_000, latency: 120_000, smoothness: 0.99 },
    });
    expect(parseSlo(['ttfa=1.5s,deadline=20s'])).toEqual({ limits: { ttfa: 1500 }, deadline: 20_000 });
    expect(parseSlo(['max-gap=200ms'])).toEqual(parseSlo(['gap=200ms']));
  });

  test.each([
    [['ttf=500ms'], /'ttf' is not a limit \(did you mean 'ttft'\?\); the limits are ttft, ttfa/],
    [['constructor=5ms'], /'constructor' is not a limit/],
    [['ttft=500'], /--slo ttft: '500' is not a duration; write it with a unit/],
    [['ttft=500ms,ttft=1s'], /the ttft limit is given twice/],
    [['gap=1s', 'max_gap=1s'], /the gap limit is given twice/],
    [['deadline=1s', 'deadline=1s'], /the deadline limit is given twice/],
    [['ttft=0ms'], /'0ms' is zero, which nothing can meet/],
    [['ttft=-5ms'], /'-5ms' is negative/],
    [['smoothness=150%'], /not a share between 0 and 1/],
    [['ttft:500ms'], /is not name=value; write it like ttft=500ms/],
    [['ttft='], /is not name=value/],
    [[''], /no limit given/],
    [[`ttft=${'9'.repeat(400)}ms`], /too large/],
  ])('refuses %j', (texts, message) => {
    expect(refusal(() => parseSlo(texts))).toMatch(message);
  });
});

describe("vLLM's --goodput", () => {
  test('bare numbers are milliseconds', () => {
    expect(parseGoodput(['ttft:500', 'tpot:50 e2el:30000'])).toEqual({ limits: { ttft: 500, tpot: 50, e2e: 30_000 } });
  });
  test('refuses what vLLM does not know either, naming the nearest', () => {
    expect(refusal(() => parseGoodput(['e2l:5']))).toMatch(/--goodput: 'e2l' is not a limit \(did you mean 'e2e'\?\)/);
    expect(refusal(() => parseGoodput(['ttft=500']))).toMatch(/write it like ttft:500/);
  });
  test('may not contradict --slo', () => {
    const slo = parseSlo(['ttft=1s']);
    expect(refusal(() => mergeTerms(slo, parseGoodput(['ttft:500']), '--goodput'))).toMatch(/given twice/);
    expect(mergeTerms(slo, parseGoodput(['tpot:50']), '--goodput').limits).toEqual({ ttft: 1000, tpot: 50 });
  });
});

describe('a contract that contradicts itself', () => {
  test('is refused', () => {
    expect(refusal(() => checkContract(contractOf({ e2e: 60_000 }), 'c.yaml'))).toMatch(
      /^c\.yaml: the e2e limit of 60 s lies beyond the deadline of 30 s/,
    );
    expect(refusal(() => checkContract(contractOf({ smoothness: 0.9, ttft: 5 }), 'c'))).toMatch(/set both/);
    expect(refusal(() => checkContract(contractOf({ ttft: 5 }, { attainment: 0 }), 'c'))).toMatch(/asks nothing/);
  });
  test('the default deadline never cuts a limit off', () => {
    expect(defaultDeadline({ ttft: 500 })).toBe(30_000);
    expect(defaultDeadline({ e2e: 60_000 })).toBe(60_000);
  });
});
