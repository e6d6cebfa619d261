/** Requests that arrive by chance, queue and are prefilled: the simulator. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { messageOf } from '../../src/base/errors.ts';
import { contractOf } from '../../src/core/contract.ts';
import { batchRow, largestBatchUnder } from '../../src/model/index.ts';
import { AttainmentCurve, type CurveDot, GoodputCurve } from '../charts/curve.tsx';
import { Figure } from '../charts/data-table.tsx';
import { adjust, param } from '../route.ts';
import { build, simulateRate } from '../simulate.ts';
import { figure, whole } from '../words.ts';
import type { Asked } from './asked.ts';

export function Load({ a }: { a: Asked }) {
  const [dots, setDots] = useState<readonly CurveDot[]>([]);
  const [said, setSaid] = useState('');
  const stop = useRef<AbortController | undefined>(undefined);
  const input = Math.max(1, a.context - Math.round(a.output / 2));
  const ttft = Number(param('ttft') ?? 500);
  const tpot = Number.isNaN(a.tpot) ? 1000 : a.tpot;
  useEffect(() => {
    setDots([]);
    setSaid('');
    return () => stop.current?.abort();
  }, [JSON.stringify(a), ttft]);
  const run = (): void => {
    stop.current?.abort();
    const control = new AbortController();
    stop.current = control;
    void (async () => {
      try {
        const { on, step } = build(a);
        const { largest } = largestBatchUnder(on, step, {
          context: a.context,
          ...(!Number.isNaN(a.tpot) && { tpot: a.tpot }),
        });
        if (largest < 1) throw new Error('no batch meets the limit');
        const batch = Math.min(largest, a.maxSeqs);
        const most = batchRow(on, step, { batch, context: a.context, output: a.output }).goodput;
        const got: CurveDot[] = [];
        const shares = [0.2, 0.4, 0.55, 0.7, 0.8, 0.9, 1, 1.15, 1.4];
        for (const [k, share] of shares.entries()) {
          setSaid(`simulating ${k + 1} of ${shares.length}…`);
          got.push(
            await simulateRate(
              {
                engine: { ...a, maxSeqs: batch },
                contract: contractOf({ ttft, tpot }, { deadline: 120_000 }),
                input,
                output: a.output,
                rate: share * most,
                requests: 500,
                seed: 1,
              },
              control.signal,
            ),
          );
          setDots([...got]);
        }
        setSaid(`500 requests a rate, batches of at most ${whole(batch)}`);
      } catch (error) {
        if ((error as Error).name !== 'AbortError') setSaid(messageOf(error));
      }
    })();
  };
  const series = [{ name: 'simulated', color: '--accent', points: dots }];
  return (
    <Figure
      title="Under load"
      note={
        <>
          Poisson arrivals of {whole(input)} prompt tokens, TTFT ≤{' '}
          <input
            type="number"
            class="short"
            aria-label="TTFT limit, ms"
            min="1"
            value={ttft}
            onChange={(e) => adjust({ ttft: e.currentTarget.value })}
          />{' '}
          ms and the TPOT limit together, the batch capped where TPOT allows.
        </>
      }
      {...(dots.length > 0 && {
        table: () => ({
          head: ['rate', 'attainment', 'goodput', 'tokens/s'],
          rows: dots.map((d) => [
            `${figure(d.rate)}/s`,
            `${figure(100 * d.attainment)} %`,
            `${figure(d.goodput)}/s`,
            figure(d.throughput),
          ]),
        }),
      })}
    >
      <p>
        <button type="button" onClick={run}>
          Simulate
        </button>{' '}
        <span role="status">{said}</span>
      </p>
      {dots.length > 0 && (
        <>
          <AttainmentCurve series={series} target={0.9} />
          <GoodputCurve series={series} />
        </>
      )}
    </Figure>
  );
}
