/** Offered operations as a bar whose parts add up. */
import type { LedgerClass } from '../../src/core/judge.ts';
import { ledgerColor, whole } from '../words.ts';

export function CohortBar(props: {
  offered: number;
  ledger: readonly (readonly [LedgerClass, number])[];
  excluded: number;
}) {
  const shown = props.ledger.filter(([, n]) => n > 0);
  return (
    <div class="cohort">
      <div
        class="bar"
        role="img"
        aria-label={`Of ${whole(props.offered)} offered: ${shown.map(([c, n]) => `${whole(n)} ${c}`).join(', ')}`}
      >
        {shown.map(([c, n]) => (
          <span key={c} style={{ flexGrow: String(n), background: ledgerColor(c) }} title={`${whole(n)} ${c}`} />
        ))}
      </div>
      <p class="legend" data-cohort>
        <strong>{whole(props.offered)}</strong> offered ={' '}
        {shown.map(([c, n], i) => (
          <span key={c} data-class={c}>
            {i > 0 ? ' + ' : ''}
            <i style={{ background: ledgerColor(c) }} />
            <b>{whole(n)}</b> {c}
          </span>
        ))}
        {props.excluded > 0 && <span> · {whole(props.excluded)} excluded from attainment by the contract</span>}
      </p>
    </div>
  );
}
