/** Every accelerator at 1, 2, 4 and 8 devices under the same limit: what a device yields against what a user waits. */
import { useMemo } from 'preact/hooks';
import { ACCELERATORS, batchRow, largestBatchUnder } from '../../src/model/index.ts';
import { Figure } from '../charts/data-table.tsx';
import { adjust } from '../route.ts';
import { build } from '../simulate.ts';
import { figure, ms } from '../words.ts';
import type { Asked } from './asked.ts';

export function Frontier({ a }: { a: Asked }) {
  const rows = useMemo(() => {
    const found: { label: string; gpu: string; tp: number; perDevice: number; step: number; batch: number }[] = [];
    for (const gpu of ACCELERATORS) {
      for (const tp of [1, 2, 4, 8]) {
        if (tp > gpu.domain) continue;
        try {
          const b = build({ ...a, gpu: gpu.id, tp });
          const { largest } = largestBatchUnder(b.on, b.step, {
            context: a.context,
            ...(!Number.isNaN(a.tpot) && { tpot: a.tpot }),
          });
          const batch = Math.min(largest, 1024);
          if (batch < 1) continue;
          const r = batchRow(b.on, b.step, { batch, context: a.context, output: a.output });
          found.push({ label: `${tp} × ${gpu.id}`, gpu: gpu.id, tp, perDevice: r.goodput / tp, step: r.stepMs, batch });
        } catch {
          // this model does not divide so
        }
      }
    }
    return found.sort((x, y) => y.perDevice - x.perDevice).slice(0, 12);
  }, [JSON.stringify(a)]);
  const top = Math.max(1e-9, ...rows.map((r) => r.perDevice));
  return (
    <Figure
      title="Frontier"
      note="Goodput a device at the largest batch that holds the limit, over accelerators; a full batch, queueing left out. Choose one to look at it."
      table={() => ({
        head: ['deployment', 'goodput a device', 'batch', 'step'],
        rows: rows.map((r) => [r.label, `${figure(r.perDevice)}/s`, r.batch, ms(r.step)]),
      })}
    >
      {rows.length === 0 && <p class="wait">Nothing holds this limit.</p>}
      <ul class="ranked">
        {rows.map((r) => (
          <li key={r.label}>
            <button
              type="button"
              aria-current={r.gpu === a.gpu && r.tp === a.tp}
              onClick={() => adjust({ gpu: r.gpu, tp: r.tp })}
            >
              <span>{r.label}</span>
              <span class="track">
                <i style={{ width: `${(100 * r.perDevice) / top}%` }} />
              </span>
              <span class="num">{figure(r.perDevice, 3)}/s</span>
            </button>
          </li>
        ))}
      </ul>
    </Figure>
  );
}
