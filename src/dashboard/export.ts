/**
 * One page that holds a run: the code of the dashboard and the data inside, readable without a server or a network. The
 * data stands as text that is no script; the one script is told to the browser by its hash, and nothing else may run.
 */
import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { oneLine } from '../base/errors.ts';
import type { CapacityReport } from '../report/curve-report.ts';
import type { Report } from '../report/report.ts';
import {
  type Chunks,
  encodeChunks,
  encodePacked,
  encodeStamps,
  type Packed,
  type StampColumns,
  thin,
} from './packed/index.ts';
import { readPages } from './pages.ts';
import { printable } from './printable.ts';

export interface Exported {
  readonly report: Report;
  readonly status: string;
  readonly epoch: number;
  readonly packed: Packed;
  /** Of as many operations as are shown in the timeline. */
  readonly chunks: Chunks;
  readonly stamps: StampColumns;
  readonly capacity: CapacityReport | undefined;
}

/** Receipts that are kept: with them a page of 10,000 requests stays below 3 MB. */
export const TICKS = 350_000;

export function exportPage(run: Exported, pages = readPages()): string {
  const { contract } = run.report;
  const cadence = Math.min(contract.limits.gap ?? 1000, 20 * (contract.limits.tpot ?? 50));
  const { chunks, kept, of } = thin(run.chunks, TICKS, Math.max(1, cadence));
  const script = String(pages.get('/page.js')?.body ?? '');
  const style = String(pages.get('/page.css')?.body ?? '');
  if (script === '' || style === '') throw new Error('internal: the pages have no script or no style');
  const told = {
    id: run.report.run.name ?? 'run',
    status: run.status,
    epoch: run.epoch,
    report: run.report,
    capacity: run.capacity ?? null,
    thinned: kept < of ? { kept, of } : null,
    rows: run.packed.rows,
    withChunks: run.chunks.operation.length,
  };
  // Neither an end of the element nor the start of a comment may stand in it.
  const code = script.replace(/<\/(script)/gi, '<\\/$1').replaceAll('<!--', '<\\!--');
  const hash = createHash('sha256').update(code).digest('base64');
  const policy = `default-src 'none'; script-src 'sha256-${hash}'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'`;
  const gz = (bytes: Uint8Array): string => gzipSync(bytes, { level: 9 }).toString('base64');
  return [
    '<!doctype html>',
    '<html lang="en">',
    '<head>',
    '<meta charset="utf-8">',
    `<meta http-equiv="Content-Security-Policy" content="${policy}">`,
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<title>${text(oneLine(told.id, 200))} · goodput</title>`,
    `<style>${style.replace(/<\/(style)/gi, '<\\/$1')}</style>`,
    '</head>',
    '<body>',
    '<div id="app"></div>',
    '<noscript>This page draws its charts with JavaScript, which is switched off here.</noscript>',
    `<script type="application/json" id="goodput-run">${JSON.stringify(told, printable).replaceAll('<', '\\u003c')}</script>`,
    `<script type="text/plain" id="goodput-columns">${gz(encodePacked(run.packed))}</script>`,
    `<script type="text/plain" id="goodput-chunks">${gz(encodeChunks(chunks))}</script>`,
    `<script type="text/plain" id="goodput-stamps">${gz(encodeStamps(run.stamps))}</script>`,
    `<script type="module">${code}</script>`,
    '</body>',
    '</html>',
    '',
  ].join('\n');
}

const text = (s: string): string => s.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
