import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { runCommand } from './testing.ts';
import { validate } from './validate.ts';

const DATA = fileURLToPath(new URL('../../../shared/data', import.meta.url));

describe('goodput validate', () => {
  it('says in one line when there is nothing to validate against', async () => {
    expect((await runCommand(validate, ['/nowhere'])).err).toMatch(/no such folder; give the folder of reference data/);
    const empty = await mkdtemp(join(tmpdir(), 'validate-'));
    const { err } = await runCommand(validate, [empty]);
    expect(err.split('\n').at(-1)).toMatch(/none of served\/, requests\/, knees\/, sarathi\//);
    await rm(empty, { recursive: true });
  });
  it.skipIf(!existsSync(DATA))(
    'stays within the errors on record (skipped where the reference data are not at hand)',
    async () => {
      const { out, code } = await runCommand(validate, [DATA, '--json']);
      const board = JSON.parse(out);
      expect(board.failed).toEqual([]);
      expect(code).toBe(0);
      expect(board.checks.length).toBeGreaterThanOrEqual(16);
      expect(board.skipped).toEqual([]);
      // What was asked: fitted on one accelerator, the other predicted.
      const other = board.requests.find((r: { fitted_on: string }) => r.fitted_on.startsWith('RTX4090')).other;
      expect(Math.abs(other.makespan)).toBeLessThan(0.15);
      expect(Math.abs(other.tpot)).toBeLessThan(0.15);
      expect(Math.abs(other.prefill)).toBeLessThan(0.3);
      expect(board.interference.worst).toBeLessThan(0.2);
      expect(board.interference.conflicts).toHaveLength(1);
      for (const knee of board.knees) expect(knee.worst).toBeLessThan(0.08);
      expect(board.served.kinds['dense H100, H200'].tpot).toBeLessThan(0.15);
      expect(board.served.kinds.experts.tpot).toBeLessThan(0.25);
      expect(board.served.kinds['dense elsewhere'].tpot).toBeLessThan(0.25);
      for (const kind of ['dense H100, H200', 'dense elsewhere', 'experts'])
        expect(board.served.kinds[kind].ttft).toBeLessThan(0.4);
      expect(board.served.ideal['dense H100, H200'].tpot).toBeGreaterThan(0.4);
      // What was left out is beside it, with its date, and is the worse of the two.
      expect(board.served.left_out.on).toMatch(/^\d{4}-\d\d-\d\d$/);
      expect(board.served.left_out.model.kinds.experts.tpot).toBeGreaterThan(board.served.kinds.experts.tpot);
      expect(Object.keys(board.served.unscored)).toHaveLength(2);
    },
    240_000,
  );
});
