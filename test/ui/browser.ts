/** The pages in a real browser, on the built command. What runs in the page is given as text: no DOM types in here. */
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { expect } from 'vitest';

const SHOTS = join(import.meta.dirname, '..', '..', 'test-artifacts', 'ui');
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export const launch = (path: string): Promise<Browser> =>
  chromium.launch({ executablePath: path, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });

export interface Watched {
  readonly page: Page;
  /** What the page complained of, and what it asked of others; empty is right. */
  readonly complaints: string[];
}

export async function watched(
  browser: Browser,
  options: { readonly dark?: boolean; readonly origin?: string } = {},
): Promise<Watched> {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 900 },
    colorScheme: options.dark ? 'dark' : 'light',
    reducedMotion: 'reduce',
  });
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (e) => complaints.push(`error: ${e.message}`));
  page.on('dialog', (d) => {
    complaints.push(`dialog: ${d.message()}`);
    void d.dismiss();
  });
  page.on('console', (m) => {
    // An answer of 404 or 422 is shown by the page in words; the browser notes it all the same.
    if (m.type() === 'error' && !/status of 4\d\d/.test(m.text())) complaints.push(`console: ${m.text()}`);
  });
  page.on('request', (r) => {
    const url = r.url();
    if (!/^(data|blob|file):/.test(url) && options.origin && !url.startsWith(options.origin))
      complaints.push(`asked ${url}`);
  });
  return { page, complaints };
}

/** No finding of axe-core that is serious or critical. */
export async function expectAccessible(page: Page, name: string): Promise<void> {
  await page.evaluate(AXE);
  const found = (await page.evaluate(
    `axe.run(document, { resultTypes: ['violations'] }).then((r) => r.violations
       .filter((v) => v.impact === 'serious' || v.impact === 'critical')
       .map((v) => v.id + ': ' + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160) + ' ' + (n.any[0]?.message ?? '')).join(' | ')))`,
  )) as string[];
  expect(found, `axe-core on ${name}`).toEqual([]);
}

export async function shot(page: Page, name: string): Promise<void> {
  mkdirSync(SHOTS, { recursive: true });
  await page.screenshot({ path: join(SHOTS, `${name}.png`), fullPage: true });
}

/** Waits until `condition`, a script's text, holds in the page. Asked from outside: the page's policy lets nothing be evaluated in it. */
export async function until(page: Page, condition: string): Promise<void> {
  await expect.poll(() => page.evaluate(condition), { timeout: 90_000, interval: 50, message: condition }).toBe(true);
}

/** The text of the figure that a page names `kpi`. */
export const kpi = (page: Page, name: string): Promise<string> =>
  page.locator(`[data-kpi="${name}"] .value`).innerText();

/** A table as rows of texts, its details opened where it is folded away. */
export async function cells(page: Page, label: string): Promise<string[][]> {
  const rows = page.locator(`[role=region][aria-label="${label}"] tbody tr`);
  return rows.evaluateAll((list) =>
    (list as unknown as { children: ArrayLike<{ textContent: string }> }[]).map((row) =>
      Array.from(row.children, (c) => c.textContent.trim()),
    ),
  );
}
