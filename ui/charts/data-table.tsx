/** The figures behind a chart, for whoever reads rather than looks. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';

export interface Cells {
  readonly head: readonly string[];
  readonly rows: readonly (readonly (string | number)[])[];
}

/** @param cells made only when the table is opened. */
export function DataTable({ label, cells }: { label: string; cells: () => Cells }) {
  const [open, setOpen] = useState(false);
  return (
    <details class="behind" onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>Table: {label}</summary>
      {open && <Table label={label} {...cells()} />}
    </details>
  );
}

/** Figures stand to the right and are not broken; words are. */
const kindOf = (cell: string | number): string =>
  typeof cell === 'number' || (cell.length < 30 && /^[-–−+<>≥≤?∞.\d]/.test(cell)) ? 'num' : 'txt';

/** @param words all cells are words, to the left. */
export function Table({ label, head, rows, words = false }: Cells & { label: string; words?: boolean }) {
  const kind = (cell: string | number): string => (words ? 'txt' : kindOf(cell));
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <table>
        <caption class="sr">{label}</caption>
        <thead>
          <tr>
            {head.map((h, i) => (
              <th
                scope="col"
                class={i > 0 ? (rows[0] === undefined ? 'num' : kind(rows[0][i] ?? '–')) : undefined}
                key={h}
              >
                {h}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, r) => (
            <tr key={r}>
              {row.map((cell, i) =>
                i === 0 ? (
                  <th scope="row" key={head[i]}>
                    {cell}
                  </th>
                ) : (
                  <td class={kind(cell)} key={head[i]}>
                    {cell}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A chart in its frame: title, what it says in a line, the chart, the table behind it. */
export function Figure(props: {
  title: string;
  note?: ComponentChildren;
  aside?: ComponentChildren;
  wide?: boolean;
  children: ComponentChildren;
  table?: () => Cells;
}) {
  return (
    <section class={`card${props.wide ? ' wide' : ''}`} aria-label={props.title}>
      <header>
        <h2>{props.title}</h2>
        {props.aside}
      </header>
      {props.note && <p class="note">{props.note}</p>}
      {props.children}
      {props.table && <DataTable label={props.title} cells={props.table} />}
    </section>
  );
}
