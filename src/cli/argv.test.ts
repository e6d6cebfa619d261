import { describe, expect, it } from 'vitest';
import { parsable } from './argv.ts';
import { bench } from './bench.ts';
import { simulate } from './simulate.ts';
import { runCommand } from './testing.ts';

describe('one-letter names', () => {
  it('are put as their alias, up to the escape', () => {
    expect(parsable(['bench', '--n', '2', '--n=3', '--no-stream', '--', '--n', 'x'])).toEqual([
      'bench',
      '-n',
      '2',
      '-n=3',
      '--no-stream',
      '--',
      '--n',
      'x',
    ]);
  });
  it('reach the commands that publish them', async () => {
    const asked = await runCommand(bench, ['null:', '--n', 'two']);
    expect(asked.err).toMatch(/--n: 'two' is not a whole number/);
    const one = ['--model', 'llama-3.1-8b', '--gpu', 'h100', '--requests', '20', '--slo', 'ttft=1s', '--json'];
    const plain = await runCommand(simulate, one);
    expect(JSON.parse((await runCommand(simulate, [...one, '--n', '1'])).out)).toEqual(JSON.parse(plain.out));
    expect((await runCommand(simulate, [...one, '--n=2'])).err).toBe(
      '--n 2: a simulated request has one choice; raise --rate by as much instead',
    );
  });
});
