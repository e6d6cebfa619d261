/** A diagnosis, as `goodput diagnose --json` tells it: what changed, where the time went, which causes the evidence bears. */
import { useEffect, useState } from 'preact/hooks';
import { Figure } from '../charts/data-table.tsx';
import { Problem } from '../charts/problem.tsx';
import { Waterfall } from '../charts/waterfall.tsx';
import { EvidenceChart } from '../diagnosis/evidence.tsx';
import { type Told, toldOf } from '../diagnosis/told.ts';
import { runId, source } from '../state.ts';
import { ms, percent } from '../words.ts';

export default function DiagnosisView() {
  const id = runId.value;
  const [told, setTold] = useState<Told | undefined>(undefined);
  const [problem, setProblem] = useState('');
  const [asked, setAsked] = useState(false);
  useEffect(() => {
    if (id === undefined) return;
    setAsked(false);
    source.value.diagnosis(id).then(
      (d) => {
        setTold(d === null ? undefined : toldOf(d));
        setAsked(true);
      },
      (e: Error) => setProblem(e.message),
    );
  }, [id]);
  const read = async (file: File | undefined): Promise<void> => {
    if (!file) return;
    try {
      setTold(toldOf(JSON.parse(await file.text())));
      setProblem('');
    } catch (e) {
      setProblem(`${file.name}: ${(e as Error).message}`);
    }
  };
  return (
    <div class="page">
      <header class="heading">
        <h1>Diagnosis</h1>
        <label class="file">
          Open a diagnosis (JSON){' '}
          <input type="file" accept="application/json,.json" onChange={(e) => void read(e.currentTarget.files?.[0])} />
        </label>
      </header>
      {problem && <Problem what="It cannot be read" why={problem} />}
      {!told && (id === undefined || asked) && (
        <div class="empty">
          <h2>No diagnosis here</h2>
          <p>
            <code>goodput diagnose --before RUN_A --after RUN_B --json &gt; RUN_B/diagnosis.json</code> puts one into
            the run folder of the later run, where this page finds it; or open one above.
          </p>
        </div>
      )}
      {told && <Shown told={told} />}
    </div>
  );
}

function Shown({ told }: { told: Told }) {
  return (
    <>
      <section class="card wide headline" aria-label="Verdict">
        <div class="kpis">
          <div class="kpi long">
            <span class="name">Verdict</span>
            <span class="value">{told.verdict}</span>
            <span class="more">
              {told.summary ||
                (told.causes.length === 0
                  ? 'no cause is borne by the evidence'
                  : `${told.causes.length} causes, the likeliest first`)}
            </span>
          </div>
        </div>
      </section>
      {told.attribution.length > 0 && (
        <Figure
          title="Where the change went"
          wide
          note="Means add, quantiles do not: shares of the change of the mean."
          table={() => ({ head: ['part', 'ms'], rows: told.attribution.map((p) => [p.name, ms(p.ms)]) })}
        >
          <Waterfall parts={told.attribution} total={told.total} />
        </Figure>
      )}
      <section class="card wide" aria-label="Causes">
        <header>
          <h2>Causes</h2>
        </header>
        {told.causes.slice(0, MOST_OPEN).map(cause)}
        {told.causes.length > MOST_OPEN && (
          <details>
            <summary>{told.causes.length - MOST_OPEN} more, less likely</summary>
            {told.causes.slice(MOST_OPEN).map(cause)}
          </details>
        )}
        {told.ruledOut.length > 0 && (
          <>
            <h3>Ruled out</h3>
            <ul>
              {told.ruledOut.map((t) => (
                <li key={t}>{t}</li>
              ))}
            </ul>
          </>
        )}
        {told.fixes.length > 0 && (
          <>
            <h3>What would fix it, simulated</h3>
            <ul>
              {told.fixes.map((t) => (
                <li key={t}>{t}</li>
              ))}
            </ul>
          </>
        )}
        {told.missing.length > 0 && (
          <>
            <h3>What would tell more</h3>
            <ul>
              {told.missing.map((t) => (
                <li key={t}>{t}</li>
              ))}
            </ul>
          </>
        )}
      </section>
      {told.notes.length > 0 && (
        <section class="card wide" aria-label="Notes">
          <ul class="notes">
            {told.notes.map((t) => (
              <li key={t}>{t}</li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

/** Causes that are shown unfolded, the likeliest. */
const MOST_OPEN = 3;

function cause(c: Told['causes'][number]) {
  return (
    <article class="cause" key={c.id}>
      <h3>
        {c.title}{' '}
        {c.confidence !== undefined && (
          <span class="badge">{typeof c.confidence === 'number' ? percent(c.confidence, 2) : c.confidence}</span>
        )}
      </h3>
      <EvidenceChart list={c.evidence} against={c.against} />
      {c.knob && (
        <p class="note">
          What to turn: {c.knob}
          {c.price ? `; at the price of ${c.price}` : ''}
        </p>
      )}
    </article>
  );
}
