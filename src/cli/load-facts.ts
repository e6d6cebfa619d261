/** A workload as `run.json` keeps it. */
import type { Contract } from '../core/contract.ts';
import { lengthText, traceArrivals } from '../workload/index.ts';
import type { LoadPlan } from './load-plan.ts';

/** The workload for `run.json`: what was asked, without prompts; long lists by their size. */
export function workloadFacts(plan: LoadPlan): Record<string, unknown> {
  const { trace, classes, contracts, cache, name } = plan;
  return {
    ...(name !== undefined && { name }),
    ...(cache && { cache }),
    ...(trace && {
      replay: {
        file: trace.name,
        format: trace.format,
        requests: trace.length,
        span_ms: (trace.at[trace.length - 1] as number) / 1000,
        classes: trace.classes,
        ...(trace.sessions && { sessions: traceArrivals(trace).length }),
        notes: trace.notes,
      },
    }),
    ...(classes && {
      classes: classes.map(({ dataset, tools, input, output, ...rest }) => ({
        ...rest,
        input: lengthText(input),
        output: lengthText(output),
        ...(tools && { tools: tools.map((tool) => tool.name) }),
        ...(dataset && {
          dataset: {
            file: dataset.name,
            sample: dataset.entries.length,
            available: dataset.available,
            skipped: dataset.skipped,
            notes: dataset.notes,
          },
        }),
      })),
    }),
    ...(contracts &&
      Object.keys(contracts).length > 0 && {
        contracts: Object.fromEntries(
          Object.entries(contracts).map(([key, c]) => [
            key,
            { ...c, deadline: Number.isFinite(c.deadline) ? c.deadline : null },
          ]),
        ),
      }),
  };
}

/** Contracts of classes as `workloadFacts` stored them. */
export function storedContracts(workload: Readonly<Record<string, unknown>>): Readonly<Record<string, Contract>> {
  const stored = workload.contracts;
  if (typeof stored !== 'object' || stored === null) return {};
  return Object.fromEntries(
    Object.entries(stored as Record<string, Contract & { deadline: number | null }>).map(([name, c]) => [
      name,
      { ...c, deadline: c.deadline ?? Number.POSITIVE_INFINITY },
    ]),
  );
}
