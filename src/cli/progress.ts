/** Progress of a running measurement on stderr: one redrawn line on a terminal, a plain line now and then elsewhere. */
import { formatDuration, type Millis } from '../base/units.ts';
import type { Progress } from '../drive/drive.ts';
import type { Cli, Terminal } from './cli.ts';

const REDRAW: Millis = 250;
const PLAIN: Millis = 5000;

export interface ProgressDisplay {
  stop(): void;
}

export function showProgress(terminal: Terminal, read: () => Progress): ProgressDisplay {
  let drawn = false;
  const draw = (): void => {
    const text = progressLine(read());
    if (terminal.isTTY) {
      terminal.write(`\r\u001b[2K${text.slice(0, Math.max(20, terminal.columns - 1))}`);
      drawn = true;
    } else terminal.line(text);
  };
  const timer = setInterval(draw, terminal.isTTY ? REDRAW : PLAIN);
  timer.unref();
  return {
    stop: () => {
      clearInterval(timer);
      if (drawn) terminal.write('\r\u001b[2K');
    },
  };
}

/** One line: what is going on, how much is offered, in flight, good, and how soon users hear something. */
export function progressLine(p: Progress): string {
  const left = p.window ? Math.max(0, p.window.end - p.window.start) : undefined;
  const counted = p.phase === 'warm-up' ? { offered: p.offered, ended: p.ended, good: p.good } : p.cohort;
  const share = counted.ended > 0 ? `${((100 * counted.good) / counted.ended).toFixed(1)} %` : '–';
  const parts = [
    `${p.phase.padEnd(9)} ${formatDuration(p.elapsed)}${left && p.phase === 'measuring' ? ` (window ${formatDuration(left)})` : ''}`,
    `offered ${counted.offered}`,
    `in flight ${p.inFlight}`,
    `good ${counted.good} of ${counted.ended} (${share})`,
  ];
  if (p.ttft.p50 !== undefined) {
    parts.push(`TTFT p50 ${formatDuration(p.ttft.p50)} p99 ${formatDuration(p.ttft.p99 ?? p.ttft.p50)}`);
  }
  return parts.join('  ·  ');
}

/** A bar on stderr: redrawn on a terminal, a line every five seconds elsewhere. */
export function progressBar(
  { stderr }: Pick<Cli, 'stderr'>,
  read: () => { readonly share: number; readonly text: string },
): () => void {
  const draw = (): void => {
    const { share, text } = read();
    const filled = Math.round(20 * Math.max(0, Math.min(1, share)));
    const line = `[${'#'.repeat(filled)}${'.'.repeat(20 - filled)}] ${text}`;
    if (stderr.isTTY) stderr.write(`\r\u001b[2K${line.slice(0, Math.max(20, stderr.columns - 1))}`);
    else stderr.line(line);
  };
  const timer = setInterval(draw, stderr.isTTY ? 250 : 5000);
  return () => {
    clearInterval(timer);
    if (stderr.isTTY) stderr.write('\r\u001b[2K');
  };
}
