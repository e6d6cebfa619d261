import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { keyed } from '../base/random.ts';
import { type VirtualClock, virtualClock } from '../core/clock.ts';
import { contractOf } from '../core/contract.ts';
import { judgeRecord } from '../core/judge.ts';
import { OUTCOMES } from '../core/outcome.ts';
import type { RequestRecord } from '../core/record.ts';
import { STAMPS } from '../core/record.ts';
import { OUTPUT_KINDS } from '../core/stream.ts';
import { EMPTY_TIMELINE, TimelineBuilder, timelineOf } from '../core/timeline.ts';
import { FINISHES, PHASES } from './columns.ts';
import { createRun, openRun, type RunMeta, type RunOptions, type RunReader, type RunWriter } from './index.ts';

let dir = '';
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'goodput-store-'));
  writeFileSync(join(dir, 'a-file'), '');
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const META: RunMeta = {
  epochWall: Date.UTC(2026, 10, 29, 14, 5, 10, 250),
  seed: 42,
  contract: contractOf({ ttft: 500, tpot: 50 }),
  workload: { arrivals: 'poisson', rate: 8 },
  target: { url: 'http://127.0.0.1:8000', dialect: 'openai-chat' },
  versions: { goodput: '0.1.0' },
  machine: { cores: 2 },
  command: ['bench', '--rate', '8'],
};

async function newRun(
  name: string,
  options: Partial<RunOptions> = {},
): Promise<{ run: RunWriter; clock: VirtualClock }> {
  const clock = virtualClock();
  return { run: await createRun(dir, name, META, { clock, ...options }), clock };
}

/** A completed stream of four tokens; DEFINITIONS' worked example, from `scheduled` on. */
function completed(operation: number, rest: Partial<RequestRecord> = {}): RequestRecord {
  const scheduled = operation * 10;
  const receipts = [100, 120, 320, 340].map((t) => scheduled + t);
  return {
    operation,
    attempt: 0,
    attempts: 1,
    lostHedge: false,
    class: 'default',
    asked: { input: 512, output: 4, choices: 1, stream: true },
    stamps: {
      scheduled,
      dispatched: scheduled + 0.125,
      firstOutput: receipts[0]!,
      lastOutput: receipts[3]!,
      ended: scheduled + 341,
    },
    timeline: timelineOf(receipts, [1, 1, 1, 1]),
    streamed: true,
    unseenEndTokens: 0,
    outcome: 'completed',
    reason: '',
    detail: '',
    phase: 'done',
    finish: 'length',
    finishReason: 'length',
    impliedEnd: false,
    events: 6,
    coalesced: 0,
    unclassified: 0,
    ...rest,
  };
}

async function recordsOf(reader: RunReader): Promise<RequestRecord[]> {
  const records: RequestRecord[] = [];
  await reader.records((r) => records.push(r));
  return records;
}
async function operationsOf(reader: RunReader): Promise<RequestRecord[]> {
  const records: RequestRecord[] = [];
  await reader.operations((r) => records.push(r));
  return records.sort((a, b) => a.operation - b.operation);
}
const parquetIn = (folder: string): string[] =>
  readdirSync(folder)
    .filter((f) => f.endsWith('.parquet'))
    .sort();

/** Any record a recorder can make: stamps ascend on the microsecond grid, chunks among them. */
const anyRecord: fc.Arbitrary<RequestRecord> = (() => {
  const count = fc.nat(1_000_000);
  const words = fc.string({ unit: 'grapheme', maxLength: 40 });
  const micros = fc.integer({ min: 0, max: 7_200_000_000 });
  const maybe = <T>(x: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(x, { nil: undefined });
  const chunk = fc.record({
    gap: fc.integer({ min: 0, max: 3_000_000 }),
    tokens: fc.integer({ min: -1, max: 9 }),
    kind: fc.constantFrom(...OUTPUT_KINDS),
    choice: fc.nat(2),
  });
  const timeline = fc
    .tuple(micros, fc.array(chunk, { maxLength: 30 }), fc.constantFrom('each', 'alike', 'usual'))
    .map(([start, chunks, form]) => {
      const builder = new TimelineBuilder();
      let at = start;
      for (const c of chunks) {
        at += c.gap;
        const { tokens, kind, choice } = form === 'each' ? c : chunks[0]!;
        if (form === 'usual') builder.push(at / 1000);
        else builder.push(at / 1000, tokens, kind, choice);
      }
      return builder.finish();
    });
  const stamps = fc
    .tuple(micros, fc.array(maybe(fc.integer({ min: 0, max: 5_000_000 })), { minLength: 9, maxLength: 9 }))
    .map(([scheduled, steps]) => {
      const all: Record<string, number> = { scheduled: scheduled / 1000 };
      let at = scheduled;
      steps.forEach((step, i) => {
        if (step !== undefined) all[STAMPS[i + 1]!] = (at += step) / 1000;
      });
      return all as unknown as RequestRecord['stamps'];
    });
  const oneOrMore = <T extends Record<string, fc.Arbitrary<unknown>>>(model: T) =>
    fc.record(model, { requiredKeys: [] }).filter((o) => Object.keys(o).length > 0);
  return fc.record(
    {
      operation: fc.maxSafeNat(),
      attempt: fc.nat(9),
      attempts: fc.nat(1),
      lostHedge: fc.boolean(),
      class: words,
      session: count,
      turn: count,
      asked: fc.record({ input: count, output: count, choices: fc.nat(8), stream: fc.boolean() }),
      stamps,
      connection: fc.record(
        { reused: fc.boolean(), http: fc.constantFrom('1.0', '1.1', '2') },
        { requiredKeys: ['reused'] },
      ),
      status: fc.integer({ min: 100, max: 599 }),
      timeline,
      streamed: fc.boolean(),
      usage: oneOrMore({ input: count, output: count, reasoning: count, cachedInput: count }),
      unseenEndTokens: count,
      tokenized: count,
      outcome: fc.constantFrom(...OUTCOMES),
      reason: words,
      detail: words,
      phase: fc.constantFrom(...PHASES),
      finish: fc.constantFrom(...FINISHES),
      finishReason: words,
      impliedEnd: fc.boolean(),
      events: count,
      coalesced: count,
      unclassified: count,
      model: words,
      server: oneOrMore({
        queue: fc.double({ noNaN: true }),
        prefill: fc.double({ noNaN: true }),
        load: fc.double({ noNaN: true }),
      }),
    },
    {
      requiredKeys: [
        'operation',
        'attempt',
        'attempts',
        'lostHedge',
        'class',
        'asked',
        'stamps',
        'timeline',
        'streamed',
        'unseenEndTokens',
        'outcome',
        'reason',
        'detail',
        'phase',
        'impliedEnd',
        'events',
        'coalesced',
        'unclassified',
      ],
    },
  ) as fc.Arbitrary<RequestRecord>;
})();

describe('a run folder', () => {
  it('gives back every record exactly, whatever is in it', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyRecord, { minLength: 1, maxLength: 400 }), async (records) => {
        const { run } = await newRun('exact');
        for (const record of records) run.add(record);
        await run.close();
        const reader = await openRun(run.folder);
        const read = await recordsOf(reader);
        reader.close();
        expect(read).toEqual(records);
      }),
      { numRuns: 6, seed: 7 },
    );
  });

  it('re-judges to the same verdicts', async () => {
    const { run } = await newRun('verdicts');
    const records = Array.from({ length: 300 }, (_, i) => {
      const receipts = [500.001, 550.002, 600.003 + (i % 3) / 1000].map((t) => i * 7.001 + t);
      const grid = receipts.map((t) => Math.round(t * 1000) / 1000);
      const scheduled = Math.round(i * 7001) / 1000;
      return completed(i, {
        stamps: { scheduled, firstOutput: grid[0]!, lastOutput: grid[2]!, ended: grid[2]! },
        timeline: timelineOf(grid, [1, 1, 1]),
      });
    });
    for (const record of records) run.add(record);
    await run.close();
    const contract = contractOf({ ttft: 500.001, tpot: 50.001, gap: 50.001 });
    const reader = await openRun(run.folder);
    const read = await recordsOf(reader);
    expect(read.map((r) => judgeRecord(r, contract))).toEqual(records.map((r) => judgeRecord(r, contract)));
    const classes = new Set(read.map((r) => judgeRecord(r, contract).verdict.class));
    expect([...classes].sort()).toEqual(['good', 'late']);
  });

  it('says what was asked', async () => {
    const { run } = await newRun('my run/../name');
    expect(run.folder).toBe(join(dir, '20261129T140510Z-my-run-..-name'));
    run.writeHealth({ verdict: 'ok' });
    run.writeReport({ goodput_rps: 4 });
    await run.close();
    const reader = await openRun(run.folder);
    const { schema, name, ...meta } = reader.meta;
    expect({ schema, name }).toEqual({ schema: 'goodput.run/1', name: 'my run/../name' });
    expect(meta).toEqual(META);
    expect(reader.health).toEqual({ schema: 'goodput.health/1', verdict: 'ok' });
    expect(reader.report).toEqual({ schema: 'goodput.report/1', goodput_rps: 4 });
    expect(reader.status).toBe('complete');
    expect(await recordsOf(reader)).toEqual([]);
  });

  it('does not write over a run of the same second', async () => {
    const a = await newRun('twin');
    const b = await newRun('twin');
    expect(b.run.folder).toBe(`${a.run.folder}-2`);
    await Promise.all([a.run.close(), b.run.close()]);
  });

  it('cuts a segment each second and compacts them at the end, in order', async () => {
    const { run, clock } = await newRun('segments');
    for (let second = 0; second < 3; second++) {
      for (let i = 0; i < 300; i++) run.add(completed(second * 300 + i));
      clock.advance(1000 * (second + 1));
      await run.flush();
    }
    expect(parquetIn(run.folder)).toEqual([
      'requests-000001.parquet',
      'requests-000002.parquet',
      'requests-000003.parquet',
    ]);
    expect(run.counts).toEqual({ written: 900, pending: 0, dropped: 0 });
    await run.close();
    expect(parquetIn(run.folder)).toEqual(['requests-000001-000003.parquet']);
    const reader = await openRun(run.folder);
    expect((await recordsOf(reader)).map((r) => r.operation)).toEqual(Array.from({ length: 900 }, (_, i) => i));
    expect(readdirSync(run.folder).filter((f) => f.endsWith('.tmp'))).toEqual([]);
  });

  it('leaves a large segment as it is, and puts small ones after it together', async () => {
    const { run } = await newRun('large');
    const u = keyed(1, 'large-segment');
    let operation = 0;
    for (const [rows, chunks] of [
      [400, 1500],
      [20, 4],
      [20, 4],
    ] as const) {
      for (let i = 0; i < rows; i++) {
        const k = operation++;
        const at = Float64Array.from({ length: chunks }, () => 10 * k + Math.floor(u() * 1e9) / 1000).sort();
        const kind = new Uint8Array(chunks);
        run.add(
          completed(k, {
            timeline: {
              length: chunks,
              at,
              tokens: new Int32Array(chunks).fill(1),
              kind,
              choice: new Uint16Array(chunks),
            },
          }),
        );
      }
      await run.flush();
    }
    await run.close();
    expect(parquetIn(run.folder)).toEqual(['requests-000001.parquet', 'requests-000002-000003.parquet']);
    const read = await recordsOf(await openRun(run.folder));
    expect(read.map((r) => [r.operation, r.timeline.length])).toEqual(
      Array.from({ length: 440 }, (_, i) => [i, i < 400 ? 1500 : 4]),
    );
  });

  it('can be read by any reader of Parquet', async () => {
    const { run } = await newRun('foreign');
    run.add(completed(0, { connection: { reused: true, http: '1.1' }, usage: { output: 4 } }));
    run.add(completed(1, { outcome: 'failed', reason: 'reset', timeline: EMPTY_TIMELINE }));
    await run.close();
    const db = await (await DuckDBInstance.create(':memory:')).connect();
    const rows = await db.runAndReadAll(
      `SELECT operation, scheduled_us, first_output_us, connected_us, connection_reused, outcome, finish, usage_output,
       chunk_us, chunk_tokens, chunk_kind, chunk_choice FROM '${run.folder}/requests-*.parquet' ORDER BY operation`,
    );
    expect(rows.getRowsJson()).toEqual([
      [
        '0',
        '0',
        '100000',
        null,
        true,
        'completed',
        'length',
        '4',
        ['100000', '120000', '320000', '340000'],
        [1],
        [],
        [],
      ],
      ['1', '10000', '110000', null, null, 'failed', 'length', null, [], [], [], []],
    ]);
  });
});

describe('operations', () => {
  it('folds attempts, wherever their rows stand', async () => {
    const { run } = await newRun('attempts');
    const failed = (operation: number, attempt: number): RequestRecord =>
      completed(operation, {
        attempt,
        outcome: 'rejected',
        reason: 'http-503',
        timeline: EMPTY_TIMELINE,
        phase: 'waiting',
      });
    run.add(failed(0, 0));
    run.add(completed(1));
    run.add(completed(2, { attempt: 1, lostHedge: true }));
    await run.flush();
    run.add(completed(0, { attempt: 1 }));
    run.add(completed(2));
    run.add(completed(3, { attempt: 0, lostHedge: true }));
    await run.flush();
    run.add(completed(3, { attempt: 1 }));
    run.add(failed(4, 0));
    run.add(failed(4, 1));
    await run.close();
    const reader = await openRun(run.folder);
    const operations = await operationsOf(reader);
    expect(operations.map((o) => [o.operation, o.attempts, o.outcome, o.attempt])).toEqual([
      [0, 2, 'completed', 1],
      [1, 1, 'completed', 0],
      [2, 2, 'completed', 0],
      [3, 2, 'completed', 1],
      [4, 2, 'rejected', 1],
    ]);
  });
});

describe('a run that is not closed', () => {
  it('can be read while it is written, up to its cursor', async () => {
    const { run, clock } = await newRun('live');
    run.track(() => ({
      offered: 3,
      open: [{ operation: 2, attempt: 0, scheduled: 20, class: 'default', dispatched: 20.5 }],
      window: { start: 0, end: 20_000 },
    }));
    run.add(completed(0));
    run.add(completed(1));
    clock.advance(1500);
    await run.flush();
    const reader = await openRun(run.folder);
    run.add(completed(2));
    await run.flush(); // beyond what the reader's cursor knows
    expect(reader.status).toBe('running');
    expect(reader.cursor).toMatchObject({ offered: 3, rows: 2, time: 1500, window: { start: 0, end: 20_000 } });
    const read = await operationsOf(reader);
    expect(read.map((r) => [r.operation, r.outcome])).toEqual([
      [0, 'completed'],
      [1, 'completed'],
      [2, 'undecided'],
    ]);
    expect(read[2]).toMatchObject({ stamps: { scheduled: 20, dispatched: 20.5 }, phase: 'waiting', reason: 'running' });
    await run.close();
    const after = await operationsOf(reader); // its segments have been compacted meanwhile
    expect(after.map((r) => [r.operation, r.outcome])).toEqual(read.map((r) => [r.operation, r.outcome]));
  });

  it('is cut when its writer is gone: open operations count as undecided', async () => {
    const { run } = await newRun('cut');
    run.track(() => ({
      offered: 3,
      open: [0, 1, 2].map((operation) => ({ operation, attempt: 0, scheduled: 10 * operation, class: 'a' })),
    }));
    run.add(completed(0));
    run.add(completed(1, { outcome: 'failed', reason: 'reset' }));
    await run.flush();
    // A process that has ended: no number that large is given out.
    const cursor = JSON.parse(readFileSync(join(run.folder, 'cursor.json'), 'utf8'));
    const copy = `${run.folder}-copy`;
    mkdirSync(copy);
    for (const file of [...parquetIn(run.folder), 'run.json'])
      writeFileSync(join(copy, file), readFileSync(join(run.folder, file)));
    writeFileSync(join(copy, 'cursor.json'), JSON.stringify({ ...cursor, pid: 2 ** 30 }));
    await run.close();
    const reader = await openRun(copy);
    expect(reader.status).toBe('cut');
    // Killed between a segment and its cursor, a row outranks the cursor.
    expect((await operationsOf(reader)).map((r) => [r.operation, r.outcome, r.reason])).toEqual([
      [0, 'completed', ''],
      [1, 'failed', 'reset'],
      [2, 'undecided', 'cut'],
    ]);
    writeFileSync(join(copy, 'cursor.json'), JSON.stringify({ ...cursor, host: 'elsewhere' }));
    const wall = META.epochWall + cursor.time_us / 1000;
    expect((await openRun(copy, { wallNow: wall + 2000 })).status).toBe('running');
    expect((await openRun(copy, { wallNow: wall + 60_000 })).status).toBe('cut');
    expect((await openRun(copy)).status).toBe('cut');
  });

  it('folds an open retry with the attempt before it', async () => {
    const { run } = await newRun('open-retry');
    run.track(() => ({
      offered: 1,
      open: [{ operation: 0, attempt: 1, scheduled: 0, class: 'default', dispatched: 500 }],
    }));
    run.add(completed(0, { outcome: 'rejected', reason: 'http-503', timeline: EMPTY_TIMELINE }));
    await run.flush();
    const [operation, ...others] = await operationsOf(await openRun(run.folder));
    expect(others).toEqual([]);
    expect(operation).toMatchObject({ outcome: 'undecided', attempts: 2, stamps: { scheduled: 0, dispatched: 0.125 } });
    await run.close();
  });
});

describe('what goes wrong', () => {
  it('passes over a broken segment and names it', async () => {
    const { run } = await newRun('broken');
    for (let s = 0; s < 4; s++) {
      for (let i = 0; i < 10; i++) run.add(completed(s * 10 + i));
      await run.flush();
    }
    truncateSync(join(run.folder, 'requests-000002.parquet'), 500);
    writeFileSync(join(run.folder, 'requests-000003.parquet'), 'not a parquet file at all');
    const reader = await openRun(run.folder);
    const read = await operationsOf(reader);
    expect(read.map((r) => r.operation)).toEqual([
      0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39,
    ]);
    expect(reader.problems).toHaveLength(2);
    expect(reader.problems[0]).toMatch(/^requests-000002\.parquet: cannot be read \(.+\); left out$/);
    expect(reader.problems[1]).toMatch(/^requests-000003\.parquet: /);
    await run.close();
    // What could not be read is not compacted away either.
    expect(parquetIn(run.folder)).toHaveLength(4);
  });

  it('leaves out of a damaged file only what is damaged', async () => {
    const { run } = await newRun('damaged');
    for (let i = 0; i < 40_000; i++) run.add(completed(i));
    await run.close();
    const file = join(run.folder, parquetIn(run.folder)[0]!);
    const db = await (await DuckDBInstance.create(':memory:')).connect();
    const [where] = (
      await db.runAndReadAll(
        `SELECT CAST(data_page_offset AS INTEGER) AS "from", CAST(total_compressed_size AS INTEGER) AS length,
         CAST(row_group_num_rows AS INTEGER) AS rows
         FROM parquet_metadata('${file}') WHERE row_group_id = 1 AND path_in_schema LIKE 'chunk_us%'`,
      )
    ).getRowObjects() as { from: number; length: number; rows: number }[];
    const bytes = readFileSync(file);
    bytes.fill(0xff, where!.from, where!.from + where!.length);
    writeFileSync(file, bytes);
    const reader = await openRun(run.folder);
    const read = await operationsOf(reader);
    expect(reader.problems).toHaveLength(1);
    expect(reader.problems[0]).toMatch(/: damaged within rows \d+–\d+ \(.+\); those after it are left out$/);
    // The second row group is lost, the others are there.
    expect(read).toHaveLength(40_000 - where!.rows);
    expect(new Set(read.map((r) => r.operation)).size).toBe(read.length);
    expect(read.at(-1)).toEqual(completed(39_999));
  });

  it('lets a defect in what is done with a record through', async () => {
    const { run } = await newRun('defect');
    run.add(completed(0));
    await run.close();
    const reader = await openRun(run.folder);
    await expect(
      reader.records(() => {
        throw new TypeError('a defect');
      }),
    ).rejects.toThrow(new TypeError('a defect'));
    expect(reader.problems).toEqual([]);
  });

  it('keeps rows while the folder cannot be written, and writes them when it can', async () => {
    const { run } = await newRun('away');
    run.add(completed(0));
    await run.flush();
    renameSync(run.folder, `${run.folder}-away`);
    run.add(completed(1));
    await run.flush();
    expect(run.problem).toMatch(/requests-000002/);
    expect(run.counts).toMatchObject({ written: 1, pending: 1 });
    renameSync(`${run.folder}-away`, run.folder);
    run.add(completed(2));
    await run.flush();
    expect(run.problem).toBeUndefined();
    await run.close();
    expect((await recordsOf(await openRun(run.folder))).map((r) => r.operation)).toEqual([0, 1, 2]);
  });

  it('says in a line what was lost when it never could', async () => {
    const { run } = await newRun('lost');
    run.add(completed(0));
    rmSync(run.folder, { recursive: true });
    await expect(run.close()).rejects.toThrow(
      /lost: 1 of 1 records could not be written \(.+\); what was written before is kept/,
    );
    expect(existsSync(run.folder)).toBe(false);
  });

  it('is full when too much is pending, and drops and counts beyond twice that', async () => {
    const { run } = await newRun('full', { pendingBytes: 100_000 });
    rmSync(run.folder, { recursive: true }); // nothing can be written: all stays pending
    let added = 0;
    while (!run.full) run.add(completed(added++));
    while (run.counts.dropped === 0) run.add(completed(added++));
    expect(run.counts.pending).toBe(added - 1);
    mkdirSync(run.folder);
    const drained = run.drained();
    await run.flush(); // a flush begun before there was a folder again has failed; its clock's next tick never comes here
    await drained;
    expect(run.full).toBe(false);
    expect(run.counts).toEqual({ written: added - 1, pending: 0, dropped: 1 });
    await run.flush();
    expect(JSON.parse(readFileSync(join(run.folder, 'cursor.json'), 'utf8')).dropped).toBe(1);
    await run.close();
  });

  it('refuses a folder that cannot be made, in a line', async () => {
    const making = createRun(join(dir, 'a-file', 'runs'), 'x', META, { clock: virtualClock() });
    await expect(making).rejects.toThrow(
      /a-file.runs: the run folder cannot be made \(part of the path is not a folder\); choose another with --out DIR/,
    );
  });

  it('refuses what is no run, a damaged or a newer one, in a line', async () => {
    const folder = join(dir, 'odd');
    await expect(openRun(folder)).rejects.toThrow(/odd: no such folder/);
    mkdirSync(folder);
    await expect(openRun(folder)).rejects.toThrow(/odd: is not a run folder \(no run.json in it\)/);
    const runJson = join(folder, 'run.json');
    await expect(openRun(join(dir, 'a-file'))).rejects.toThrow(/is a file, not a run folder/);
    writeFileSync(runJson, '{"schema": "goodput.r');
    await expect(openRun(folder)).rejects.toThrow(/run\.json: is not valid JSON .*restore it from a copy/);
    writeFileSync(runJson, '[1]');
    await expect(openRun(folder)).rejects.toThrow(/run\.json: holds no JSON object/);
    writeFileSync(runJson, '{}');
    await expect(openRun(folder)).rejects.toThrow(/schema is missing, expected 'goodput\.run\/1'/);
    writeFileSync(runJson, '{"schema":"goodput.run/2"}');
    await expect(openRun(folder)).rejects.toThrow(
      /schema 'goodput\.run\/2' is newer than this version reads .*update goodput/,
    );
    writeFileSync(runJson, '{"schema":"goodput.run/1","seed":1,"epoch_unix_ms":0}');
    await expect(openRun(folder)).rejects.toThrow(/'contract' is missing or damaged/);
  });

  it('reads rows though the cursor is damaged', async () => {
    const { run } = await newRun('no-cursor');
    run.add(completed(0));
    await run.close();
    appendFileSync(join(run.folder, 'cursor.json'), '}');
    const reader = await openRun(run.folder);
    expect(reader.status).toBe('cut');
    expect(reader.problems[0]).toMatch(/cursor\.json: is not valid JSON/);
    expect(await recordsOf(reader)).toEqual([completed(0)]);
  });
});
