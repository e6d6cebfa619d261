/** `bench --scrape`: an engine's own metrics beside the records of its load, and never in the way of either. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { emulate, folderOf, run, type Served, scratch } from './cli.ts';

const LOAD = ['--slo', 'ttft=20s,e2e=30s', '--rate', '20', '--duration', '2s', '--warmup', '0.5s', '--output', '8'];
const { dir, remove } = scratch();
let server: Served;
/** Accepts scrapes and answers none. */
let silent: Server;
let silentUrl: string;

beforeAll(async () => {
  server = await emulate(['--ttft', '30ms', '--itl', '10ms']);
  silent = createServer(() => {}).listen(0, '127.0.0.1');
  await new Promise((resolve) => silent.once('listening', resolve));
  silentUrl = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
});
afterAll(async () => {
  await server?.stop();
  silent.closeAllConnections();
  silent.close();
  remove();
});

describe('bench --scrape', () => {
  it('keeps the scrapes in the run folder, which merge reads; a server that never answers is counted and said', async () => {
    const scrape = ['--scrape', `${server.url},${silentUrl}`, '--scrape-every', '500ms'];
    const done = await run(['bench', server.url, ...LOAD, ...scrape, '--out', dir, '--json']);
    expect([0, 3]).toContain(done.code);
    const report = JSON.parse(done.stdout);
    expect(report.cohort.good).toBe(report.cohort.offered);
    const name = (url: string) => new URL(url).host;
    expect(done.stderr).toMatch(new RegExp(`Scrape +${name(server.url)}: [2-9]\\d* scrapes\\n`));
    expect(done.stderr).toMatch(new RegExp(`Scrape +${name(silentUrl)}: 0 scrapes, \\d+ failed \\(no complete answer`));
    const folder = folderOf(done);
    const merged = await run(['merge', '--json', folder]);
    const document = JSON.parse(merged.stdout);
    // The window begins before the first request and ends after the last: warm-up and cool-down are in it.
    expect(document.ttft.count).toBeGreaterThanOrEqual(report.cohort.offered);
    expect(document.ttft.meaning.engine).toBe('vLLM');
    expect(document.replicas[0].window.end).toBeGreaterThan(document.replicas[0].window.start);
    expect(document.errors.join()).toMatch(/scrapes failed/);
    const again = await run(['report', folder, '--json']);
    expect(JSON.parse(again.stdout).cohort).toEqual(report.cohort);
  });

  it('refuses what cannot be scraped before anything is sent', async () => {
    for (const [args, why] of [
      [['--scrape', 'ftp://x'], /ftp: is not scraped/],
      [['--scrape', server.url, '--scrape-every', '1ms'], /--scrape-every: 1ms is too often/],
      [['--scrape-every', '1s'], /--scrape-every: it needs --scrape/],
      [['--scrape', server.url, '--rates', '1,2'], /--scrape: it goes with one server and one rate/],
    ] as const) {
      const done = await run(['bench', server.url, ...LOAD, ...args, '--out', dir]);
      expect(done.code).toBe(2);
      expect(done.stderr).toMatch(why);
    }
  });
});
