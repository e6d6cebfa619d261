/** The scoreboard as lines for a terminal. */
import type { Check, Scoreboard } from '../plan/validate/index.ts';

export async function scoreboardLines(
  board: Scoreboard,
  skipped: readonly string[],
  checks: readonly Check[],
): Promise<string[]> {
  const [{ table, wrapText }, { PEERS, RECORDED_ON, RECORDED_ROWS }] = await Promise.all([
    import('../report/text.ts'),
    import('../plan/validate/index.ts'),
  ]);
  const p = (x: number | null | undefined): string =>
    x === null || x === undefined || !Number.isFinite(x) ? '–' : `${(100 * x).toFixed(1)} %`;
  const out: string[] = [];
  const { served, requests, knees, interference } = board;
  if (served) {
    const same = served.read === RECORDED_ROWS;
    const rows = (of: typeof served.kinds) =>
      Object.entries(of).map(([k, e]) => [k, String(e.rows), p(e.tpot), p(e.tpotBias), p(e.ttft), String(e.ttftRows)]);
    const head = ['median absolute error', 'rows', 'TPOT', 'bias', 'TTFT', 'rows'];
    out.push(
      `Served rows: ${served.read} read, ${served.configurations} configurations simulated${same ? ' (these rows were in the fit)' : ''}`,
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
      if (!same && left_out.on !== 'now') continue; // what is on record is of another table
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
    const row = (name: string, e: typeof log.held_blocks) => [
      name,
      p(e.makespan),
      p(e.tpot),
      p(e.prefill),
      p(e.queue),
      p(e.ttft),
      p(e.e2e),
    ];
    out.push(
      `Request log: fitted on ${log.fitted_on}, predicted ${log.predicted ?? 'its other blocks alone'} (${p(log.fit.memory)} of bandwidth, ${p(log.fit.compute)} of FLOPs)`,
      ...table([
        ['error of the mean', 'makespan', 'TPOT', 'first − scheduled', 'queue', 'TTFT', 'E2E'],
        row('blocks of the fit', log.fit_blocks),
        row('blocks held out', log.held_blocks),
        ...(log.other ? [row('the other run', log.other)] : []),
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
