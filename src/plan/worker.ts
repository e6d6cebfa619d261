/** A thread that evaluates candidates one after the other. */
import { parentPort, workerData } from 'node:worker_threads';
import { messageOf } from '../base/errors.ts';
import type { CapFound } from './cap.ts';
import { type Evaluated, evaluate } from './evaluate.ts';
import type { Candidate, PlanAsk } from './options.ts';

export interface PlanTask {
  readonly id: number;
  readonly candidate: Candidate;
  readonly how: 'steer' | 'confirm';
  readonly cap?: CapFound;
}

export type PlanAnswer =
  | { readonly id: number; readonly evaluated: Evaluated }
  | { readonly id: number; readonly problem: string };

if (parentPort) {
  const port = parentPort;
  const ask = workerData as PlanAsk;
  port.on('message', async (task: PlanTask | null) => {
    if (task === null) {
      port.close();
      return;
    }
    try {
      const evaluated = await evaluate(ask, task.candidate, task.how, task.cap);
      port.postMessage({ id: task.id, evaluated } satisfies PlanAnswer);
    } catch (error) {
      port.postMessage({ id: task.id, problem: messageOf(error) } satisfies PlanAnswer);
    }
  });
}
