/** `goodput validate DIR`: the model and the simulator against data others measured, and against what is on record. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { InputError, oneLine } from '../base/errors.ts';
import { parseDuration } from '../base/units.ts';
import type { Scoreboard } from '../plan/validate/index.ts';
import { EXIT } from './cli.ts';
import { type Cli, command, JSON_FLAG, text } from './command.ts';
import { jsonOf, kneesIn, logsIn, textOf } from './validate-data.ts';
import { scoreboardLines } from './validate-text.ts';

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
    if (logs.length > 0) board = { ...board, requests: v.scoreLogs(logs) };
    if (logs.length < 2)
      skipped.push(`request logs: ${logs.length} readable; to predict one from another two are needed`);
  }
  const profiles = ['knees/profiler-a100-80g.vllm.json', 'knees/profiler-a100-80g.distserve.json'] as const;
  if (present('knees', ['knees/attainment_vs_rate.json', ...profiles])) {
    board = { ...board, knees: await kneesIn(dir, profiles) };
  }
  if (present('prefill interference', ['sarathi/yi34b_tp2.json'])) {
    const m = await import('../model/index.ts');
    const on = m.deployment(m.model('yi-34b'), m.accelerator('a100-sxm'), { tp: 2 });
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
  } else for (const line of await scoreboardLines(board, skipped, checks)) this.stdout.line(line);
  this.exit(failed.length > 0 ? EXIT.missed : EXIT.ok);
}
