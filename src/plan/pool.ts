/** Evaluations over worker threads, each a whole candidate. Order of answers does not depend on who is quicker. */
import { Worker } from 'node:worker_threads';
import type { Evaluated } from './evaluate.ts';
import type { PlanAsk } from './options.ts';
import type { PlanAnswer, PlanTask } from './worker.ts';

export async function evaluateAll(
  ask: PlanAsk,
  tasks: readonly PlanTask[],
  threads: number,
  each: (done: number) => void,
): Promise<Map<number, Evaluated | string>> {
  const answers = new Map<number, Evaluated | string>();
  const workers: Worker[] = [];
  let next = 0;
  const run = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const worker = new Worker(workerUrl(), { workerData: ask });
      workers.push(worker);
      const feed = (): void => worker.postMessage(tasks[next++] ?? null);
      worker.on('message', (answer: PlanAnswer) => {
        answers.set(answer.id, 'problem' in answer ? answer.problem : answer.evaluated);
        each(answers.size);
        feed();
      });
      worker.once('error', reject);
      worker.once('exit', () => resolve());
      feed();
    });
  try {
    await Promise.all(Array.from({ length: Math.max(1, Math.min(threads, tasks.length)) }, run));
  } catch (error) {
    // One thread that breaks is a defect; the others would go on for nobody.
    await Promise.all(workers.map((w) => w.terminate()));
    throw error;
  }
  return answers;
}

/** Beside this file when built; Node runs no TypeScript, so from source the build's worker is used. */
function workerUrl(): URL {
  return import.meta.url.endsWith('.ts')
    ? new URL('../../dist/plan/worker.js', import.meta.url)
    : new URL('./worker.js', import.meta.url);
}
