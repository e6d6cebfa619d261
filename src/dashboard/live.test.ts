import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { CONTRACT_DEFAULTS } from '../core/contract.ts';
import { metaToDisk } from '../store/run-json.ts';
import { KEPT, Tail } from './live.ts';

const folder = mkdtempSync(join(tmpdir(), 'goodput-live-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it('keeps the last seconds of a run of hours, and its totals', async () => {
  const meta = {
    epochWall: 1000,
    seed: 1,
    contract: { ...CONTRACT_DEFAULTS, name: 'c', limits: { ttft: 500 } },
    workload: {},
    target: {},
    versions: {},
    machine: {},
  };
  writeFileSync(join(folder, 'run.json'), JSON.stringify(metaToDisk('long', meta)));
  const cursor = (s: number, closed = false): void =>
    writeFileSync(
      join(folder, 'cursor.json'),
      JSON.stringify({
        schema: 'goodput.cursor/1',
        time_us: s * 1e6,
        closed,
        pid: process.pid,
        host: hostname(),
        offered: 10 * s,
        dropped: 0,
        open: [{ operation: s, attempt: 0, scheduled_us: s * 1e6, class: 'default' }],
        segments: 0,
        rows: 0,
        window: { start_us: 0, end_us: 9e9 },
      }),
    );
  const tail = new Tail('long', folder, () => ({}));
  let last = await tail.step(1000);
  expect(last.status).toBe('cut');
  expect(last.ticks).toEqual([]);
  for (let s = 1; s <= KEPT + 50; s++) {
    cursor(s);
    last = await tail.step(1000 + 1000 * s);
    if (s === 1) expect(last).toMatchObject({ status: 'running', window: [0, 9e6], ticks: [{ offered: 10, open: 1 }] });
  }
  expect(last.ticks).toHaveLength(KEPT);
  expect(last.ticks[0]?.t).toBe(51_000);
  // A second in which nothing was written adds nothing.
  expect((await tail.step(1000)).ticks).toHaveLength(KEPT);
  cursor(KEPT + 51, true);
  expect((await tail.step(1000)).status).toBe('complete');
  tail.close();
});
