/** Each page against real run folders, made here by `bench` on the emulator, in a real browser. */
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { formatDuration, trim } from '../../src/base/units.ts';
import { STAMPS } from '../../src/core/record.ts';
import type { MetricReport, Report } from '../../src/report/report.ts';
import { emulate, folderOf, MAIN, type Running, run, type Served, scratch, start } from '../e2e/cli.ts';
import { service } from '../services/service.ts';
import { cells, expectAccessible, kpi, launch, shot, until, type Watched, watched } from './browser.ts';

const HOSTILE = '<img src=x onerror=alert(1)>';
const chromium = service('chromium');
if (chromium === undefined && process.env.CI === 'true')
  throw new Error('chromium is not installed; run test/services/install');

/** An operation of the cohort; which has output is up to the faults that were drawn. */
const GOOD = 40;
const ORDER: readonly string[] = STAMPS;
const percent = (x: number, digits = 4): string => `${trim(100 * x, digits)} %`;

// A dozen processes are started here: on a machine shared with other work that takes its time.
describe.skipIf(chromium === undefined)('the dashboard in a browser', { timeout: 180_000 }, () => {
  const { dir, remove } = scratch();
  const runs = join(dir, 'runs');
  const SLO = ['--slo', 'ttft=400ms,tpot=40ms,gap=150ms,e2e=20s'];
  let server: Served;
  let ui: Running;
  let base: string;
  let browser: Browser;
  let id: string;
  let report: Report;
  let sweep: string;
  const id_of = (folder: string): string => folder.split('/').at(-1) as string;

  beforeAll(async () => {
    mkdirSync(runs, { recursive: true });
    server = await emulate([
      ...['--ttft', '30ms', '--itl', '8ms', '--served-model-name', HOSTILE],
      ...['--fault', 'http-503=6%', '--fault', 'stall=10%:300ms', '--fault', 'early-eof=4%', '--seed', '3'],
    ]);
    [browser] = await Promise.all([
      launch(chromium as string),
      (async () => {
        const common = ['bench', server.url, ...SLO, '--out', runs, '--output', '12', '--input', '16'];
        const main = await run([
          ...common,
          '--rate',
          '40',
          '--duration',
          '3s',
          '--warmup',
          '500ms',
          '--name',
          'main',
          '--json',
        ]);
        id = id_of(folderOf(main));
        const [told, swept] = await Promise.all([
          run(['report', join(runs, id), '--json']),
          run([...common, '--rates', '5,20', '--duration', '1s', '--warmup', '200ms', '--name', 'sweep', '--json']),
        ]);
        report = JSON.parse(told.stdout);
        sweep = id_of(folderOf(swept));
      })(),
    ]);
    // A run that was killed, one whose rows are damaged, one without rows, and one that is no run.
    const from = join(runs, id);
    const copy = (name: string): string => {
      const to = join(runs, name);
      cpSync(from, to, { recursive: true });
      rmSync(join(to, 'report.json'));
      const meta = JSON.parse(readFileSync(join(to, 'run.json'), 'utf8'));
      writeFileSync(join(to, 'run.json'), JSON.stringify({ ...meta, name }));
      return to;
    };
    const cursorOf = (folder: string) => JSON.parse(readFileSync(join(folder, 'cursor.json'), 'utf8'));
    const cut = copy('cut');
    const at = cursorOf(cut).window.start_us + 1000;
    const open = { operation: 99_999, attempt: 0, scheduled_us: at, class: 'default', dispatched_us: at + 100 };
    writeFileSync(join(cut, 'cursor.json'), JSON.stringify({ ...cursorOf(cut), closed: false, pid: 0, open: [open] }));
    const damaged = copy('damaged');
    for (const f of readdirSync(damaged)) if (f.endsWith('.parquet')) truncateSync(join(damaged, f), 300);
    const empty = copy('empty');
    for (const f of readdirSync(empty)) if (f !== 'run.json') rmSync(join(empty, f));
    mkdirSync(join(runs, 'garbage'));
    writeFileSync(join(runs, 'garbage', 'run.json'), '{"schema": "goodput.run/1", "name": "<script>alert(2)</script>"');
    writeFileSync(
      join(from, 'diagnosis.json'),
      JSON.stringify({
        verdict: 'cause found',
        causes: [
          {
            id: 'kv-pressure',
            confidence: 0.82,
            evidence: [
              { text: `KV usage rose ${HOSTILE}`, before: 0.5, after: 0.96 },
              {
                label: 'TTFT, mean',
                before: 90,
                after: 950,
                change: 10.6,
                low: 9.8,
                high: 11.3,
                kind: 'ratio',
                unit: 'ms',
              },
            ],
          },
        ],
        attribution_ms: { queue: 740, prefill: 210, residual: -20 },
        ruled_out: ['cold-start: the process is old'],
        missing: [],
      }),
    );
    ui = start(['ui', runs, '--port', '0', '--json']);
    base = JSON.parse((await ui.said(/^\{.*\}$/m))[0]).url;
  }, 180_000);

  afterAll(async () => {
    await browser?.close();
    ui?.child.kill('SIGTERM');
    await ui?.done;
    await server?.stop();
    remove();
  });

  async function open(hash: string, options: { dark?: boolean } = {}): Promise<Watched> {
    const w = await watched(browser, { origin: base, ...options });
    await w.page.goto(`${base}#${hash}`);
    return w;
  }
  /** The page counts as many good operations as a report. A class without any is not shown. */
  const isGood = (of: Report): string =>
    `(document.querySelector('[data-class=good] b')?.textContent ?? '0') === '${of.cohort.good}'`;
  const done = async ({ page, complaints }: Watched): Promise<void> => {
    expect(complaints).toEqual([]);
    await page.context().close();
  };

  it('lists runs with what became of them, finds, tags, and chooses by keyboard', async () => {
    const w = await open('/runs');
    const { page } = w;
    const row = page.locator(`tr[data-run="${id}"]`);
    await row.waitFor();
    await page.screenshot();
    expect(await row.innerText()).toContain(HOSTILE);
    expect(await row.innerText()).toContain(percent(report.attainment.value as number, 3));
    expect(await page.locator('tr[data-run="cut"]').innerText()).toMatch(/cut/);
    expect(await page.locator('tr[data-run="garbage"]').innerText()).toMatch(/corrupt[\s\S]*not valid JSON/);
    await expectAccessible(page, 'Runs');
    await shot(page, 'runs-light');

    await page.getByRole('button', { name: 'Tag main' }).click();
    await page.keyboard.type('nightly');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Take away tag nightly' }).waitFor();
    await page.keyboard.press('Escape');
    await page.locator('h1').click();
    await page.keyboard.press('/');
    await page.keyboard.type('nightly');
    await until(page, "document.querySelectorAll('tr[data-run]').length === 1");
    await until(page, "location.hash.includes('q=nightly')");
    await page.locator('input[type=search]').fill('');
    await page.getByRole('checkbox', { name: 'Choose main' }).focus();
    await page.keyboard.press('Space');
    await page.getByRole('checkbox', { name: 'Choose cut' }).focus();
    await page.keyboard.press('Space');
    await page.getByRole('button', { name: /^Compare 2/ }).click();
    await until(page, 'document.querySelectorAll(\'[aria-label="Figures of the runs"] tbody tr\').length > 8');
    const figures = await cells(page, 'Figures of the runs');
    expect(figures.find((r) => r[0] === 'attainment')?.[1]).toBe(percent(report.attainment.value as number));
    await expectAccessible(page, 'Compare');
    await shot(page, 'compare-light');
    await done(w);
  });

  it('shows a run with the figures of report --json', async () => {
    const w = await open(`/run?run=${id}`);
    const { page } = w;
    await page.locator('.scatter canvas').waitFor();
    const a = report.attainment;
    expect(await kpi(page, 'attainment')).toBe(percent(a.value as number));
    expect(await page.locator('[data-kpi=attainment] .more').innerText()).toBe(
      `95 %: ${percent(a.low as number, 3)} to ${percent(a.high as number, 3)}`,
    );
    expect(await kpi(page, 'goodput')).toBe(`${trim(report.goodput_rps as number, 4)}/s`);
    expect(await kpi(page, 'throughput')).toBe(`${trim(report.throughput_tps as number, 4)} tok/s`);
    const ledger = await page
      .locator('[data-cohort] [data-class]')
      .evaluateAll((list) =>
        (list as unknown as { dataset: { class: string }; querySelector(s: string): { textContent: string } }[]).map(
          (el) => [el.dataset.class, Number(el.querySelector('b').textContent.replace(/,/g, ''))] as const,
        ),
      );
    const want = Object.entries(report.cohort)
      .filter(([k, n]) => !['offered', 'window_s', 'excluded'].includes(k) && n !== 0)
      .map(([k, n]) => [k.replace('_', '-'), n]);
    expect(Object.fromEntries(ledger)).toEqual(Object.fromEntries(want));
    expect(ledger.reduce((sum, [, n]) => sum + n, 0)).toBe(report.cohort.offered);
    for (const [limit, n] of Object.entries(report.misses)) {
      expect(await page.locator(`[data-miss="${limit}"]`).innerText()).toBe(String(n));
    }
    const table = await cells(page, 'Quantiles over measured values and over offered operations');
    for (const [word, key] of [
      ['TTFT', 'ttft_ms'],
      ['TPOT', 'tpot_ms'],
      ['E2E', 'e2e_ms'],
      ['max gap', 'max_gap_ms'],
    ] as const) {
      const m = report.metrics[key];
      const row = table.find((r) => r[0] === word);
      if (!m) expect(row).toBeUndefined();
      else {
        const q = (x: 'p50' | 'p99'): string => `${formatDuration(m[x])}${m.unsupported.includes(x) ? '*' : ''}`;
        expect([row?.[1], row?.[3], row?.[6]]).toEqual([String(m.count), q('p50'), q('p99')]);
      }
    }
    // Moved to where it was: the page's own verdicts are the report's.
    await page.locator('summary', { hasText: 'Table: TTFT × TPOT' }).click();
    const quads = (await cells(page, 'TTFT × TPOT')).map((r) => Number(r[1]));
    expect(quads.reduce((x, y) => x + y, 0)).toBe(report.cohort.offered);
    await expectAccessible(page, 'Run');
    await shot(page, 'run-light');
    await done(w);
  });

  it('judges again as report --slo does, by typing, by keyboard, by dragging, and links to it', async () => {
    const w = await open(`/run?run=${id}`);
    const { page } = w;
    await page.locator('.scatter canvas').waitFor();
    const type = async (term: string, text: string): Promise<void> => {
      await page.locator(`#term-${term}`).fill(text);
      await page.keyboard.press('Enter');
    };
    // Limits that part this run's requests, however quick the machine was.
    const [ttft, tpot] = (['ttft_ms', 'tpot_ms'] as const).map((m, k) =>
      Number((report.metrics[m] as MetricReport)[k === 0 ? 'p50' : 'p90'].toPrecision(3)),
    ) as [number, number];
    await type('gap', '');
    await type('ttft', `${ttft} ms`);
    await type('tpot', String(tpot));
    const slo = `ttft=${ttft}ms,tpot=${tpot}ms,e2e=20s`;
    const other = JSON.parse((await run(['report', join(runs, id), '--slo', slo, '--json'])).stdout) as Report;
    await until(page, isGood(other));
    expect(await kpi(page, 'attainment')).toBe(percent(other.attainment.value as number));
    expect(await page.locator('[data-kpi=attainment] .more').innerText()).toContain(
      `${percent(other.attainment.low as number, 3)} to ${percent(other.attainment.high as number, 3)}`,
    );
    expect(await page.locator('[data-miss=ttft]').innerText()).toBe(String(other.misses.ttft));
    await until(page, "location.hash.includes('c.gap=none')");

    // The address gives the same view again.
    const again = await watched(browser, { origin: base });
    await again.page.goto(page.url());
    await until(again.page, isGood(other));
    await done(again);

    await page.getByRole('slider', { name: 'TTFT limit' }).focus();
    await page.keyboard.press('ArrowRight');
    await until(page, `location.hash.includes('c.ttft=${Number((1.02 * ttft).toPrecision(3))}')`);
    const looser = `Number(new URLSearchParams(location.hash.split('?')[1]).get('c.tpot')) > ${tpot}`;
    const grip = page.getByRole('slider', { name: 'TPOT limit' });
    const at = await grip.boundingBox();
    if (!at) throw new Error('the TPOT line is not on the page');
    await page.mouse.move(at.x + at.width / 2, at.y + at.height / 2);
    await page.mouse.down();
    await page.mouse.move(at.x + at.width / 2, at.y - 60, { steps: 4 });
    await page.mouse.up();
    await until(page, looser);

    await page.locator('#save-as').fill('loose');
    await page.getByRole('button', { name: 'Save this contract' }).click();
    await page.getByRole('button', { name: 'loose', exact: true }).waitFor();
    await page.getByRole('button', { name: "Back to the run's own" }).click();
    await until(page, isGood(report));
    await page.getByRole('button', { name: 'loose', exact: true }).click();
    await until(page, looser);
    await type('ttft', 'soon');
    expect(await page.locator('#term-ttft').getAttribute('aria-invalid')).toBe('true');
    await done(w);
  });

  it('draws the requests, walks them by keyboard, and opens one', async () => {
    const w = await open(`/requests?run=${id}`, { dark: true });
    const { page } = w;
    await page.locator('.timeline canvas').first().waitFor();
    const ticks = "document.querySelector('.area canvas').dataset.paint !== undefined";
    await until(page, ticks);
    const group = page.locator('.timeline');
    await group.focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await page.locator('#request').waitFor();
    await page.locator('[aria-label="Stamps"] tbody tr').first().waitFor();
    await until(page, '/op=\\d+/.test(location.hash)');
    const stamps = (await cells(page, 'Stamps')).map((r) => r[0]);
    expect(stamps[0]).toBe('scheduled');
    expect(stamps.at(-1)).toBe('ended');
    await page.keyboard.press('+');
    await until(page, "location.hash.includes('from=')");
    await page.keyboard.press('0');
    await until(page, "!location.hash.includes('from=')");
    await expectAccessible(page, 'Requests, dark');
    await shot(page, 'requests-dark');

    await page.locator('select[name=outcome]').selectOption('rejected');
    const count = (await page.locator('[data-rows]').innerText()).split(' of ')[1];
    const all = JSON.parse((await run(['report', join(runs, id), '--json'])).stdout) as Report;
    // Warm-up is drawn too, so there may be more than the cohort's.
    expect(Number(count?.replace(/,/g, ''))).toBeGreaterThanOrEqual(all.cohort.rejected);
    await page.locator('label.check input').check();
    await until(page, `document.querySelector('[data-rows]').textContent.endsWith('of ${all.cohort.rejected}')`);
    await page.keyboard.press('Escape');
    await done(w);
  });

  it('puts a sweep and single runs on one capacity chart', async () => {
    const w = await open(`/capacity?run=${sweep}&with=${id}`);
    const { page } = w;
    await page.locator('svg.curve').first().waitFor();
    const told = JSON.parse(readFileSync(join(runs, sweep, 'capacity.json'), 'utf8'));
    const rows = await cells(page, `Runs of ${sweep}`);
    expect(rows.map((r) => r[0])).toEqual(told.probes.map((p: { rate: number }) => `${trim(p.rate, 4)}/s`));
    expect(rows.map((r) => r[3])).toEqual(told.probes.map((p: { attainment: number }) => percent(p.attainment, 3)));
    await page.locator('summary', { hasText: 'Table: Attainment over rate' }).click();
    const points = await cells(page, 'Attainment over rate');
    expect(points.some((r) => r[0] === '40/s' && r[2] === percent(report.attainment.value as number))).toBe(true);
    // What the run says stands there already. Its server names no model of the catalogue, so that is asked for.
    expect(await page.locator('#num-input').inputValue()).toBe('16');
    expect(await page.locator('#num-output').inputValue()).toBe('12');
    expect(await page.locator('#num-ttft').inputValue()).toBe('400');
    expect(await page.locator('#pick-model').inputValue()).toBe('');
    await page.locator('#pick-model').selectOption('llama-3.1-8b');
    await page.locator('#pick-gpu').selectOption('h100-sxm');
    await page.getByRole('button', { name: 'Simulate at these rates' }).click();
    await until(page, "document.body.textContent.includes('600 simulated requests a rate')");
    await until(
      page,
      "[...document.querySelectorAll('.key')].some((l) => l.textContent.includes('model: llama-3.1-8b'))",
    );
    expect(await page.locator('svg.curve').first().innerHTML()).toContain('stroke-dasharray="6 4"');
    await expectAccessible(page, 'Capacity');
    await shot(page, 'capacity-light');
    await done(w);
  });

  it('plans with the numbers of goodput model', async () => {
    const w = await open('/plan?tpot=10&basis=ideal', { dark: true });
    const { page } = w;
    await page.locator('[data-kpi=largest]').waitFor();
    const model = JSON.parse(
      (await run(['model', '--model', 'llama-3.1-8b', '--gpu', 'h100-sxm', '--ideal', '--tpot', '10ms', '--json']))
        .stdout,
    );
    expect(await kpi(page, 'largest')).toBe(String(model.largest_batch));
    expect(await kpi(page, 'largest')).toBe('64');
    expect(await kpi(page, 'pool')).toBe('200');
    await page.locator('#plan-kv').selectOption('fp8');
    await until(page, "document.querySelector('[data-kpi=largest] .value').textContent === '129'");
    await page.locator('#plan-tpot').fill('');
    await until(page, "document.querySelector('[data-kpi=largest] .more').textContent.includes('KV pool binds')");
    await page.locator('#plan-tp').selectOption('16');
    await page.locator('.problem').waitFor({ state: 'detached' });
    await page.locator('#plan-tp').selectOption('1');
    await page.locator('#plan-tpot').fill('12');
    await page.getByRole('button', { name: 'Simulate' }).click();
    await until(page, "document.body.textContent.includes('500 requests a rate')");
    await expectAccessible(page, 'Plan, dark');
    await shot(page, 'plan-dark');
    await done(w);
  });

  it('follows a running bench second by second, to its end', async () => {
    const w = await open('/live');
    const { page } = w;
    await page.locator('.empty').waitFor();
    const bench = start([
      'bench',
      server.url,
      ...SLO,
      '--out',
      runs,
      '--rate',
      '20',
      '--duration',
      '4s',
      '--warmup',
      '500ms',
      '--output',
      '8',
      '--input',
      '16',
      '--name',
      'alive',
    ]);
    const live = page.locator('[data-live]');
    await live.waitFor({ timeout: 20_000 });
    await until(page, "parseInt(document.querySelector('[data-kpi=live-offered] .value').textContent) > 20");
    await expectAccessible(page, 'Live');
    await shot(page, 'live-light');
    await until(page, "document.querySelector('[data-live] .badge')?.textContent === 'complete'");
    const ended = await bench.done;
    const told = JSON.parse((await run(['report', folderOf(ended), '--json'])).stdout) as Report;
    const offered = Number((await kpi(page, 'live-offered')).replace(/,/g, ''));
    expect(offered).toBeGreaterThanOrEqual(told.cohort.offered);
    // Nothing is lost on the way, not even the rows that were compacted at the end.
    expect(await page.locator('[data-kpi=live-good] .more').textContent()).toContain(`of ${offered} that ended`);
    await done(w);
  });

  it("follows a proxy's /live", async () => {
    const args = [
      '--upstream',
      server.url,
      '--listen',
      '127.0.0.1:0',
      '--admin',
      '127.0.0.1:0',
      '--out',
      join(dir, 'px'),
    ];
    const proxy = start(['proxy', ...args, ...SLO, '--json']);
    const said = JSON.parse((await proxy.said(/^\{"listening".*$/m))[0]) as { listening: string; admin: string };
    const other = start(['ui', runs, '--port', '0', '--json', '--live', `${said.admin}/live`]);
    const url = JSON.parse((await other.said(/^\{.*\}$/m))[0]).url as string;
    const w = await watched(browser, { origin: url });
    await w.page.goto(`${url}#/live`);
    await w.page.locator('[data-proxy]').waitFor();
    const statuses: number[] = [];
    for (let i = 0; i < 6; i++) {
      const answer = await fetch(`${said.listening}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          model: HOSTILE,
          stream: true,
          max_tokens: 5,
          messages: [{ role: 'user', content: 'hi' }],
        }),
      });
      statuses.push(answer.status);
      await answer.text().catch(() => {}); // faults are drawn: a broken stream counts like a whole one
    }
    expect(statuses).toContain(200);
    await until(w.page, "document.querySelector('[data-kpi=proxy-offered] .value').textContent === '6'");
    const snapshot = (await (await fetch(`${said.admin}/live`)).json()) as {
      total: { outcomes: Record<string, number> };
    };
    const { outcomes } = snapshot.total;
    expect(outcomes.cancelled, JSON.stringify(outcomes)).toBe(0);
    await until(
      w.page,
      `document.querySelector('[data-kpi=proxy-offered] .more').textContent === '${outcomes.good} good'`,
    );
    await expectAccessible(w.page, 'Live, of a proxy');
    await shot(w.page, 'live-proxy-light');
    // Gone, it is said to be gone; back to nothing else.
    proxy.child.kill('SIGTERM');
    await proxy.done;
    await w.page.locator('.problem', { hasText: 'does not answer' }).waitFor();
    await done(w);
    other.child.kill('SIGTERM');
    await other.done;
  });

  it('shows a plan that was kept beside the runs', async () => {
    const w = await open('/plan');
    const { page } = w;
    await page.locator('.wait', { hasText: 'goodput plan' }).waitFor();
    const plan = {
      schema: 'goodput.plan/1',
      model: 'llama-3.1-8b',
      traffic: `60 requests/s ${HOSTILE}`,
      rows: [
        { gpu: 'h100-sxm', tp: 1, weights: 'fp8', kv: 'bf16', cap: 310, cap_bound: 'tpot', rate: 70.7, rate_low: 70.7 },
        { gpu: 'a100-sxm', tp: 2, weights: 'bf16', kv: 'bf16', cap: 80, cap_bound: 'tpot', rate: 16 },
      ].map((r, i) => ({
        ...r,
        gpus: 2 + i,
        cost_per_hour: null,
        ttft_p90_ms: 150 + i,
        tpot_p90_ms: 27,
        frontier: i === 0,
      })),
    };
    writeFileSync(join(runs, 'plan.json'), JSON.stringify(plan));
    await page.reload();
    await page.locator('h2', { hasText: 'Stored plan: llama-3.1-8b' }).waitFor();
    const rows = await cells(page, 'Rows of the plan');
    expect(rows.map((r) => [r[0], r[1], r[4]])).toEqual([
      ['1 × h100-sxm fp8', 'yes', '2'],
      ['2 × a100-sxm bf16', '', '3'],
    ]);
    await page.getByRole('button', { name: '1 × h100-sxm fp8', exact: true }).click();
    expect(await page.locator('#plan-weights').inputValue()).toBe('fp8');
    await expectAccessible(page, 'Plan, with a stored one');
    await shot(page, 'plan-stored-light');
    await done(w);
  });

  it('is a page of a narrow window, too: nothing stands out of it', async () => {
    const w = await open('/runs');
    const { page } = w;
    await page.setViewportSize({ width: 380, height: 800 });
    for (const view of ['runs', 'run', 'requests', 'capacity', 'plan', 'live', 'diagnosis']) {
      await page.goto(`${base}#/${view}?run=${view === 'capacity' ? sweep : id}`);
      await page.locator('h1').first().waitFor();
      await until(page, 'document.documentElement.scrollWidth <= innerWidth');
      await shot(page, `narrow-${view}`);
    }
    await done(w);
  });

  it('shows a diagnosis as text, whatever it says', async () => {
    const w = await open(`/diagnosis?run=${id}`);
    const { page } = w;
    await page.locator('.cause').waitFor();
    expect(await page.locator('.cause').innerText()).toContain(HOSTILE);
    const evidence = page.locator('.evidence tbody tr', { hasText: 'TTFT, mean' });
    expect(await evidence.innerText()).toMatch(/90 ms\s+950 ms\s+10.6 \(9.8 to 11.3\)/);
    expect(await evidence.locator('svg .point').count()).toBe(1);
    expect(await page.locator('.waterfall').innerHTML()).toContain('740 ms');
    await expectAccessible(page, 'Diagnosis');
    await shot(page, 'diagnosis-light');
    await done(w);
  });

  it('says what is missing of runs that were cut, damaged, empty, or are none', async () => {
    const cut = await open('/run?run=cut', { dark: true });
    await cut.page.locator('.scatter canvas').waitFor();
    expect(await cut.page.locator('[data-cohort]').innerText()).toMatch(/1 undecided/);
    expect(await cut.page.locator('h1').innerText()).toMatch(/cut/);
    await shot(cut.page, 'run-cut-dark');
    await cut.page.goto(`${base}#/run?run=damaged`);
    await cut.page
      .locator('.notes li', { hasText: 'cannot be read' })
      .or(cut.page.locator('.warn', { hasText: 'cannot be read' }))
      .first()
      .waitFor();
    await cut.page.goto(`${base}#/run?run=empty`);
    await cut.page.locator('.wait', { hasText: 'holds no requests' }).waitFor();
    await expectAccessible(cut.page, 'an empty run');
    await cut.page.goto(`${base}#/requests?run=empty`);
    await cut.page.locator('.wait', { hasText: 'holds no requests' }).waitFor();
    await cut.page.goto(`${base}#/run?run=garbage`);
    await cut.page.locator('.problem', { hasText: 'not valid JSON' }).waitFor();
    await cut.page.goto(`${base}#/run?run=nowhere`);
    await cut.page.locator('.problem', { hasText: 'no such run' }).waitFor();
    await done(cut);
  });

  it('exports the same views into one file that needs no server', async () => {
    const out = await run(['report', join(runs, sweep, readProbe(sweep)), '--format', 'html']);
    expect(out.stdout).toMatch(/Content-Security-Policy/);
    const main = await run(['report', join(runs, id), '--format', 'html']);
    const file = join(dir, 'report.html');
    writeFileSync(file, main.stdout);
    expect(main.stdout).not.toContain(HOSTILE);
    const w = await watched(browser, { origin: 'file:' });
    const { page } = w;
    await page.goto(`file://${file}`);
    await page.locator('.scatter canvas').waitFor();
    expect(await kpi(page, 'attainment')).toBe(percent(report.attainment.value as number));
    await expectAccessible(page, 'an exported page');
    await shot(page, 'export-light');
    await page.locator('#term-ttft').fill('45');
    await page.keyboard.press('Enter');
    await page.locator('.badge.what-if').waitFor();
    await page.locator('nav a', { hasText: 'Requests' }).click();
    await page.locator('.area canvas').waitFor();
    await page.locator('.timeline').focus();
    await page.keyboard.press('ArrowDown');
    await page.locator('#request').waitFor();
    expect(await page.locator('nav a').allInnerTexts()).toEqual(['Run', 'Requests', 'Capacity']);
    // Its stamps are in the page: those that the server tells, of a request that had output.
    const row = (op: number): string => `#/requests?op=${op}`;
    const told = (await (await fetch(`${base}api/report?run=${id}`)).json()) as { report: Report };
    expect(told.report.cohort.offered).toBe(report.cohort.offered);
    const detail = (await (await fetch(`${base}api/request?run=${id}&operation=${GOOD}`)).json()) as {
      record: { stamps: Record<string, number>; timeline: { at: number[] } };
    };
    await page.goto(`file://${file}${row(GOOD)}`);
    await page.locator('[aria-label="Stamps"] tbody tr').first().waitFor();
    const { stamps } = detail.record;
    expect((await cells(page, 'Stamps')).map((r) => [r[0], r[1]])).toEqual(
      Object.entries(stamps)
        .sort((a, b) => ORDER.indexOf(a[0]) - ORDER.indexOf(b[0]))
        .map(([name, t]) => [name, `${t.toFixed(3)} ms`]),
    );
    expect(await page.locator('svg.gaps rect').count()).toBe(detail.record.timeline.at.length - 1);
    await done(w);
    // The sweep's curve goes with its runs.
    writeFileSync(file, out.stdout);
    const c = await watched(browser, { origin: 'file:' });
    await c.page.goto(`file://${file}#/capacity`);
    await c.page.locator('svg.curve').first().waitFor();
    await done(c);
  });

  const readProbe = (of: string): string => join('probes', readdirSync(join(runs, of, 'probes'))[0] as string);

  it('shows an empty folder, prints a line without a stack for none, and is quick to help', async () => {
    const none = join(dir, 'none');
    mkdirSync(none);
    const other = start(['ui', none, '--port', '0', '--json']);
    const url = JSON.parse((await other.said(/^\{.*\}$/m))[0]).url;
    const w = await watched(browser, { origin: url });
    await w.page.goto(url);
    await w.page.locator('.empty').waitFor();
    await w.page.keyboard.press('?');
    await w.page.locator('dialog[open]').waitFor();
    await expectAccessible(w.page, 'an empty list, with help');
    await done(w);
    other.child.kill('SIGTERM');
    expect((await other.done).code).toBe(0);
    const missing = await run(['ui', join(dir, 'nowhere')]);
    expect(missing.code).toBe(2);
    expect(missing.stderr.trim().split('\n')).toHaveLength(1);
    expect(MAIN).toMatch(/main\.js$/);
  });
});
