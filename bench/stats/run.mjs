// Runs one proof: `node bench/stats/run.mjs attainment [args…]`. Vite's runner strips the types (Node 20 cannot).
import { runnerImport } from 'vite';

const [name = 'help', ...args] = process.argv.slice(2);
if (!/^[a-z-]+$/.test(name) || name === 'help') {
  console.log('usage: node bench/stats/run.mjs attainment|replications|trend|compare|sketch [args…]');
  process.exit(name === 'help' ? 0 : 2);
}
const { module } = await runnerImport(new URL(`./${name}.ts`, import.meta.url).pathname, { logLevel: 'error' });
await module.main(args);
