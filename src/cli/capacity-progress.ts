/** One line redrawn on a terminal; nothing elsewhere, where each finished run has a line of its own. */
import type { Terminal } from './cli.ts';

const REDRAW = 250;

export function showLine(terminal: Terminal, read: () => string): () => void {
  if (!terminal.isTTY) return () => {};
  const timer = setInterval(() => {
    terminal.write(`\r\u001b[2K${read().slice(0, Math.max(20, terminal.columns - 1))}`);
  }, REDRAW);
  timer.unref();
  return () => {
    clearInterval(timer);
    terminal.write('\r\u001b[2K');
  };
}
