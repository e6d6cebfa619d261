/** Attainment, goodput and the cohort: the run's own, or those of a contract that is tried. */
import { LIMIT_NAMES } from '../../src/core/contract.ts';
import { LEDGER } from '../../src/core/judge.ts';
import type { Report } from '../../src/report/report.ts';
import { CohortBar } from '../charts/cohort-bar.tsx';
import { Kpi } from '../charts/kpi.tsx';
import { interval, intervalPending, isWhatIf, type Judgement, judgement, shedShare } from '../state.ts';
import { boundText, figure, LIMIT_WORDS, percent, whole } from '../words.ts';

export function Headline({ report: r }: { report: Report }) {
  const j = judgement.value;
  const what = isWhatIf.value && j;
  const seconds = r.window.seconds;
  const i = what ? interval.value : undefined;
  const a = r.attainment;
  const value = what ? (j.fold.denominator > 0 ? j.fold.good / j.fold.denominator : null) : a.value;
  const target = what ? j.contract.attainment : a.target;
  const shed = what ? shedShare(j.packed) > 0.01 : false;
  const met = what ? value !== null && value >= target && !shed : a.met;
  const [low, high] = what ? [i?.low ?? null, i?.high ?? null] : [a.low, a.high];
  const good = what ? j.fold.good : r.cohort.good;
  const goodput = what ? (seconds ? good / seconds : null) : r.goodput_rps;
  const waiting = what && intervalPending.value;
  const ledger = what
    ? LEDGER.map((c) => [c, j.fold.ledger[c]] as const)
    : LEDGER.map((c) => [c, r.cohort[c.replace('-', '_') as 'good']] as const);
  const offered = what ? j.fold.offered : r.cohort.offered;
  return (
    <section class="card wide headline" aria-label="Attainment and goodput" aria-live="polite">
      <div class="kpis">
        <Kpi
          name="Attainment"
          id="attainment"
          value={percent(value)}
          tone={value === null ? undefined : met ? 'good' : 'bad'}
          more={
            low === null || high === null
              ? waiting
                ? '95 % interval follows…'
                : 'no interval'
              : `${waiting ? '…' : ''}95 %: ${percent(low, 3)} to ${percent(high, 3)}`
          }
        />
        <Kpi
          name="Target"
          value={percent(target)}
          more={value === null ? 'undefined' : met ? 'met' : shed ? 'missed: load was shed' : 'missed'}
        />
        <Kpi
          name="Goodput"
          id="goodput"
          value={goodput === null ? '–' : `${figure(goodput)}/s`}
          more={`of ${figure(r.offered_rps)}/s offered${r.goodput_rps_per_gpu !== null && !what ? ` · ${figure(r.goodput_rps_per_gpu)} a GPU` : ''}`}
        />
        <Kpi
          name="Throughput"
          id="throughput"
          value={r.throughput_tps === null ? '–' : `${figure(r.throughput_tps)} tok/s`}
          more={`${figure(r.achieved_rps)}/s completed`}
        />
      </div>
      {!what && a.method_note && <p class="warn">{a.method_note}</p>}
      <CohortBar offered={offered} ledger={ledger} excluded={what ? j.fold.excluded : r.cohort.excluded} />
      <Misses r={r} j={what ? j : undefined} />
    </section>
  );
}

function Misses({ r, j }: { r: Report; j: Judgement | undefined }) {
  const limits = (j?.contract ?? r.contract).limits;
  const names = LIMIT_NAMES.filter((n) => limits[n] !== undefined);
  if (names.length === 0) return null;
  const missed = (n: (typeof names)[number]): number => (j ? j.fold.misses[n] : r.misses[n]) ?? 0;
  const alone = (n: (typeof names)[number]): number => (j ? j.fold.alone[n] : r.misses_alone[n]) ?? 0;
  return (
    <p class="legend">
      Late by limit:{' '}
      {names.map((n, i) => (
        <span key={n}>
          {i > 0 ? ' · ' : ''}
          {LIMIT_WORDS[n]} {boundText(n, limits[n] as number)} missed by <b data-miss={n}>{whole(missed(n))}</b>, by{' '}
          {whole(alone(n))} alone
        </span>
      ))}
    </p>
  );
}
