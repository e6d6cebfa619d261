/** `goodput emulate`: an HTTP server with vLLM's surface and no GPU, with faults on demand. */
import { InputError, messageOf } from '../base/errors.ts';
import { formatDuration, parseDuration } from '../base/units.ts';
import type { Emulator, ServerOptions } from '../emulate/index.ts';
import type { ModelShape } from '../model/index.ts';
import { type Cli, command, JSON_FLAG, text } from './command.ts';
import { untilClosed } from './until-closed.ts';

interface Flags {
  readonly model: string;
  readonly servedModelName?: string;
  readonly gpu: string;
  readonly host: string;
  readonly port: number;
  readonly speed: number;
  readonly ttft?: string;
  readonly itl?: string;
  readonly stagger?: string;
  readonly maxNumSeqs?: number;
  readonly maxNumBatchedTokens?: number;
  readonly maxModelLen?: number;
  readonly kvBlocks?: number;
  readonly gpuMemoryUtilization?: number;
  readonly enablePrefixCaching: boolean;
  readonly maxQueue?: number;
  readonly answer: number;
  readonly seed: number;
  readonly fault?: readonly string[];
  readonly faults?: string;
  readonly stamps?: string;
  readonly json: boolean;
}

/** How long open streams may go on after the first signal. */
const GRACE_MS = 10_000;

export const emulate = command({
  func: async function (this: Cli, flags: Flags) {
    const { serve } = await import('../emulate/index.ts');
    const emulator = await serve(await optionsOf(flags));
    const { url, host, port } = emulator;
    if (flags.json) {
      this.stdout.line(JSON.stringify({ listening: url, host, port, pid: process.pid, engine: emulator.about }));
    } else {
      this.stdout.line(`listening on ${url}`);
      this.stdout.line(`serving ${flags.servedModelName ?? flags.model}: ${emulator.about}`);
    }
    if (!isLoopback(host)) {
      this.stderr.line(
        `goodput: WARNING: ${url} is open to every machine that can reach it, and asks nobody for a key; ` +
          'leave --host out to serve this machine alone',
      );
    }
    await untilClosed(emulator, GRACE_MS);
    if (flags.json) this.stdout.line(JSON.stringify(served(emulator)));
    else for (const line of farewell(emulator)) this.stderr.line(line);
    const failure = emulator.stampsFailure();
    if (failure !== undefined) throw new InputError(`--stamps: some were lost: ${failure}`);
  },
  parameters: {
    flags: {
      model: {
        ...text('Model to emulate, and the name it is served under; or a config.json', 'name'),
        optional: false,
        default: 'llama-3.1-8b',
      },
      servedModelName: text('Name to serve it under instead', 'name'),
      gpu: { ...text('Accelerator', 'name'), optional: false, default: 'h100-sxm' },
      host: { ...text('Address to listen on', 'address'), optional: false, default: '127.0.0.1' },
      port: { ...count('Port to listen on, 0 for any'), optional: false, default: '8000' },
      speed: { ...number('Times as fast as real time', 'x'), optional: false, default: '1' },
      ttft: text('Scripted: time to the first token of every request, instead of a model', 'duration'),
      itl: text('Scripted: time from each token to the next', 'duration'),
      stagger: text('Scripted: shift each stream against the one before, so they do not tick together', 'duration'),
      maxNumSeqs: count('Sequences in a batch at most'),
      maxNumBatchedTokens: count('Tokens in a step at most: the budget of chunked prefill'),
      maxModelLen: count('Longest sequence, prompt and output together'),
      kvBlocks: count('KV blocks of 16 tokens; default what fits the GPU'),
      gpuMemoryUtilization: number('Share of GPU memory for weights and KV', '0..1'),
      enablePrefixCaching: { kind: 'boolean', brief: 'Keep prompt blocks for later prompts', default: true },
      maxQueue: count('Refuse requests with 503 when this many wait; default no bound'),
      answer: { ...count('Tokens of an answer whose length the request leaves open'), optional: false, default: '256' },
      seed: { ...count('Seed of the faults and ids'), optional: false, default: '0' },
      fault: {
        ...text('A fault at a rate, repeatable: reset=5%, stall=0.05:2s, multi-token=10%:4', 'KIND=RATE[:PARAM]'),
        variadic: true,
      },
      faults: text('Several faults at once, separated by commas', 'KIND=RATE,…'),
      stamps: text('Write when each token was sent to this NDJSON file', 'file'),
      json: JSON_FLAG,
    },
  },
  docs: {
    brief: 'Serve an emulated model over HTTP, as vLLM does',
    fullDescription:
      "An HTTP server with vLLM's surface: /v1/models, /v1/chat/completions, /v1/completions, /tokenize, /health, " +
      '/metrics. Behind it a cluster of a model on a GPU, whose step time is the ideal (bytes over bandwidth, or FLOPs ' +
      'over peak), or a fixed script. The first line on stdout is `listening on URL`. A token is a word.',
  },
});

function count(brief: string) {
  return { kind: 'parsed', parse: whole, brief, placeholder: 'n', optional: true } as const;
}

function number(brief: string, placeholder: string) {
  return { kind: 'parsed', parse: positive, brief, placeholder, optional: true } as const;
}

function whole(value: string): number {
  if (!/^\d{1,15}$/.test(value)) throw new InputError(`'${value}' is not a whole number of 0 or more`);
  return Number(value);
}

function positive(value: string): number {
  const x = Number(value);
  if (value.trim() === '' || !Number.isFinite(x) || x <= 0) throw new InputError(`'${value}' is not a positive number`);
  return x;
}

async function optionsOf(flags: Flags): Promise<ServerOptions> {
  const { clusterServed, parseFault, scriptedServed } = await import('../emulate/index.ts');
  if (flags.port > 65_535) throw new InputError(`--port ${flags.port}: ports go from 0 (any) to 65535`);
  const faults = [...(flags.fault ?? []), ...(flags.faults?.split(',') ?? [])].filter((f) => f.trim() !== '');
  const name = flags.servedModelName ?? flags.model;
  const shared = {
    host: flags.host,
    port: flags.port,
    seed: flags.seed,
    faults: faults.map(parseFault),
    ...(flags.maxQueue !== undefined && { maxQueue: flags.maxQueue }),
    ...(flags.stamps !== undefined && { stamps: flags.stamps }),
  };
  const scripted = flags.ttft ?? flags.itl ?? flags.stagger;
  if (scripted !== undefined) {
    const of = (value: string | undefined, flag: string): number =>
      value === undefined ? 0 : parseDuration(value, flag, 'ms');
    const script = {
      ttft: of(flags.ttft, '--ttft'),
      itl: of(flags.itl, '--itl'),
      stagger: of(flags.stagger, '--stagger'),
    };
    return {
      ...shared,
      model: { name, maxModelLen: flags.maxModelLen ?? 131_072, answerTokens: flags.answer },
      engine: scriptedServed(script, flags.speed),
    };
  }
  const { engine, maxModelLen } = clusterServed({
    model: flags.model.endsWith('.json') ? await shapeFrom(flags.model) : flags.model,
    gpu: flags.gpu,
    speed: flags.speed,
    prefixCaching: flags.enablePrefixCaching,
    ...(flags.maxNumSeqs !== undefined && { maxNumSeqs: flags.maxNumSeqs }),
    ...(flags.maxNumBatchedTokens !== undefined && { maxNumBatchedTokens: flags.maxNumBatchedTokens }),
    ...(flags.maxModelLen !== undefined && { maxModelLen: flags.maxModelLen }),
    ...(flags.kvBlocks !== undefined && { kvBlocks: flags.kvBlocks }),
    ...(flags.gpuMemoryUtilization !== undefined && { gpuMemoryUtilization: flags.gpuMemoryUtilization }),
  });
  return { ...shared, model: { name, maxModelLen, answerTokens: flags.answer }, engine };
}

/** A model that is not in the catalogue, by its `config.json`. */
async function shapeFrom(path: string): Promise<ModelShape> {
  const { readFile } = await import('node:fs/promises');
  const { modelFromConfig } = await import('../model/index.ts');
  let json: unknown;
  try {
    json = JSON.parse(await readFile(path, 'utf8'));
  } catch (error) {
    throw new InputError(`--model ${path}: cannot be read as JSON (${messageOf(error)}); name a model's config.json`);
  }
  return modelFromConfig(json, path, path);
}

function isLoopback(address: string): boolean {
  return address === '::1' || address.startsWith('127.') || address.startsWith('::ffff:127.');
}

function served(emulator: Emulator): object {
  return {
    requests: emulator.requests(),
    faults: Object.fromEntries(emulator.faults()),
    lateness_ms: emulator.lateness() ?? null,
  };
}

function farewell(emulator: Emulator): string[] {
  const late = emulator.lateness();
  const faults = [...emulator.faults()].map(([name, n]) => `${name} ${n}`);
  return [
    `served ${emulator.requests()} requests${faults.length > 0 ? `; faults: ${faults.join(', ')}` : ''}`,
    ...(late
      ? [
          `kept its schedule to p50 ${formatDuration(late.p50)}, p99 ${formatDuration(late.p99)}, ` +
            `max ${formatDuration(late.max)} over ${late.count} engine events`,
        ]
      : []),
  ];
}
