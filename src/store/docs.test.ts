import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { virtualClock } from '../core/clock.ts';
import { contractOf } from '../core/contract.ts';
import { COLUMNS, FINISHES, PHASES, storedType } from './columns.ts';
import { createRun } from './index.ts';
import { CURSOR_JSON, HEALTH_JSON, REPORT_JSON, RUN_JSON } from './schemas.ts';

const page = readFileSync(new URL('../../docs/run-folder.md', import.meta.url), 'utf8');
let dir = '';
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'goodput-docs-'));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

describe('docs/run-folder.md', () => {
  it('has every column as it is', () => {
    for (const c of COLUMNS) {
      const meaning = c.meaning.replaceAll('|', '\\|');
      expect(page).toContain(`| \`${c.name}\` | ${storedType(c)} | ${c.unit} | ${meaning} | ${c.since} |`);
    }
    for (const word of [...PHASES, ...FINISHES]) expect(page).toContain(`\`${word}\``);
  });

  it('quotes every schema as it is', () => {
    for (const schema of [RUN_JSON, CURSOR_JSON, HEALTH_JSON, REPORT_JSON]) {
      expect(page).toContain(`\`\`\`json\n${JSON.stringify(schema, undefined, 2)}\n\`\`\``);
    }
  });

  it('describes what is written', async () => {
    const meta = {
      epochWall: 0,
      seed: 1,
      contract: contractOf({ ttft: 500 }, { deadline: Number.POSITIVE_INFINITY }),
      workload: {},
      target: {},
      versions: { goodput: '0.1.0' },
      machine: {},
    };
    const run = await createRun(dir, 'schemas', meta, { clock: virtualClock() });
    const asked = { input: 1, output: 2, choices: 1, stream: true };
    run.track(() => ({
      offered: 2,
      open: [{ operation: 1, attempt: 0, scheduled: 1.5, class: 'a', dispatched: 1.625, session: 3, turn: 0, asked }],
      window: { start: 0, end: 10 },
    }));
    await run.flush();
    run.writeHealth({ verdict: 'ok' });
    run.writeReport({});
    await run.close();
    for (const [file, schema] of [
      ['run.json', RUN_JSON],
      ['cursor.json', CURSOR_JSON],
      ['health.json', HEALTH_JSON],
      ['report.json', REPORT_JSON],
    ] as const) {
      const written = JSON.parse(readFileSync(join(run.folder, file), 'utf8'));
      const checker = z.fromJSONSchema(schema as unknown as Parameters<typeof z.fromJSONSchema>[0]);
      expect(checker.safeParse(written).error, file).toBeUndefined();
      expect(checker.safeParse({ ...written, schema: 'else' }).success, file).toBe(false);
    }
  });
});
