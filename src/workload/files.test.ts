import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { inflateSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { keyed } from '../base/random.ts';
import { DATASET_FORMATS, type DatasetFormat } from './datasets/index.ts';
import { parseWorkload, workloadJsonSchema } from './file.ts';
import { imageUrl } from './images.ts';
import { readJson } from './json-stream.ts';
import { meanLength, parseLength } from './lengths.ts';
import { readTrace, replay, scaleTrace, type Trace } from './traces/index.ts';

const SAMPLES = join(import.meta.dirname, '..', '..', 'samples', 'workloads');
const text = (name: string): string => readFileSync(join(SAMPLES, name), 'utf8');
const pieces = (whole: string, size = 7): string[] => whole.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [];
const read = (name: string, size?: number): Promise<Trace> => readTrace(pieces(text(name), size), name);

describe('traces', () => {
  it('Azure 2023: seven decimals to the microsecond, CRLF', async () => {
    const t = await read('azure-2023.csv');
    expect(t.format).toBe('azure');
    // 18:17:03.9799600, :04.0319604, :04.0319606, :06.0000001, :59.9999999 (rounded to 18:18:00)
    expect([...t.at]).toEqual([0, 52_000, 52_001, 2_020_040, 56_020_040]);
    expect([...t.input]).toEqual([4808, 3180, 110, 7433, 34]);
    expect([...t.output]).toEqual([10, 8, 27, 14, 12]);
  });

  it('Azure 2024: six decimals or fewer, and a zone', async () => {
    expect([...(await read('azure-2024.csv')).at]).toEqual([0, 7405, 21_070, 1_990_070]);
  });

  it('BurstGPT: seconds, classes by model and log type, failures asked for one token and said so', async () => {
    const t = await read('burstgpt.csv');
    expect([...t.at]).toEqual([0, 40e6, 113e6, 180.5e6]);
    expect(t.classes).toEqual(['ChatGPT Conversation log', 'GPT-4 Conversation log', 'ChatGPT API log']);
    expect([...t.classOf]).toEqual([0, 0, 1, 2]);
    expect(t.output[3]).toBe(1);
    expect(t.notes.join()).toMatch(/1 requests with no output/);
  });

  it('Mooncake: equal hashes are equal text and equal blocks, to the block', async () => {
    const t = await read('mooncake.jsonl');
    const w = replay({ trace: t, choices: 1, stream: true, ignoreEos: true, prompt: 'text' }, 1);
    const offers = [w.next()!, w.next()!, w.next()!, w.next()!];
    expect(w.next()).toBeUndefined();
    expect(offers.map((o) => o.at)).toEqual([0, 0, 3052, 6000]);
    const words = offers.map((o) => (o.spec.prompt as string).split(' '));
    offers.forEach((o, i) => {
      expect(words[i]).toHaveLength(o.spec.inputTokens);
      expect(o.spec.prefixBlocks).toHaveLength(Math.floor(o.spec.inputTokens / 16));
    });
    const common = (i: number, j: number): [number, number] => {
      let w1 = 0;
      while (words[i]![w1] !== undefined && words[i]![w1] === words[j]![w1]) w1++;
      const [a, b] = [offers[i]!.spec.prefixBlocks!, offers[j]!.spec.prefixBlocks!];
      let k = 0;
      while (a[k] !== undefined && a[k] === b[k]) k++;
      return [Math.floor(w1 / 512), k];
    };
    expect(common(0, 1)).toEqual([2, 64]);
    expect(common(0, 2)).toEqual([1, 32]);
    expect(common(0, 3)).toEqual([0, 0]);
  });

  it('vLLM: start times in any order; a failed request arrived all the same', async () => {
    const t = await read('vllm-detailed.json');
    expect([...t.at]).toEqual([0, 0.5e6, 2e6, 4.5e6, 8e6, 12.5e6]);
    expect([...t.input]).toEqual([20, 10, 30, 40, 1, 60]);
  });

  it('GuideLLM: targeted starts of the first benchmark, whatever became of the request', async () => {
    const t = await read('guidellm.json');
    expect([...t.at]).toEqual([0, 300_000, 750_000]);
    expect([...t.input]).toEqual([100, 101, 102]);
    expect(t.notes.join()).toMatch(/first of 2 benchmarks/);
  });

  it('does not depend on how the file is cut into pieces', async () => {
    for (const name of ['azure-2023.csv', 'burstgpt.csv', 'mooncake.jsonl', 'vllm-detailed.json', 'guidellm.json']) {
      const whole = await readTrace([text(name)], name);
      for (const size of [1, 2, 3, 64]) expect(await read(name, size), name).toEqual(whole);
    }
  });

  it.each([
    [
      'azure',
      'TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,5,5\nyesterday,1,1\n',
      /x:3: TIMESTAMP 'yesterday'/,
    ],
    ['azure', 'TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,-4,5\n', /x:2: input length -4/],
    [
      'azure',
      'TIMESTAMP,ContextToken,GeneratedTokens\n',
      /x:1: no column 'ContextTokens' \(did you mean 'ContextToken'/,
    ],
    [
      'mooncake',
      '{"timestamp":0,"input_length":9,"output_length":1,"hash_ids":[1]}\n{"timestamp":',
      /x:2: not a JSON object/,
    ],
    ['mooncake', '{"timestamp":0,"input_length":9,"output_length":1,"hash_ids":[1,2]}', /x:1: 2 hash_ids for 9 tokens/],
    ['vllm', '{"input_lens":[1],\n"output_lens":[1]}', /no 'start_times'/],
    ['vllm', '{"input_lens":[1],\n"output_lens":[tru]}', /x:2: not JSON/],
    ['burstgpt', 'Timestamp,Request tokens,Response tokens\n', /holds no request/],
  ] as const)('%s: names the line of what is wrong', async (format, content, message) => {
    await expect(readTrace([content], 'x', { format })).rejects.toThrow(message);
  });

  it('refuses what it does not know', async () => {
    await expect(readTrace(['a,b\n1,2\n'], 'x')).rejects.toThrow(/not a trace of a known format/);
  });

  it('slices by count and by time', async () => {
    const all = text('azure-2023.csv');
    const some = await readTrace([all], 'x', { slice: { by: 'count', from: 1, to: 3 } });
    expect([...some.input]).toEqual([3180, 110]);
    const early = await readTrace([all], 'x', { slice: { by: 'time', from: 0, to: 3e6 } });
    expect(early.length).toBe(4);
  });

  it('scales in time exactly, and in rate by chance with the clock kept', async () => {
    const t = await read('azure-2023.csv');
    expect([...scaleTrace(t, { time: 0.5 }, 1).at]).toEqual([0, 26_000, 26_001, 1_010_020, 28_010_020]);
    const long: Trace = {
      ...t,
      length: 4000,
      at: Float64Array.from({ length: 4000 }, (_, i) => i * 1000),
      input: new Int32Array(4000).fill(5),
      output: new Int32Array(4000).fill(5),
      classOf: new Uint8Array(4000),
    };
    const half = scaleTrace(long, { rate: 0.5 }, 1);
    expect(Math.abs(half.length - 2000)).toBeLessThan(5 * Math.sqrt(1000));
    expect(half).toEqual(scaleTrace(long, { rate: 0.5 }, 1));
    const more = scaleTrace(long, { rate: 2.5 }, 1);
    expect(Math.abs(more.length - 10_000)).toBeLessThan(5 * Math.sqrt(1000));
    expect(Math.abs(more.at[more.length - 1]! - 3_999_000)).toBeLessThan(20_000);
    expect(() => scaleTrace(t, { time: 0 }, 1)).toThrow(/--time-scale/);
  });

  const traces = process.env.GOODPUT_TRACES;
  it.skipIf(!traces || !existsSync(traces))(
    'reproduces the published traces to the microsecond (set GOODPUT_TRACES to their folder)',
    async () => {
      const name = 'AzureLLMInferenceTrace_conv.csv';
      const lines = readFileSync(join(traces as string, name), 'utf8')
        .trim()
        .split(/\r?\n/)
        .slice(1);
      const t = await readTrace([readFileSync(join(traces as string, name), 'utf8')], name);
      expect(t.length).toBe(lines.length);
      // By whole numbers of 100 ns, apart from the reader's own way.
      const ticks = lines.map((line) => {
        const m = /(\d\d):(\d\d):(\d\d)\.(\d{7})/.exec(line)!;
        return BigInt(+m[1]! * 3600 + +m[2]! * 60 + +m[3]!) * 10_000_000n + BigInt(m[4]!);
      });
      for (const [i, tick] of ticks.entries()) expect(t.at[i]).toBe(Number((tick - ticks[0]!) / 10n));
    },
  );
});

describe('datasets', () => {
  const load = (name: string, format: DatasetFormat, sample = 100) =>
    DATASET_FORMATS[format](pieces(text(name), 11), name, { sample, seed: 1, outputOfFile: true });

  it('ShareGPT: the first question of each conversation, escapes and all', async () => {
    const { entries, available, skipped } = await load('sharegpt.json', 'sharegpt');
    expect(entries.map((e) => e.prompt)).toEqual([
      'How do tides come about?',
      'Say it in one "sentence" — please.\nThank you.',
      'Name three rivers.',
    ]);
    expect({ available, skipped }).toEqual({ available: 3, skipped: 1 });
    expect(entries[0]!.outputTokens).toBeGreaterThan(40);
  });

  it('JSON lines: prompts, messages with images, tool calls and tools, bare texts', async () => {
    const { entries } = await load('prompts.jsonl', 'jsonl');
    expect(entries[0]).toMatchObject({ prompt: 'Write a haiku about queues.', outputTokens: 24 });
    expect(entries[1]?.prompt).toMatchObject([
      { role: 'system' },
      { role: 'user', content: [{ type: 'text' }, { type: 'image', url: 'https://example.com/cat.png' }] },
    ]);
    expect(entries[2]).toMatchObject({
      tools: [{ name: 'weather' }],
      prompt: [{}, { toolCalls: [{ id: 'c1', name: 'weather' }] }, { role: 'tool', toolCallId: 'c1' }],
    });
    expect(entries[3]?.prompt).toBe('Just a text.');
  });

  it('samples by seed, every entry as likely', async () => {
    const lines = Array.from({ length: 200 }, (_, i) => JSON.stringify({ prompt: `p${i}` })).join('\n');
    const counts = new Map<string, number>();
    for (let seed = 0; seed < 200; seed++) {
      const { entries } = await DATASET_FORMATS.jsonl([lines], 'x', { sample: 20, seed, outputOfFile: true });
      for (const e of entries) counts.set(e.prompt as string, (counts.get(e.prompt as string) ?? 0) + 1);
    }
    expect(Math.max(...counts.values())).toBeLessThan(45); // 20 expected, sd 4.2
    expect(counts.size).toBe(200);
  });

  it('names the line of what is wrong', async () => {
    const options = { sample: 5, seed: 1, outputOfFile: true };
    await expect(DATASET_FORMATS.jsonl(['{"prompt":"a"}\n{"promt":"b"}'], 'x', options)).rejects.toThrow(
      /x:2: no 'prompt' text.*did you mean 'prompt'/,
    );
    await expect(DATASET_FORMATS.sharegpt(['[{"prompt":"a"},\n{"b":]'], 'x', options)).rejects.toThrow(/x:2: not JSON/);
  });
});

describe('the streamed JSON reader', () => {
  it('tells what JSON.parse tells, however the text is cut', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.jsonValue({ maxDepth: 4 }),
        fc.integer({ min: 1, max: 9 }),
        fc.boolean(),
        async (value, size, pretty) => {
          const rebuilt = new Map<string, unknown>();
          const expected = new Map<string, unknown>();
          const walk = (v: unknown, path: (string | number)[]): void => {
            if (Array.isArray(v)) for (const [i, x] of v.entries()) walk(x, [...path, i]);
            else if (typeof v === 'object' && v !== null) for (const [k, x] of Object.entries(v)) walk(x, [...path, k]);
            else expected.set(JSON.stringify(path), v);
          };
          const written = JSON.stringify(value, null, pretty ? 1 : 0);
          walk(JSON.parse(written), []);
          await readJson(pieces(written, size), 'x', {
            scalar: (path, v) => void rebuilt.set(JSON.stringify(path), v),
          });
          expect(rebuilt).toEqual(expected);
        },
      ),
      { numRuns: 200 },
    );
  });

  it.each(['{"a":1', '[1,]', '{"a" 1}', '[1] 2', '{a:1}', '["x\n"]', '', '[01]'])('refuses %j', async (bad) => {
    await expect(readJson([bad], 'x', {})).rejects.toThrow(/x:\d+: not JSON/);
  });
});

describe('images', () => {
  it('are PNGs of the size asked for, no two alike', () => {
    const bytes = (k: number): Buffer =>
      Buffer.from(imageUrl(300, 20, keyed(1, 'i', k)).split(',')[1] as string, 'base64');
    const png = bytes(0);
    expect(png.subarray(1, 4).toString()).toBe('PNG');
    expect([png.readUInt32BE(16), png.readUInt32BE(20)]).toEqual([300, 20]);
    const length = png.readUInt32BE(33);
    expect(png.subarray(37, 41).toString()).toBe('IDAT');
    expect(inflateSync(png.subarray(41, 41 + length))).toHaveLength((Math.ceil(300 / 8) + 1) * 20);
    expect(bytes(1).equals(png)).toBe(false);
    expect(bytes(0).equals(png)).toBe(true);
  });
});

describe('the workload file', () => {
  const minimal = 'classes: [{ name: a }]';
  it('reads every key of its schema', () => {
    const file = parseWorkload(text('mix.yaml'), 'mix.yaml');
    expect(file.classes?.map((c) => c.name)).toEqual(['chat', 'summaries', 'agents']);
    expect(file.classes?.[1]?.input).toMatchObject({ kind: 'lognormal', mean: 3000 });
    expect(parseWorkload(minimal, 'x').classes?.[0]).toMatchObject({ share: 1, n: 1 });
  });

  it.each([
    ['clases: []', /x:1: unknown key 'clases' \(did you mean 'classes'/],
    ['classes:\n  - name: a\n    inpt: 5', /x:3: unknown key 'classes\[0\]\.inpt' \(did you mean 'input'/],
    [
      'classes:\n  - name: a\n    prefix: { tokns: 5 }',
      /x:3: unknown key 'classes\[0\]\.prefix\.tokns' \(did you mean 'tokens'/,
    ],
    ['classes:\n  - name: a\n    input: lognormal:5', /x:3: classes\[0\]\.input: .*lognormal/],
    ['classes:\n  - name: a\n    session: { turns: 2, think: 5 }', /x:3: classes\[0\]\.session\.think/],
    ['classes:\n  - name: a\n  - name: a', /x:3: .*'a' comes twice/],
    ['rate: 5', /asks for nothing/],
    ['rate: 5\nreplay: { file: a }', /x:1: rate: a replay has its arrivals/],
    ['classes:\n  - name: a\n    prefix: { tokens: 5, tree: [{ tokens: 5 }] }', /either tokens/],
    ['classes: [', /x:1: not readable as YAML/],
  ])('refuses %j with its place', (yaml, message) => {
    expect(() => parseWorkload(yaml, 'x')).toThrow(message);
  });

  it('has a JSON Schema, which the samples keep', () => {
    expect(JSON.parse(text('workload.schema.json'))).toEqual(JSON.parse(JSON.stringify(workloadJsonSchema())));
  });
});

describe('lengths', () => {
  it.each(['7', 'uniform:2-10', 'lognormal:300,0.5', 'gamma:300,1.5', 'empirical:1,2,9'])('%s has its mean', (plan) => {
    const parsed = parseLength(plan, '--input');
    expect(meanLength(parsed)).toBeGreaterThan(0);
  });
  it.each(['0', 'uniform:5-2', 'gamma:5', 'gama:5,1', 'empirical:', 'lognormal:,1'])('refuses %s', (plan) => {
    expect(() => parseLength(plan, '--input')).toThrow(/--input/);
  });
});
