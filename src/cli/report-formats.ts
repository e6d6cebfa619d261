/** `goodput report RUN --format csv|md|html|vllm|guidellm|aiperf`: the records again, for what is not a report of ours. */
import type { Contract } from '../core/contract.ts';
import type { Report } from '../report/index.ts';
import type { RunReader } from '../store/index.ts';
import type { Cli } from './cli.ts';

/** Bytes of rows gathered before they are written. */
const CHUNK = 64 * 1024;

export async function writeFormat(
  cli: Cli,
  format: 'csv' | 'md' | 'html' | 'vllm' | 'guidellm' | 'aiperf',
  run: RunReader,
  report: Report,
  contract: Contract,
): Promise<void> {
  if (format === 'html') {
    const { reportHtml } = await import('./report-html.ts');
    cli.stdout.write(await reportHtml(run, report, contract));
    return;
  }
  const { csvHeader, csvRow, reportMarkdown, SeenReducer, TOOL_FORMATS } = await import('../report/index.ts');
  if (format === 'md') {
    cli.stdout.write(reportMarkdown(report));
    return;
  }
  const { windowOf } = await import('./run-report.ts');
  const window = await windowOf(run);
  if (format === 'csv') {
    let rows = csvHeader();
    await run.operations((record) => {
      rows += csvRow(record, contract, window);
      if (rows.length > CHUNK) {
        cli.stdout.write(rows);
        rows = '';
      }
    });
    cli.stdout.write(rows);
    return;
  }
  const reducer = new SeenReducer(window);
  await run.operations((record) => reducer.add(record));
  const { seen, unsent } = reducer.finish();
  if (unsent > 0) cli.stderr.line(`${unsent} operations were never sent; ${format} would not know of them`);
  const shape = TOOL_FORMATS[format]({ contract, report, seen, name: report.run.name ?? run.folder });
  cli.stdout.write(`${JSON.stringify(shape, null, format === 'vllm' ? 0 : 2)}\n`);
}
