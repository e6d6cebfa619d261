/** A plan that was computed before: what each deployment costs, how long its users wait, and which of them nothing beats. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { messageOf } from '../../src/base/errors.ts';
import type { StoredPlan } from '../../src/dashboard/plans.ts';
import { Figure, Table } from '../charts/data-table.tsx';
import { useWidth } from '../charts/width.ts';
import { adjust, param } from '../route.ts';
import { source } from '../state.ts';
import { figure, ms, whole } from '../words.ts';
import { deploymentText, type PlanRow, planOf, type ToldPlan } from './stored-plan.ts';

export function Stored() {
  const [list, setList] = useState<readonly StoredPlan[]>([]);
  const [opened, setOpened] = useState<StoredPlan | undefined>(undefined);
  const [problem, setProblem] = useState('');
  useEffect(() => {
    source.value.plans().then(setList, (e: Error) => setProblem(e.message));
  }, []);
  const read = async (file: File | undefined): Promise<void> => {
    if (!file) return;
    try {
      const plan = JSON.parse(await file.text());
      planOf(plan);
      setOpened({ name: file.name, plan });
      setProblem('');
    } catch (e) {
      setProblem(`${file.name}: ${messageOf(e)}`);
    }
  };
  const chosen = opened ?? list.find((p) => p.name === param('plan')) ?? list[0];
  let told: ToldPlan | undefined;
  let wrong = problem;
  try {
    told = chosen && planOf(chosen.plan);
  } catch (e) {
    wrong = `${chosen?.name}: ${messageOf(e)}`;
  }
  return (
    <Figure
      title={told ? `Stored plan: ${told.model}` : 'Stored plan'}
      wide
      aside={
        <span class="tools">
          {list.length > 1 && (
            <label>
              <span class="sr">Plan</span>
              <select
                value={chosen?.name}
                onChange={(e) => {
                  setOpened(undefined);
                  adjust({ plan: e.currentTarget.value });
                }}
              >
                {list.map((p) => (
                  <option key={p.name}>{p.name}</option>
                ))}
              </select>
            </label>
          )}
          <label class="file">
            Open a plan (JSON){' '}
            <input type="file" accept=".json" onChange={(e) => void read(e.currentTarget.files?.[0])} />
          </label>
        </span>
      }
      note={
        told
          ? `${told.traffic}. Each disc is a deployment that holds the contract, with its spare room; filled ones are the frontier: no other is at once cheaper and quicker. Choose a row to look at it above.`
          : undefined
      }
    >
      {wrong && <p class="warn">{wrong}</p>}
      {!told && (
        <p class="wait">
          Which accelerators, how many, at what cost? <code>goodput plan … --json &gt; plan.json</code>, kept beside the
          runs, is shown here.
        </p>
      )}
      {told && <Frontier plan={told} />}
      {told && <Rows plan={told} />}
      {told && told.protect.length + told.remarks.length > 0 && (
        <ul class="notes">
          {[...told.protect, ...told.remarks].map((t) => (
            <li key={t}>{t}</li>
          ))}
        </ul>
      )}
    </Figure>
  );
}

const look = (r: PlanRow): void => adjust({ gpu: r.gpu, tp: r.tp, weights: r.weights, kv: r.kv });

const H = 250;
const PAD = { left: 64, right: 20, top: 14, bottom: 34 };

function Frontier({ plan }: { plan: ToldPlan }) {
  const box = useRef<HTMLDivElement>(null);
  const W = useWidth(box, 900);
  const spent = (r: PlanRow): number => (plan.spend === 'cost' ? r.cost : r.gpus) ?? 0;
  const points = plan.rows.filter((r) => r.gpus !== null && r.ttft !== null);
  if (points.length === 0) return <p class="wait">Nothing in this plan holds the contract.</p>;
  const most = 1.1 * Math.max(...points.map(spent));
  const slowest = 1.15 * Math.max(...points.map((r) => r.ttft as number));
  const x = (v: number): number => PAD.left + (v / most) * (W - PAD.left - PAD.right);
  const y = (v: number): number => H - PAD.bottom - (v / slowest) * (H - PAD.top - PAD.bottom);
  // Labels that would stand on each other are left out; the table has all.
  const labelled: { x: number; y: number }[] = [];
  const isFree = (r: PlanRow): boolean => {
    const at = { x: x(spent(r)), y: y(r.ttft as number) };
    if (labelled.some((l) => Math.abs(l.x - at.x) < 150 && Math.abs(l.y - at.y) < 14)) return false;
    labelled.push(at);
    return true;
  };
  const unit = plan.spend === 'cost' ? 'an hour' : 'GPUs';
  return (
    <div ref={box}>
      <svg viewBox={`0 0 ${W} ${H}`} role="img" aria-label={`TTFT p90 against ${unit}, a disc a deployment`}>
        {[0, 0.25, 0.5, 0.75, 1].map((s) => (
          <g key={s}>
            <line x1={PAD.left} x2={W - PAD.right} y1={y(s * slowest)} y2={y(s * slowest)} class="grid" />
            <text x={PAD.left - 6} y={y(s * slowest) + 4} class="tick" text-anchor="end">
              {ms(Math.round(s * slowest))}
            </text>
            <text x={x(s * most)} y={H - 18} class="tick" text-anchor="middle">
              {figure(s * most, 3)}
            </text>
          </g>
        ))}
        <text x={(PAD.left + W) / 2} y={H - 3} class="tick" text-anchor="middle">
          {plan.spend === 'cost' ? 'cost an hour' : 'GPUs'}
        </text>
        <text x={PAD.left + 4} y={PAD.top} class="tick">
          TTFT p90
        </text>
        {[...points]
          .sort((a, b) => Number(b.isFrontier) - Number(a.isFrontier))
          .map((r, i) => (
            <g key={i}>
              <circle
                cx={x(spent(r))}
                cy={y(r.ttft as number)}
                r={r.isFrontier ? 6 : 4}
                style={{ fill: r.isFrontier ? 'var(--c-good)' : 'var(--surface)', stroke: 'var(--c-good)' }}
              >
                <title>{`${deploymentText(r)}: ${figure(spent(r))} ${unit}, TTFT p90 ${ms(r.ttft)}, TPOT p90 ${ms(r.tpot)}`}</title>
              </circle>
              {isFree(r) && (
                <text
                  x={x(spent(r)) + (x(spent(r)) > W - 190 ? -9 : 9)}
                  y={y(r.ttft as number) + 4}
                  class="tick"
                  text-anchor={x(spent(r)) > W - 190 ? 'end' : 'start'}
                >
                  {deploymentText(r)}
                </text>
              )}
            </g>
          ))}
      </svg>
    </div>
  );
}

function Rows({ plan }: { plan: ToldPlan }) {
  const range = (r: PlanRow): string =>
    r.rateLow !== null && r.rateHigh !== null
      ? `${figure(r.rateLow, 3)} to ${figure(r.rateHigh, 3)}/s`
      : r.rate === null
        ? '–'
        : `~${figure(r.rate, 3)}/s`;
  return (
    <>
      <Table
        label="Rows of the plan"
        head={['replica', 'frontier', 'batch cap', 'rate a replica', 'GPUs', 'cost/h', 'TTFT p90', 'TPOT p90', 'why']}
        rows={plan.rows.map((r) => [
          deploymentText(r),
          r.isFrontier ? 'yes' : '',
          r.cap === null ? '–' : `${whole(r.cap)}${r.capBound ? ` (${r.capBound})` : ''}`,
          range(r),
          r.gpus === null ? 'none' : r.gpus,
          figure(r.cost),
          ms(r.ttft),
          ms(r.tpot),
          r.why,
        ])}
      />
      <p class="note">~ marks a rate that one quick search found and nothing confirmed.</p>
      <p class="tools">
        Look at:{' '}
        {plan.rows
          .filter((r) => r.isFrontier)
          .slice(0, 8)
          .map((r, i) => (
            <button type="button" key={i} onClick={() => look(r)}>
              {deploymentText(r)}
            </button>
          ))}
      </p>
    </>
  );
}
