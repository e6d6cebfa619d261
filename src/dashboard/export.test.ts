import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CONTRACT_DEFAULTS } from '../core/contract.ts';
import type { Report } from '../report/report.ts';
import { exportPage } from './export.ts';
import { ChunksBuilder, decodeStamps, encodeStamps, Packer, StampsBuilder, stampsOf } from './packed/index.ts';
import { readPages } from './pages.ts';

const contract = { ...CONTRACT_DEFAULTS, name: 'c', limits: { ttft: 500 } };

function page(name: string, code = 'run();'): string {
  const dir = mkdtempSync(join(tmpdir(), 'goodput-export-'));
  try {
    writeFileSync(join(dir, 'index.html'), '');
    writeFileSync(join(dir, 'page.js'), code);
    writeFileSync(join(dir, 'page.css'), 'body{}');
    const report = { run: { name }, contract, notes: [{ text: name }] } as unknown as Report;
    return exportPage(
      {
        report,
        status: 'complete',
        epoch: 0,
        packed: new Packer(undefined, contract).finish(),
        chunks: new ChunksBuilder().finish(),
        stamps: new StampsBuilder().finish(),
        capacity: undefined,
      },
      readPages(dir),
    );
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** What a browser takes for the text of the element: up to the first end tag, whatever stands in it. */
function element(html: string, id: string): string {
  const at = html.indexOf('>', html.indexOf(`id="${id}"`)) + 1;
  const end = /<\/script/i.exec(html.slice(at))?.index as number;
  return html.slice(at, at + end);
}

describe('an exported page', () => {
  it.each([
    '</script><script>alert(1)</script>',
    '</SCRIPT\n><svg onload=alert(1)>',
    '<!--<script>',
    '-->',
    ']]>',
    '\u2028\u2029"\\',
    '<img src=x onerror=alert(1)>',
    '&lt;/script&gt;',
  ])('holds %j as data that cannot leave its element', (name) => {
    const html = page(name);
    const told = element(html, 'goodput-run');
    expect(told).not.toMatch(/</);
    expect(JSON.parse(told).report.run.name).toBe(JSON.parse(told).report.notes[0].text);
    expect(JSON.parse(told).report.run.name).toContain(name.trim().slice(0, 3).trim());
    // As many scripts as are its own.
    expect(html.match(/<script/gi)).toHaveLength(5);
    expect(html.match(/<\/script/gi)).toHaveLength(5);
    expect(html).not.toMatch(/<img|<svg|<!--/);
  });

  it('lets one script run, known by its hash, which holds no end of its element', () => {
    const html = page('x', 'const a = "</script>", b = "</SCRIPT>", c = "<!--";');
    expect(html).toMatch(/script-src 'sha256-[\w+/=]+';/);
    expect(html.match(/<\/script/gi)).toHaveLength(5);
    expect(html).not.toContain('<!--');
  });
});

describe('stamps of an exported page', () => {
  it('come back on the microsecond grid, and what is missing stays so', () => {
    const builder = new StampsBuilder();
    builder.add(7, { scheduled: 10, connected: 10.5, sent: 10.75, firstEvent: 30.001 });
    builder.add(9, { scheduled: 20 });
    const back = decodeStamps(encodeStamps(builder.finish()).buffer);
    const packer = new Packer(undefined, contract).finish();
    const row = {
      ...packer,
      operation: Float64Array.of(7),
      scheduled: Float64Array.of(10),
      lag: Float64Array.of(0.25),
    };
    const one = { ...row, ttft: Float64Array.of(20.001), e2e: Float64Array.of(Number.NaN) };
    expect(stampsOf(one, 0, back)).toEqual({
      scheduled: 10,
      dispatched: 10.25,
      connected: 10.5,
      sent: 10.75,
      firstEvent: 30.001,
      firstOutput: 30.001,
    });
    expect(() => decodeStamps(new ArrayBuffer(4))).toThrow(/damaged/);
  });
});
