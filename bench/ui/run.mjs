// What the dashboard costs, measured in a real browser: node bench/ui/run.mjs [requests | RUN]   (default 100000; 1000000 is the long form)
//
// Makes a simulated run (or takes one), serves it, and times in Chromium: the first view, judging again under moved limits, and drawing a
// timeline of 5,000 requests × 500 chunks. Build first (npm run build); needs /usr/bin/chromium. Times are of this machine:
// `load` says how busy it was, and each figure's floor is beside it.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import { chromium } from 'playwright-core';
import { build } from 'vite';

const GIVEN = existsSync(process.argv[2] ?? '') ? resolve(process.argv[2]) : undefined;
const REQUESTS = GIVEN ? undefined : Number(process.argv[2] ?? 100_000);
const ROOT = join(import.meta.dirname, '..', '..');
const DIST = process.env.GOODPUT_DIST ?? join(ROOT, 'dist');
const MAIN = join(DIST, 'cli', 'main.js');
const dir = mkdtempSync(join(tmpdir(), 'goodput-bench-ui-'));
const quantile = (xs, p) => [...xs].sort((a, b) => a - b)[Math.min(xs.length - 1, Math.ceil(p * xs.length) - 1)];
const told = (xs) => ({ median: two(quantile(xs, 0.5)), p95: two(quantile(xs, 0.95)), least: two(Math.min(...xs)) });
/** Moves of a limit that are timed, of each kind. */
const MOVES = 60;
const two = (x) => Number(x.toPrecision(3));
const children = [];

try {
  const sizes = {};
  for (const f of readdirSync(join(DIST, 'ui')).filter((n) => n.endsWith('.js'))) {
    sizes[f] = gzipSync(readFileSync(join(DIST, 'ui', f))).length;
  }
  const served = Object.entries(sizes)
    .filter(([f]) => f !== 'page.js')
    .reduce((sum, [, n]) => sum + n, 0);

  const load = ['--model', 'llama-3.1-8b', '--gpu', 'h100-sxm', '--rate', '30', '--slo', 'ttft=300ms,tpot=14ms'];
  if (!GIVEN) {
    const made = spawnSync(
      process.execPath,
      [MAIN, 'simulate', ...load, '--requests', String(REQUESTS), '--output', 'uniform:20-180', '--out', dir],
      { encoding: 'utf8' },
    );
    if (made.status > 1) throw new Error(made.stderr);
  }
  const id = GIVEN ? basename(GIVEN) : readdirSync(dir)[0];
  const runs = GIVEN ? dirname(GIVEN) : dir;

  const ui = spawn(process.execPath, [MAIN, 'ui', runs, '--port', '0', '--json'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(ui);
  const base = await new Promise((resolve) => ui.stdout.once('data', (d) => resolve(JSON.parse(String(d)).url)));
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage();

  const view = async () => {
    await page.goto('about:blank');
    const began = performance.now();
    await page.goto(`${base}#/run?run=${id}`);
    await page.locator('[data-kpi=attainment]').waitFor();
    const first = performance.now() - began;
    await page.locator('[data-cohort]').waitFor({ timeout: 300_000 });
    await page.locator('.scatter canvas').waitFor({ timeout: 300_000 });
    return { first, whole: performance.now() - began };
  };
  const say = (what) => process.stderr.write(`${what}\n`);
  say('first view');
  const cold = await view();
  const warm = await view();
  const warmer = await view();

  say('moving limits');
  // A key on a limit's line: until the figures of the next frame are painted, as the browser itself tells it (Event Timing).
  await page.evaluate(() => {
    globalThis.events = [];
    new PerformanceObserver((list) => {
      for (const e of list.getEntries()) if (e.name === 'keydown') globalThis.events.push(e.duration);
    }).observe({ type: 'event', durationThreshold: 16, buffered: false });
  });
  const keys = [];
  await page.locator('[aria-label="TTFT limit"]').focus();
  for (let i = 0; i < MOVES; i++) {
    await page.keyboard.press(i % 2 ? 'ArrowLeft' : 'ArrowRight');
    await page.evaluate(() => new Promise((r) => requestAnimationFrame(() => setTimeout(r, 60))));
  }
  // Frames quicker than the threshold are not told; they count as it.
  keys.push(...(await page.evaluate(() => globalThis.events)));
  while (keys.length < MOVES) keys.push(16);
  // A line dragged: of each frame of the pointer until what it changed is painted; and one key after the other without a rest.
  const moves = await page.evaluate(async (n) => {
    const painted = () =>
      new Promise((r) => {
        requestAnimationFrame(() => setTimeout(r));
        setTimeout(r, 5000); // a page that is not shown has no frames
      });
    const judged = [];
    const tell = () => judged.push(Number(document.querySelector('[data-took]')?.dataset.took ?? Number.NaN));
    const grip = document.querySelector('[aria-label="TTFT limit"]');
    const at = grip.getBoundingClientRect();
    const event = (type, x) =>
      new PointerEvent(type, { clientX: x, clientY: at.top + 50, bubbles: true, pointerId: 1, button: 0 });
    const drag = [];
    grip.dispatchEvent(event('pointerdown', at.left));
    for (let i = 0; i < n; i++) {
      const began = performance.now();
      dispatchEvent(event('pointermove', at.left + 3 * (i % 20)));
      await painted();
      drag.push(performance.now() - began);
      tell();
    }
    dispatchEvent(event('pointerup', at.left));
    const took = [];
    for (let i = 0; i < n; i++) {
      const began = performance.now();
      grip.dispatchEvent(new KeyboardEvent('keydown', { key: i % 2 ? 'ArrowLeft' : 'ArrowRight', bubbles: true }));
      await painted();
      took.push(performance.now() - began);
      tell();
    }
    return { took, drag, judged: judged.filter((x) => !Number.isNaN(x)) };
  }, MOVES);

  say('painting');
  // The painter alone, as the pages run it: 5,000 requests × 500 chunks on 1,240 × 560 pixels, put on a canvas.
  const bundled = await build({
    root: ROOT,
    configFile: false,
    logLevel: 'silent',
    build: {
      write: false,
      minify: false,
      lib: { entry: join(ROOT, 'ui', 'timeline', 'index.ts'), formats: ['iife'], name: 'painter' },
    },
  });
  const code = (Array.isArray(bundled) ? bundled[0] : bundled).output[0].code;
  const bench = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage();
  await bench.addScriptTag({ content: `${code};globalThis.painter = painter;` });
  const paint = await bench.evaluate(() => {
    const [n, k, width, height] = [5000, 500, 1240, 560];
    const us = new Uint32Array(n * k);
    const make = (f) => Float64Array.from({ length: n }, (_, r) => f(r));
    let seed = 1;
    const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
    for (let r = 0; r < n; r++) {
      let t = 200_000 + random() * 100_000;
      for (let i = 0; i < k; i++) us[r * k + i] = t += random() < 0.002 ? 300_000 : 15_000 + random() * 10_000;
    }
    const canvas = document.createElement('canvas');
    canvas.width = width;
    canvas.height = height;
    const g = canvas.getContext('2d');
    const image = g.createImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    const into = { stalled: new Uint32Array(width), streaming: new Uint32Array(width) };
    const palette = { background: -1, unsent: 1, waiting: 2, streaming: 3, tick: 4, stall: 5, selected: 6 };
    const outcome = new Uint32Array(n).fill(0xff00ff00);
    const told = {};
    // Arrivals 20 ms apart, the usual; and all within 2.5 s, so that every line is full of ticks.
    for (const [name, apart] of [
      ['spread', 20],
      ['at_once', 0.5],
    ]) {
      const at = (r) => r * apart;
      const rows = {
        scheduled: make(at),
        sent: make((r) => at(r) + 1),
        first: make((r) => at(r) + us[r * k] / 1000),
        ended: make((r) => at(r) + us[r * k + k - 1] / 1000),
        start: Uint32Array.from({ length: n }, (_, r) => r * k),
        end: Uint32Array.from({ length: n }, (_, r) => r * k + k),
        us,
      };
      const began = performance.now();
      const lines = painter.linesOf(rows, height);
      const stalls = painter.findStalls(rows, 200);
      told[`${name}_prepared`] = [performance.now() - began];
      const whole = at(n) + 15_000;
      for (const [zoom, by] of [
        ['', 1],
        ['_zoomed_8', 8],
        ['_zoomed_100', 100],
      ]) {
        const times = [];
        for (let i = 0; i < 200; i++) {
          const scene = {
            width,
            from: (whole - whole / by) / 2,
            to: (whole + whole / by) / 2 - i / 100,
            outcome,
            selected: -1,
          };
          const start = performance.now();
          painter.paint(pixels, lines, stalls, scene, palette, into);
          g.putImageData(image, 0, 0);
          times.push(performance.now() - start);
        }
        told[name + zoom] = times;
      }
    }
    return told;
  });

  say('exporting');
  const html = spawnSync(process.execPath, [MAIN, 'report', join(runs, id), '--format', 'html'], {
    encoding: 'latin1',
    maxBuffer: 2 ** 30,
  });
  console.log(
    JSON.stringify(
      {
        requests: JSON.parse(readFileSync(join(runs, id, 'report.json'), 'utf8')).cohort.offered,
        load: two(loadavg()[0]),
        js_gz_kb: {
          all: two(served / 1000),
          entry: two(sizes['app.js'] / 1000),
          exported: two(sizes['page.js'] / 1000),
        },
        first_view_ms: { cold: two(cold.first), warm: two(Math.min(warm.first, warmer.first)) },
        whole_view_ms: { cold: two(cold.whole), warm: two(Math.min(warm.whole, warmer.whole)) },
        judge_ms: told(moves.judged),
        key_to_paint_ms: told(keys),
        drag_to_frame_ms: told(moves.drag),
        key_after_key_to_frame_ms: told(moves.took),
        paint_5000x500_ms: Object.fromEntries(Object.entries(paint).map(([name, xs]) => [name, told(xs)])),
        exported_mb: two(html.stdout.length / 1e6),
      },
      null,
      2,
    ),
  );
  await browser.close();
} finally {
  for (const c of children) c.kill('SIGTERM');
  rmSync(dir, { recursive: true, force: true });
}
