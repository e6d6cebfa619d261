/**
 * Where the writing thread's program stands. Built code starts its neighbour; tests that run from source start the built
 * one (Node 20 runs no TypeScript in a worker), so they need `npm run build` first.
 */
export function workerUrl(here: string = import.meta.url): URL {
  return here.endsWith('.ts') ? new URL('../../dist/store/worker.js', here) : new URL('./worker.js', here);
}
