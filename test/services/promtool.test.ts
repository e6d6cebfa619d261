import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { emulate, run, type Served, scratch } from '../e2e/cli.ts';
import { withService } from './service.ts';

const { dir, remove } = scratch();
let server: Served;
beforeAll(async () => {
  server = await emulate(['--speed', '20']);
  await run([
    'bench',
    server.url,
    '--rate',
    '20',
    '--requests',
    '20',
    '--warmup',
    '0s',
    '--output',
    '8',
    '--out',
    dir,
    '--json',
  ]);
});
afterAll(async () => {
  await server?.stop();
  remove();
});

describe("the emulator's metrics", () => {
  withService('promtool', 'are read by Prometheus without a complaint about their form', async (promtool) => {
    const text = await (await fetch(`${server.url}/metrics`)).text();
    const checked = spawnSync(promtool, ['check', 'metrics'], { input: text, encoding: 'utf8' });
    // What promtool lints of names is vLLM's own naming (`vllm:…`, gauges ending in `_perc`); faults of form it calls errors.
    expect(checked.stderr + checked.stdout).not.toMatch(/error while linting|text format parsing error/);
    expect(text).toMatch(/^vllm:request_success_total\{.*finished_reason="length".*\} [1-9]/m);
  });
});
