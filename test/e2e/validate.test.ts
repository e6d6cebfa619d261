import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { run, scratch } from './cli.ts';

const { dir, remove } = scratch();
afterAll(remove);

const HEAD =
  'silicon_data_source,backend,model_path,system,precision,mode,isl,osl,tp_size,attention_dp_size,silicon_ttft_ms,silicon_tpot_ms';
const row = (gpu: string, concurrency: number, ttft: number, tpot: number, precision = 'fp8'): string =>
  `silicon_concurrency=${concurrency},vllm,Qwen/Qwen3-32B,${gpu},${precision},agg,1024,256,2,1,${ttft},${tpot}`;

describe('goodput validate', () => {
  it('scores served rows of a folder, left-out fits included, and says what is not there', {
    timeout: 240_000,
  }, async () => {
    mkdirSync(join(dir, 'served'), { recursive: true });
    const rows = [4, 8, 16, 32].flatMap((n) => [
      row('h100_sxm', n, 100 + n, 10 + n / 10),
      row('h200_sxm', n, 90 + n, 8 + n / 10),
    ]);
    rows.push(
      row('h100_sxm', 8, 110, 11),
      row('h100_sxm', 8, 100, 11, ''),
      row('h100_sxm', 8, 1, 1).replace('agg', 'disagg'),
    );
    writeFileSync(join(dir, 'served', 'measured_ttft_tpot.csv'), `${HEAD}\n${rows.join('\n')}\n`);
    const done = await run(['validate', dir, '--leave-out', '--json']);
    const board = JSON.parse(done.stdout);
    expect(board).toMatchObject({ schema: 'goodput.validate/1', failed: [] });
    expect(board.served).toMatchObject({ read: 11, configurations: 9 });
    expect(Object.values(board.served.left)).toEqual([1]);
    expect(board.served.floor.configurations).toBe(1);
    expect(Object.keys(board.served.unscored).join()).toMatch(/precision is not stated/);
    // Coefficients of H100's rows carry to H200's: pseudo-measurements of one law.
    expect(board.served.left_out).toMatchObject({ on: 'now', gpu: { undone: [] } });
    expect(Object.keys(board.served.left_out.gpu.groups).sort()).toEqual(['h100-sxm', 'h200-sxm']);
    expect(board.skipped).toHaveLength(3);
    expect(done.stderr).toMatch(/without h200-sxm \(2 of 2\)/);
    expect(done.code).toBe(0);
  });

  it('names what is wrong with a table in one line', async () => {
    const bad = join(dir, 'bad');
    mkdirSync(join(bad, 'served'), { recursive: true });
    writeFileSync(join(bad, 'served', 'measured_ttft_tpot.csv'), 'a,b\n1,2\n');
    const done = await run(['validate', bad]);
    expect(done.code).toBe(2);
    expect(done.stderr.trim().split('\n').at(-1)).toMatch(/lacks the column 'model_path'/);
    expect(existsSync(join(bad, 'requests'))).toBe(false);
  });
});
