import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { InputError } from '../base/errors.ts';
import { CONTRACT_DEFAULTS, type Contract, contractOf } from './contract.ts';
import { contractJsonSchema, contractYaml, parseContract, presetYaml } from './contract-file.ts';
import { PRESET_NAMES, PRESETS } from './presets.ts';
import { checkContract } from './slo.ts';

const refusal = (text: string): string => {
  try {
    parseContract(text, 'c.yaml');
  } catch (error) {
    expect(error).toBeInstanceOf(InputError);
    expect((error as Error).message).not.toMatch(/\n/);
    return (error as Error).message;
  }
  throw new Error('was accepted');
};

describe('a contract file', () => {
  test('reads YAML', () => {
    const text = `
name: mine
boundary: dispatched
attainment: 95%
deadline: 20s
limits: { ttft: 500ms, tpot: 0.05s, smoothness: 0.9 }
valid: { min_tokens: 2, min_share_of_asked: 50%, finish: [stop] }
cases: { cancelled: observed, non_streamed: skip, one_token: late, unmeasurable: exclude }
`;
    expect(parseContract(text, 'c.yaml')).toEqual({
      name: 'mine',
      boundary: 'dispatched',
      attainment: 0.95,
      deadline: 20_000,
      limits: { ttft: 500, tpot: 50, smoothness: 0.9 },
      valid: { minTokens: 2, minShareOfAsked: 0.5, finish: ['stop'] },
      cases: { cancelled: 'observed', nonStreamed: 'skip', oneToken: 'late', unmeasurable: 'exclude' },
    });
  });

  test('reads JSON, and takes the defaults of the flags', () => {
    expect(parseContract('{"limits":{"ttft":"500ms"}}', 'c.json')).toEqual(contractOf({ ttft: 500 }));
    expect(parseContract('limits: {e2e: 2m}', 'c').deadline).toBe(120_000);
  });

  test.each([
    ['limits:\n  ttft: 500ms\n  ttfft: 5ms\n', "c.yaml:3: unknown key 'limits.ttfft' (did you mean 'ttft'?)"],
    ['limits:\n  max_gap: 500ms\n', "c.yaml:2: unknown key 'limits.max_gap' (did you mean 'gap'?)"],
    ['\nttft: 500ms\n', "c.yaml:2: unknown key 'ttft'; write it under 'limits:'"],
    ['limits:\n  deadline: 1s\n', "c.yaml:2: unknown key 'limits.deadline'; the deadline stands at the top level"],
    [
      'limits: {ttft: 1s}\ncases:\n  canceled: exclude\n',
      "c.yaml:3: unknown key 'cases.canceled' (did you mean 'cancelled'?)",
    ],
    ['limits:\n  ttft: 500\n', 'c.yaml:2: limits.ttft: write it with a unit'],
    ['limits:\n\n  ttft: 0s\n', "c.yaml:3: limits.ttft: '0s' is zero"],
    ['attainment: 120%\nlimits: {ttft: 1s}', "c.yaml:1: attainment: '120%' is not a share"],
    ['limits: {ttft: 1s}\ncases:\n  cancelled: never', 'c.yaml:3: cases.cancelled: '],
    ['limits: {ttft: 1s}\nlimits: {ttft: 2s}', 'c.yaml:2: not readable as YAML: Map keys must be unique'],
    ['limits: [', 'not readable as YAML'],
    ['- a', 'c.yaml: not a contract'],
    ['', 'c.yaml: not a contract'],
    ['name: x', 'c.yaml: it promises nothing'],
    ['limits: {e2e: 60s}\ndeadline: 30s', 'the e2e limit of 60 s lies beyond the deadline of 30 s'],
    [
      'a: &a [1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c]',
      'c.yaml: not readable as YAML: Excessive alias count',
    ],
  ])('refuses %j', (text, message) => {
    expect(refusal(text)).toContain(message);
  });

  test('hostile keys reach the terminal escaped', () => {
    expect(refusal('"\\u001b[31mred": 1')).not.toContain('\u001b');
  });
});

describe('presets', () => {
  test.each(PRESET_NAMES)('%s: its commented YAML reads back to the same contract', (name) => {
    const { contract } = PRESETS[name];
    expect(parseContract(presetYaml(name), name)).toEqual(contract);
    expect(checkContract(contract, name)).toBe(contract);
  });
  test.each(PRESET_NAMES)('%s: every limit has its reason, and none is given for a limit it does not set', (name) => {
    const { contract, why } = PRESETS[name];
    expect(Object.keys(why).sort()).toEqual(Object.keys(contract.limits).sort());
  });
});

test('any contract survives being written and read', () => {
  const millis = fc.integer({ min: 1, max: 30_000_000 }).map((us) => us / 1000);
  const share = fc.integer({ min: 1, max: 1000 }).map((x) => x / 1000);
  const contract: fc.Arbitrary<Contract> = fc
    .record({
      name: fc.string({ minLength: 1, maxLength: 20 }).filter((s) => s.trim() === s && !/[\p{C}]/u.test(s)),
      boundary: fc.constantFrom('scheduled' as const, 'dispatched' as const),
      limits: fc.record(
        { ttft: millis, tpot: millis, gap: millis, smoothness: share, e2e: millis },
        { requiredKeys: ['ttft', 'tpot'] },
      ),
      attainment: share,
      cancelled: fc.constantFrom('not-good' as const, 'observed' as const, 'exclude' as const),
    })
    .map(({ cancelled, ...rest }) => ({
      ...CONTRACT_DEFAULTS,
      ...rest,
      cases: { ...CONTRACT_DEFAULTS.cases, cancelled },
    }));
  fc.assert(
    fc.property(contract, (c) => {
      expect(parseContract(contractYaml(c), 'c')).toEqual(c);
    }),
    { numRuns: 200 },
  );
});

test('the JSON Schema describes the file as it is written, not as it is read', () => {
  const schema = contractJsonSchema() as {
    properties: Record<string, { properties?: Record<string, unknown> }>;
    additionalProperties: boolean;
  };
  expect(schema.additionalProperties).toBe(false);
  expect(schema.properties.limits?.properties?.ttft).toMatchObject({ type: 'string' });
  expect(Object.keys(schema.properties)).toEqual([
    'schema',
    'name',
    'boundary',
    'attainment',
    'deadline',
    'limits',
    'valid',
    'cases',
  ]);
});

describe('docs/contract.md', () => {
  const page = readFileSync(new URL('../../docs/contract.md', import.meta.url), 'utf8');
  test('its example is a contract, and is the chat preset', () => {
    const example = /```yaml\n([\s\S]*?)```/.exec(page)?.[1] ?? '';
    expect(parseContract(example, 'docs/contract.md')).toEqual(PRESETS.chat.contract);
  });
  test('names every key of the schema and every preset', () => {
    const keys = (schema: unknown): string[] =>
      Object.entries((schema as { properties?: Record<string, unknown> }).properties ?? {}).flatMap(([key, inner]) => [
        key,
        ...keys(inner),
      ]);
    for (const key of keys(contractJsonSchema())) expect(page).toMatch(new RegExp(`\\b${key}\\b`));
    for (const name of PRESET_NAMES) expect(page).toContain(`\`${name}\``);
  });
});
