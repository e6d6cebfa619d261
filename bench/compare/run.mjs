// How often a comparison of simulated runs says what it should: `node bench/compare/run.mjs [trials] [requests] [loads…]`.
// Vite's runner strips the types (Node 20 cannot).
import { runnerImport } from 'vite';

const { module } = await runnerImport(new URL('./compare.ts', import.meta.url).pathname, { logLevel: 'error' });
await module.main(process.argv.slice(2));
