import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, describe, expect } from 'vitest';
import { run, scratch } from '../e2e/cli.ts';
import { withService } from './service.ts';

const { dir, remove } = scratch();
afterAll(remove);

describe('the alert rules, by promtool', () => {
  for (const attainment of ['50%', '90%', '95%', '99%', '99.9%']) {
    withService(
      'promtool',
      `fire under total failure and stay silent on a target of ${attainment}`,
      async (promtool) => {
        const out = join(dir, attainment);
        await run([
          'rules',
          '--slo',
          'ttft=500ms,tpot=50ms',
          '--attainment',
          attainment,
          '--capacity',
          '12.5',
          '--out',
          out,
        ]);
        const check = spawnSync(promtool, ['check', 'rules', join(out, 'goodput.rules.yaml')], { encoding: 'utf8' });
        expect(check.status, check.stderr + check.stdout).toBe(0);
        const test = spawnSync(promtool, ['test', 'rules', join(out, 'goodput.rules.test.yaml')], { encoding: 'utf8' });
        expect(test.status, test.stderr + test.stdout).toBe(0);
      },
    );
  }
});
