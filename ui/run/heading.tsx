/** What a run was, and what must be known before any figure of it. */
import type { Report } from '../../src/report/report.ts';
import { source } from '../state.ts';
import { limitsText, when, whole } from '../words.ts';

export function Heading(props: { report: Report; status: string; epoch: number; problems: readonly string[] }) {
  const { run } = props.report;
  const facts: [string, string | undefined][] = [
    ['Target', run.target],
    ['Model', run.model],
    ['Load', run.workload],
    ['Started', props.epoch > 0 ? when(props.epoch) : undefined],
    [
      'Contract',
      limitsText({ ...props.report.contract, deadline: props.report.contract.deadline ?? Number.POSITIVE_INFINITY }),
    ],
  ];
  return (
    <header class="heading">
      <h1>
        {run.name ?? 'Run'} <span class={`badge ${props.status}`}>{props.status}</span>
      </h1>
      <dl class="facts">
        {facts.map(([name, value]) =>
          value === undefined ? null : (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ),
        )}
      </dl>
      {props.report.client.verdict === 'client-bound' && (
        <div class="problem" role="alert">
          <strong>Client-bound: this run proves nothing about the server.</strong> {props.report.client.why.join('; ')}
        </div>
      )}
      {props.problems.map((p) => (
        <p class="warn" key={p}>
          {p}
        </p>
      ))}
      {source.value.thinned && (
        <p class="warn">
          Thinned to fit one file: {whole(source.value.thinned.kept)} of {whole(source.value.thinned.of)} chunk receipts
          of the timeline are in it. Every request, figure and verdict is whole; of each request its first, last and
          largest-gap chunks, and every longer stall, were kept.
        </p>
      )}
    </header>
  );
}
