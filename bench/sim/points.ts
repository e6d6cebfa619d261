/**
 * 1,000 operating points of 10 virtual minutes at about 10 requests/s, over two worker threads:
 * `node bench/sim/run.mjs points [points] [workers]`. Each point is another rate and seed.
 */
import { Worker } from 'node:worker_threads';
import { simulate } from '../../src/sim/index.ts';
import { conversations, replica } from './load.ts';

/** Points `from`, `from + by`, … below `to`. */
export function share(from: number, to: number, by: number): number {
  let requests = 0;
  for (let p = from; p < to; p += by) {
    const rate = 8 + (4 * (p % 100)) / 100;
    let good = 0;
    simulate(conversations(Math.round(rate * 600), rate, p + 1), replica(), ({ scheduled, finished: f }) => {
      requests++;
      if (f && f.firstToken - scheduled < 500) good++;
    });
    if (good === 0) throw new Error('no request was good: the points are not what they should be');
  }
  return requests;
}

export async function main([points = '1000', workers = '2']: string[]): Promise<void> {
  const began = performance.now();
  const cpu = process.cpuUsage();
  const code = `
    const { workerData, parentPort } = require('node:worker_threads');
    import(workerData.vite).then(({ runnerImport }) => runnerImport(workerData.file, { logLevel: 'error' }))
      .then(({ module }) => parentPort.postMessage(module.share(...workerData.of)));`;
  const counts = await Promise.all(
    Array.from(
      { length: Number(workers) },
      (_, w) =>
        new Promise<number>((resolve, reject) => {
          const worker = new Worker(code, {
            eval: true,
            workerData: {
              vite: new URL('../../node_modules/vite/dist/node/index.js', import.meta.url).href,
              file: new URL('./points.ts', import.meta.url).pathname,
              of: [w, Number(points), Number(workers)],
            },
          });
          worker.once('message', resolve);
          worker.once('error', reject);
        }),
    ),
  );
  const seconds = (performance.now() - began) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  const requests = counts.reduce((a, b) => a + b, 0);
  console.log(
    `${points} points, ${requests.toLocaleString('en')} requests: ${seconds.toFixed(1)} s on ${workers} threads, ${((user + system) / 1e6).toFixed(1)} s of processor time (asked: 60 s for 1,000 on 2)`,
  );
}
