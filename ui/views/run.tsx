/** One run: who was good and who was not, by how much, when, and what another contract would say. */
import { Problem } from '../charts/problem.tsx';
import { Charts } from '../run/charts.tsx';
import { Client } from '../run/client.tsx';
import { ContractPanel } from '../run/contract-panel.tsx';
import { Heading } from '../run/heading.tsx';
import { Headline } from '../run/headline.tsx';
import { Notes } from '../run/notes.tsx';
import { Quantiles } from '../run/quantiles.tsx';
import { packed, report } from '../state.ts';

export function RunView() {
  // Verdicts are not read here: a moved limit renders what shows them, and nothing else.
  const told = report.value.value;
  const p = packed.value.value;
  if (!told && !p) return <p class="wait">Reading the run…</p>;
  return (
    <div class="page">
      {told && <Heading report={told.report} status={told.status} epoch={told.epoch} problems={told.problems} />}
      {told && <Headline report={told.report} />}
      <ContractPanel />
      {packed.value.state === 'failed' && <Problem what="The requests cannot be read" why={packed.value.problem} />}
      {packed.value.state === 'loading' && <p class="wait">Reading the requests…</p>}
      {p && p.rows === 0 && <p class="wait">This run holds no requests: it was cut before the first ended.</p>}
      {p && p.rows > 0 && <Charts p={p} />}
      {told && <Quantiles report={told.report} />}
      {told && (
        <div class="grid">
          <Client report={told.report} />
          <Notes report={told.report} />
        </div>
      )}
    </div>
  );
}
