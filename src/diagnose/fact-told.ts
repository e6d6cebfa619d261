/** Facts that are told or read off a process, not measured: settings, versions, marks, restarts. */
import { type Changes, type Diff, type Direction, directionOf, TOPIC_IDS } from './changes.ts';
import type { Fact, FactId, States } from './fact.ts';
import type { Side } from './side.ts';

/** A setting that was changed and stands for a larger or a smaller value, or nobody can say which; or was left alone. */
const STATES: Readonly<Record<Direction | 'unchanged', States>> = {
  down: [0.5, 0.5, 0, 0, 0],
  up: [0, 0, 0, 0.5, 0.5],
  unknown: [0.25, 0.25, 0, 0.25, 0.25],
  unchanged: [0, 0, 1, 0, 0],
};

function told(
  id: FactId,
  label: string,
  is: boolean,
  source: Fact['source'],
  population: string,
  direction: Direction = 'unknown',
): Fact {
  return {
    id,
    label,
    effect: is ? 1 : 0,
    se: 0,
    kind: 'told',
    unit: 'told',
    states: STATES[is ? direction : 'unchanged'],
    source,
    population,
  };
}

export function toldFacts({ versions, flags, deployments, marks }: Changes, facts: Map<FactId, Fact>): void {
  const said = (list: readonly Diff[]): string =>
    list.map((d) => `${d.name}: ${d.before} → ${d.after}`).join('; ') || 'none told';
  const add = (id: FactId, label: string, list: readonly Diff[], direction?: Direction): void =>
    void facts.set(id, told(id, label, list.length > 0, 'changes', said(list), direction));
  add('version', 'a version changed', versions);
  const settings = [...flags, ...deployments];
  for (const topic of TOPIC_IDS) {
    const own = settings.filter((f) => f.topic === topic);
    const directions = new Set(own.map(directionOf));
    const [direction] = directions;
    add(`flag.${topic}`, `a setting changed: ${topic}`, own, directions.size === 1 ? direction : 'unknown');
  }
  add('deployed', 'something was deployed', deployments);
  add('chosen', 'a version or a setting was changed', [...versions, ...settings]);
  for (const [id, label, kinds] of [
    ['started', 'a process started', ['process-start', 'deploy']],
    ['loaded', 'a model was loaded', ['model-load']],
  ] as const) {
    const own = marks.filter((m) => m.side === 'after' && (kinds as readonly string[]).includes(m.kind));
    facts.set(id, told(id, label, own.length > 0, 'changes', own.map((m) => m.text).join('; ') || 'none told'));
  }
}

/** A server process began within the later window, or ten minutes before it, by its own account. */
export function restartFact(sideA: Side, sideB: Side, facts: Map<FactId, Fact>): void {
  const starts = (side: Side) => side.evidence?.replicas.map((r) => r.gauges.process_start?.last) ?? [];
  const reset = sideB.evidence?.replicas.some((r) => r.reset) ?? false;
  const known = starts(sideB).filter((s) => s !== undefined);
  if (!sideA.evidence || !sideB.evidence || (known.length === 0 && !reset)) return;
  const fresh = sideB.evidence.replicas.some((r) => {
    const start = r.gauges.process_start?.last;
    return start !== undefined && r.window.start !== undefined && start * 1000 > r.window.start - 600_000;
  });
  facts.set(
    'restarted',
    told(
      'restarted',
      'a server process started in or just before the later window',
      reset || fresh,
      'server-metrics',
      `${known.length} start times`,
    ),
  );
}
