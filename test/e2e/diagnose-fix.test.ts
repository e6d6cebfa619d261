/** What would fix it, checked on a calibrated profile with the later run's own arrivals and lengths. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { singleCase } from '../../bench/diagnose/gym.ts';
import { SCENARIOS } from '../../bench/diagnose/scenarios.ts';
import { checkFixes } from '../../src/cli/diagnose-fix.ts';
import { diagnose } from '../../src/diagnose/index.ts';
import { scratch } from './cli.ts';

const { dir, remove } = scratch();
afterAll(remove);

const coefficient = (value: number) => ({ value, low: value, high: value });
const error = { decode: 0.01, prefill: 0.01, lone: 0.01, bias: 0, observations: 100 };
const profile = join(dir, 'profile.yaml');
writeFileSync(
  profile,
  JSON.stringify({
    schema: 'goodput.profile/1',
    name: 'ours',
    target: {},
    runs: ['r'],
    form: 'sum',
    coefficients: {
      step: coefficient(10),
      sequence: coefficient(0.1),
      kv: coefficient(0.04),
      prefill_token: coefficient(30),
    },
    unseparated: [],
    stall_factor: 1,
    range: { sequences: [1, 4], context: [1, 4096], prompt: [1, 4096] },
    limits: { max_seqs: 4, max_seqs_from: 'given', max_batched_tokens: 2048 },
    fit: {
      condition: 5,
      blocks: 10,
      observations: { decode: 100, prefill: 10, lone: 5 },
      together: 1,
      fitted: error,
      held_out: error,
      held_out_run: null,
      other_form: null,
    },
    remarks: [],
  }),
);

describe('what would fix it', () => {
  const c = singleCase(SCENARIOS.find((s) => s.id === 'admission')!, 4242);
  const found = diagnose(c.a, c.b, { changes: c.changes });

  it('is not checked without a profile, and says so', async () => {
    expect(found.causes[0]?.cause.id).toBe('admission');
    const [fix] = await checkFixes(found, {});
    expect(fix).toMatchObject({ cause: 'admission', simulated: false });
    expect(fix?.text).toContain('not checked by simulation');
  });

  it('is simulated with the limits the later side ran with, and with the knob turned', {
    timeout: 60_000,
  }, async () => {
    const [fix] = await checkFixes(found, { profile, maxNumSeqs: 2 });
    expect(fix).toMatchObject({ simulated: true, knob: 'max_num_seqs 2 → 8' });
    expect(fix!.after!.ttft_ms).toBeLessThan(0.5 * fix!.before!.ttft_ms);
    expect(fix?.text).toContain('It helps');
    // Beyond what was measured, which it must say.
    expect(fix?.text).toMatch(/beyond the profile's data: batches of \d+ sequences/);
  });

  it('needs the records of the later side', async () => {
    const { requests: _, ...bare } = found.b;
    await expect(checkFixes({ ...found, b: bare }, { profile })).rejects.toThrow(/no records with lengths/);
  });
});
