import { describe, expect, it } from 'vitest';
import { readServed } from './served-table.ts';

const HEAD =
  'silicon_ttft_ms,note,isl,Model_Path,osl,silicon_tpot_ms,system,tp_size,precision,concurrency,batch_size,backend';
const row = (model: string, gpu: string, concurrency: number, batch = '', precision = 'fp8'): string =>
  `100,"a, ""quoted"" note",1024,${model},256,10,${gpu},2,${precision},${concurrency},${batch},vLLM`;

describe('the table of served measurements', () => {
  it('reads columns in any order, with others between them, quoted cells and optional ones missing', () => {
    const table = readServed(`${HEAD}\r\n${row('Qwen/Qwen3-32B', 'h100_sxm', 8)}\r\n`, 'table.csv');
    expect(table.rows).toMatchObject([{ engine: 'vllm', concurrency: 8, input: 1024, output: 256, precision: 'fp8' }]);
    expect(table.rows[0]?.on).toMatchObject({ tp: 2, dp: 1, weights: 'fp8' });
  });
  it('takes a service of several replicas by the replica', () => {
    const rows = [row('Qwen/Qwen3-32B', 'h100_sxm', 416, '13'), row('Qwen/Qwen3-32B', 'h100_sxm', 16, '16')];
    expect(readServed(`${HEAD}\n${rows.join('\n')}`, 'table.csv').rows.map((r) => r.concurrency)).toEqual([13, 16]);
  });
  it('counts what it cannot place under its name, and repeats as one', () => {
    const good = row('Qwen/Qwen3-32B', 'h100_sxm', 8);
    const rows = [
      good,
      good,
      row('acme/Foo-9T', 'h100', 8),
      row('Qwen/Qwen3-8B', 'xpu', 8),
      row('Qwen/Qwen3-8B', 'h100', 8, '', 'fp6'),
    ];
    const table = readServed(`${HEAD}\n${rows.join('\n')}`, 'table.csv');
    expect(table.rows).toHaveLength(1);
    expect(table.floor.configurations).toBe(1);
    expect([...table.left.keys()]).toEqual([
      "unknown model 'acme/Foo-9T'",
      "unknown accelerator 'xpu'",
      "precision: 'fp6' is not a precision",
    ]);
  });
  it('names the column that is missing', () => {
    expect(() => readServed('a,b\n1,2', 'table.csv')).toThrow(/table.csv lacks the column 'model_path'/);
  });
});
