/** The stamps of one request, in the order in which they come. */
import { STAMPS, type Stamps } from '../../src/core/record.ts';
import { Table } from '../charts/data-table.tsx';
import { ms } from '../words.ts';

export function StampTable({ stamps }: { stamps: Stamps }) {
  let before: number | undefined;
  return (
    <Table
      label="Stamps"
      head={['stamp', "on the run's clock", 'after scheduled', 'after the one before']}
      rows={STAMPS.flatMap((name) => {
        const t = stamps[name];
        if (t === undefined) return [];
        const step = before === undefined ? '–' : ms(t - before);
        before = t;
        return [[name, `${t.toFixed(3)} ms`, ms(t - stamps.scheduled), step]];
      })}
    />
  );
}
