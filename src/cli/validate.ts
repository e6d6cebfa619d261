/** `goodput validate DIR`: the model and the simulator against data others measured, and against what is on record. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { InputError, messageOf, oneLine } from '../base/errors.ts';
import { parseDuration } from '../base/units.ts';
import type { RequestLog, Scoreboard } from '../plan/validate/index.ts';
import { EXIT } from './cli.ts';
import { type Cli, command, JSON_FLAG, text } from './command.ts';

interface Flags {
  readonly leaveOut: boolean;
  readonly budget: string;
  readonly json: boolean;
}

export const validate = command({
  func: runValidate,
  parameters: {
    flags: {
      leaveOut: {
        kind: 'boolean',
        default: false,
        brief: 'Refit with each model and each accelerator left out (minutes); else what is on record is printed',
      },
      budget: {
        ...text('Time the refits may take; groups beyond it are named', '20m'),
        optional: false,
        default: '20m',
      },
      json: JSON_FLAG,
    },
    positional: {
      kind: 'tuple',
      parameters: [{ brief: 'Folder of reference data', parse: String, placeholder: 'DIR' }],
    },
  },
  docs: {
    brief: 'Score the engine model and the simulator on reference data',
    fullDescription:
      'Reads what of served/, requests/, knees/ and sarathi/ is there, and says what is not. Fails (exit code 1) where an\n' +
      'error grew beyond its recorded margin. Without --leave-out it takes seconds, so it can run with the tests.',
  },
});

async function runValidate(this: Cli, flags: Flags, dir: string): Promise<void> {
  if (!existsSync(dir))
    throw new InputError(`${oneLine(dir)}: there is no such folder; give the folder of reference data`);
  const v = await import('../plan/validate/index.ts');
  const skipped: string[] = [];
  const say = (text: string): void => {
    if (!flags.json) this.stderr.line(text);
  };
  const present = (name: string, files: string[]): boolean => {
    const missing = files.find((f) => !existsSync(join(dir, f)));
    if (missing === undefined) say(`${name} …`);
    else skipped.push(`${name}: ${missing} is not there`);
    return missing === undefined;
  };
  let board: Scoreboard = {};
  let sameRows = false;
  if (present('served rows', ['served/measured_ttft_tpot.csv'])) {
    const table = v.readServed(textOf(dir, 'served/measured_ttft_tpot.csv'), 'measured_ttft_tpot.csv');
    sameRows = table.read === v.RECORDED_ROWS;
    let leftOut = v.RECORDED_LEFT_OUT;
    if (flags.leaveOut) {
      const until = performance.now() + parseDuration(flags.budget, '--budget');
      leftOut = v.scoreLeftOut(table.rows, (what, done, of) => {
        const go = performance.now() < until;
        this.stderr.line(`${what} (${done + 1} of ${of})${go ? ' …' : ': no time left'}`);
        return go;
      });
    }
    board = { ...board, served: v.scoreServed(table, leftOut) };
  }
  if (present('request logs', ['requests'])) {
    const logs = await logsIn(dir, skipped);
    if (logs.length > 1) board = { ...board, requests: v.scoreLogs(logs) };
    else skipped.push(`request logs: ${logs.length} readable; one is fitted and another predicted, so two are needed`);
  }
  const profiles = ['knees/profiler-a100-80g.vllm.json', 'knees/profiler-a100-80g.distserve.json'] as const;
  if (present('knees', ['knees/attainment_vs_rate.json', ...profiles])) {
    board = { ...board, knees: await kneesIn(dir, profiles) };
  }
  if (present('prefill interference', ['sarathi/yi34b_tp2.json'])) {
    const m = await import('../model/index.ts');
    const on = m.deployment(m.modelFromConfig(YI_34B, 'yi-34b'), m.accelerator('a100-sxm'), { tp: 2 });
    const data = v.readInterference(jsonOf(dir, 'sarathi/yi34b_tp2.json'), 'yi34b_tp2.json');
    board = { ...board, interference: v.interferenceScore(on, data) };
  }
  if (Object.keys(board).length === 0) {
    throw new InputError(
      `${oneLine(dir)}: it has none of served/, requests/, knees/, sarathi/; give the folder of reference data`,
    );
  }
  const checks = v.checksOf(board, sameRows);
  const failed = checks.filter((c) => !c.ok);
  if (flags.json) {
    const answer = {
      schema: 'goodput.validate/1',
      recorded_on: v.RECORDED_ON,
      ...board,
      skipped,
      peers: v.PEERS,
      checks,
      failed: failed.map((c) => c.name),
    };
    this.stdout.line(JSON.stringify(answer, null, 2));
  } else for (const line of await lines(board, skipped, checks)) this.stdout.line(line);
  this.exit(failed.length > 0 ? EXIT.missed : EXIT.ok);
}

/** Yi-34B as its publisher serves it. */
const YI_34B = {
  model_type: 'llama',
  num_hidden_layers: 60,
  hidden_size: 7168,
  num_attention_heads: 56,
  num_key_value_heads: 8,
  intermediate_size: 20480,
  vocab_size: 64000,
  max_position_embeddings: 200_000,
};

function textOf(dir: string, file: string): string {
  try {
    return readFileSync(join(dir, file), 'utf8');
  } catch (error) {
    throw new InputError(`${oneLine(file)}: cannot be read (${messageOf(error)})`, { cause: error });
  }
}

function jsonOf(dir: string, file: string): unknown {
  const text = textOf(dir, file);
  try {
    return JSON.parse(text);
  } catch {
    throw new InputError(`${oneLine(file)}: not JSON; fetch the reference data again`);
  }
}

interface Meta {
  readonly model?: string;
  readonly engine_kwargs?: {
    readonly tensor_parallel_size?: number;
    readonly max_num_seqs?: number;
    readonly max_num_batched_tokens?: number;
    readonly max_model_len?: number | null;
    readonly kv_cache_dtype?: string;
  };
  readonly kv_cache?: { readonly num_gpu_blocks?: number; readonly enable_prefix_caching?: boolean };
  readonly resolved_config?: {
    readonly scheduler_config?: { readonly async_scheduling?: boolean; readonly scheduler_reserve_full_isl?: boolean };
  };
}

/** Every log under `requests/` whose accelerator (the folder's name up to the first dash) and model are known. */
async function logsIn(dir: string, skipped: string[]): Promise<RequestLog[]> {
  const [m, { limitsFor }, { readLog }] = await Promise.all([
    import('../model/index.ts'),
    import('../sim/index.ts'),
    import('../plan/validate/index.ts'),
  ]);
  const bare = (name: string): string => name.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
  const logs: RequestLog[] = [];
  for (const name of readdirSync(join(dir, 'requests')).sort()) {
    if (!existsSync(join(dir, 'requests', name, 'requests.jsonl'))) continue;
    try {
      const meta = jsonOf(dir, `requests/${name}/meta.json`) as Meta;
      const device = bare(name.split('-')[0] as string);
      const gpu = m.ACCELERATORS.find((a) => [a.id, ...a.aliases].some((n) => bare(n) === device));
      if (!gpu) throw new InputError(`accelerator '${oneLine(name.split('-')[0] as string)}' is not in the catalogue`);
      const args = meta.engine_kwargs ?? {};
      const scheduler = meta.resolved_config?.scheduler_config;
      const on = m.deployment(m.model(meta.model ?? ''), gpu, {
        tp: args.tensor_parallel_size ?? 1,
        kv: /^fp8/.test(args.kv_cache_dtype ?? '') ? 'fp8' : 'bf16',
      });
      logs.push({
        name,
        on,
        limits: limitsFor(on, {
          maxSeqs: args.max_num_seqs ?? 256,
          maxBatchedTokens: args.max_num_batched_tokens ?? 2048,
          // The default since vLLM 0.14.
          asyncScheduling: scheduler?.async_scheduling ?? true,
          reservePrompt: scheduler?.scheduler_reserve_full_isl ?? true,
          ...(args.max_model_len && { maxLength: args.max_model_len }),
          ...(meta.kv_cache?.num_gpu_blocks && { kvBlocks: meta.kv_cache.num_gpu_blocks }),
        }),
        requests: readLog(textOf(dir, `requests/${name}/requests.jsonl`), `${name}/requests.jsonl`),
      });
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      skipped.push(`request log ${oneLine(name)}: ${error.message}`);
    }
  }
  return logs;
}

interface CurveFile {
  readonly curves?: readonly {
    readonly ttft_slo_s: number;
    readonly tpot_slo_s: number;
    readonly rates: readonly number[];
    readonly vllm: { readonly attain: readonly number[] };
    readonly distserve: { readonly attain: readonly number[] };
  }[];
}

async function kneesIn(dir: string, [vllm, distserve]: readonly [string, string]) {
  const v = await import('../plan/validate/index.ts');
  const curve = (jsonOf(dir, 'knees/attainment_vs_rate.json') as CurveFile).curves?.[0];
  if (!curve) throw new InputError("attainment_vs_rate.json lacks 'curves'; fetch the reference data again");
  const split = jsonOf(dir, distserve);
  const systems = v.kneeSystems(
    v.profileOf(jsonOf(dir, vllm), 'facebook/opt-13b', 1, vllm),
    v.profileOf(split, 'facebook/opt-13b', 2, distserve),
    v.profileOf(split, 'facebook/opt-13b', 1, distserve),
  );
  const share = (points: readonly number[]): number[] => points.map((x) => x / 100);
  return v.scoreKnees(systems, {
    rates: curve.rates,
    vllm: share(curve.vllm.attain),
    distserve: share(curve.distserve.attain),
    slo: { ttft: 1000 * curve.ttft_slo_s, tpot: 1000 * curve.tpot_slo_s },
  });
}

async function lines(
  board: Scoreboard,
  skipped: readonly string[],
  checks: readonly import('../plan/validate/index.ts').Check[],
): Promise<string[]> {
  const [{ table, wrapText }, { PEERS, RECORDED_ON }] = await Promise.all([
    import('../report/text.ts'),
    import('../plan/validate/index.ts'),
  ]);
  const p = (x: number | null | undefined): string =>
    x === null || x === undefined ? '–' : `${(100 * x).toFixed(1)} %`;
  const out: string[] = [];
  const { served, requests, knees, interference } = board;
  if (served) {
    const rows = (of: typeof served.kinds) =>
      Object.entries(of).map(([k, e]) => [k, String(e.rows), p(e.tpot), p(e.tpotBias), p(e.ttft), String(e.ttftRows)]);
    const head = ['median absolute error', 'rows', 'TPOT', 'bias', 'TTFT', 'rows'];
    out.push(
      `Served rows: ${served.read} read, ${served.configurations} configurations simulated (these rows were in the fit)`,
      ...table([head, ...rows(served.kinds), ...rows(served.groups)]),
      `  TTFT is scored where the concurrency is at most 256 and the precision is stated. Elsewhere:`,
      ...Object.entries(served.unscored).map(([why, u]) => `  ${u.rows} rows, off by ${p(u.ttft)}: ${why}.`),
      `  Noise floor: ${served.floor.configurations} configurations measured more than once differ by ${p(served.floor.tpot.p50)} (median) and ${p(served.floor.tpot.p90)} (p90) in TPOT, ${p(served.floor.ttft.p50)} and ${p(served.floor.ttft.p90)} in TTFT.`,
      ...Object.entries(served.left).map(([why, n]) => `  Left out, ${n} rows: ${why}.`),
      '',
      'The ideal formula on the same rows',
      ...table([head, ...rows(served.ideal)]),
      '',
    );
    const { left_out } = served;
    for (const [of, what] of [
      ['model', 'Each model predicted by a fit without it'],
      ['gpu', 'Each accelerator predicted by a fit without it'],
    ] as const) {
      const { kinds, groups, undone } = left_out[of];
      out.push(
        `${what} (${left_out.on === 'now' ? 'made now' : `on record of ${left_out.on}; --leave-out makes it again`})`,
        ...table([head, ...rows(kinds), ...rows(groups)]),
        ...(undone.length > 0 ? [`  Not refitted for want of time: ${undone.join(', ')}.`] : []),
        '',
      );
    }
  }
  for (const log of requests ?? []) {
    const row = (name: string, e: typeof log.other) => [
      name,
      p(e.makespan),
      p(e.tpot),
      p(e.prefill),
      p(e.queue),
      p(e.ttft),
      p(e.e2e),
    ];
    out.push(
      `Request log: fitted on ${log.fitted_on}, predicted ${log.predicted} (${p(log.fit.memory)} of bandwidth, ${p(log.fit.compute)} of FLOPs)`,
      ...table([
        ['error of the mean', 'makespan', 'TPOT', 'first − scheduled', 'queue', 'TTFT', 'E2E'],
        row('blocks of the fit', log.fit_blocks),
        row('blocks held out', log.held_blocks),
        row('the other run', log.other),
      ]),
      '',
    );
  }
  for (const knee of knees ?? []) {
    out.push(
      `Attainment by rate a device, ${knee.system} (assumed lengths: ${knee.assumption})`,
      ...table([
        ['rate', 'published', 'simulated'],
        ...knee.rows.map((r) => [String(r.rate), p(r.measured), p(r.simulated)]),
      ]),
      `  90 % knee: published ${knee.knee.measured?.toFixed(2) ?? 'none'}, simulated ${knee.knee.simulated?.toFixed(2) ?? 'below all rates'}; worst difference ${p(knee.worst)}`,
      '',
    );
  }
  if (interference) {
    out.push(
      `Prefill interference: chunked prompts ${p(interference.chunked)}, mixed batches ${p(interference.mixed)} (medians; worst ${p(interference.worst)}); lone prompts and decodes, which were fitted, ${p(interference.fitted)}`,
      ...interference.conflicts.map(
        (c) =>
          `  ${c.what}: off by ${p(c.off)}, left out of the worst: the published tables differ by ${p(c.apart)} on it.`,
      ),
      '',
    );
  }
  out.push('Peers, by their own account', ...PEERS.map((peer) => wrapText(peer, 100, '  ', '    ')), '');
  for (const why of skipped) out.push(`Skipped: ${why}`);
  out.push(
    `On record (${RECORDED_ON})`,
    ...table([
      ['', 'now', 'recorded', 'most allowed', ''],
      ...checks.map((c) => [c.name, p(c.value), p(c.recorded), p(c.most), c.ok ? 'ok' : 'WORSE']),
    ]),
  );
  return out;
}
