/** Plain text for a terminal: wrapped sentences and aligned tables. Colour is the caller's to allow. */

/** `text` in lines of at most `width`; the first begins with `lead`, the others with `hang`. */
export function wrapText(text: string, width: number, lead = '', hang = ''): string {
  const lines: string[] = [];
  let line = lead;
  let empty = true;
  for (const word of text.split(' ')) {
    if (!empty && line.length + 1 + word.length > width) {
      lines.push(line);
      line = hang + word;
    } else {
      line += empty ? word : ` ${word}`;
    }
    empty = false;
  }
  lines.push(line);
  return lines.join('\n');
}

/** Columns aligned: the first to the left, the others to the right. `indent` stands before each row. */
export function table(rows: readonly (readonly string[])[], indent = '  '): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, i) => {
      widths[i] = Math.max(widths[i] ?? 0, cell.length);
    });
  }
  return rows.map((row) =>
    (
      indent + row.map((cell, i) => (i === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[i]!))).join('  ')
    ).trimEnd(),
  );
}

export interface Paint {
  readonly bold: (s: string) => string;
  readonly dim: (s: string) => string;
  readonly red: (s: string) => string;
  readonly green: (s: string) => string;
  readonly yellow: (s: string) => string;
}

/** ANSI styles, or none at all. */
export function paint(color: boolean): Paint {
  const style = (on: number, off: number) => (s: string) => (color ? `\u001b[${on}m${s}\u001b[${off}m` : s);
  return { bold: style(1, 22), dim: style(2, 22), red: style(31, 39), green: style(32, 39), yellow: style(33, 39) };
}
