// How often a comparison says what it should. Vite's runner strips the types (Node 20 cannot).
//   node bench/compare/run.mjs [trials] [requests] [loads…] [seed=N] [sd=P] [speed]    simulated runs, the whole comparison
//   node bench/compare/run.mjs effect [draws] [level] [seed]                           one figure's test by itself, quick
import { runnerImport } from 'vite';

const [first, ...rest] = process.argv.slice(2);
const file = first === 'effect' ? './effect.ts' : './compare.ts';
const { module } = await runnerImport(new URL(file, import.meta.url).pathname, { logLevel: 'error' });
await module.main(first === 'effect' ? rest : process.argv.slice(2));
