import { mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { expect, it } from 'vitest';
import { virtualClock } from '../core/clock.ts';
import { contractOf } from '../core/contract.ts';
import { Recorder, type RequestRecord } from '../core/index.ts';
import { createRun, openRun } from './index.ts';
import { quote } from './json.ts';

function record(operation: number): RequestRecord {
  const recorder = new Recorder(
    { operation, attempt: 0, class: 'a', inputTokens: 1, outputTokens: 1, choices: 1, stream: true, ignoreEos: false },
    operation,
  );
  recorder.event(operation + 1, { outputs: [{ choice: 0, kind: 'text' }] }, false);
  recorder.ended(operation + 2, { kind: 'closed' });
  const passage = {
    tenant: 't',
    upstream: 'http://u',
    requestId: `r-${operation}`,
    traceId: 'f'.repeat(32),
    queued: 1.5,
    firstWritten: operation + 1.25,
    lastWritten: operation + 1.25,
    stalled: 0.5,
  };
  return { ...recorder.record(), ...(operation % 2 === 0 && { passage }) };
}

it('keeps what a proxy adds, and reads files written before there was any', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'goodput-older-'));
  try {
    const meta = {
      epochWall: 0,
      seed: 1,
      contract: contractOf({ ttft: 500 }),
      workload: {},
      target: {},
      versions: {},
      machine: {},
    };
    const run = await createRun(dir, 'older', meta, { clock: virtualClock() });
    const records = [0, 1, 2].map(record);
    for (const r of records) run.add(r);
    await run.close();
    const read = async (): Promise<RequestRecord[]> => {
      const found: RequestRecord[] = [];
      const reader = await openRun(run.folder);
      await reader.records((r) => void found.push(r));
      expect(reader.problems).toEqual([]);
      reader.close();
      return found;
    };
    expect((await read()).map((r) => r.passage)).toEqual(records.map((r) => r.passage));

    const [file = ''] = readdirSync(run.folder).filter((name) => name.endsWith('.parquet'));
    const path = join(run.folder, file);
    const instance = await DuckDBInstance.create(':memory:');
    const db = await instance.connect();
    const added = 'queued_ms, first_written_us, last_written_us, stalled_ms, tenant, upstream, request_id, trace_id';
    await db.run(
      `COPY (SELECT * EXCLUDE (${added}) FROM read_parquet(${quote(path)})) TO ${quote(`${path}.old`)} (FORMAT parquet)`,
    );
    db.closeSync();
    instance.closeSync();
    renameSync(`${path}.old`, path);
    const older = await read();
    expect(older.map((r) => [r.operation, r.passage, r.stamps.firstOutput])).toEqual([
      [0, undefined, 1],
      [1, undefined, 2],
      [2, undefined, 3],
    ]);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
