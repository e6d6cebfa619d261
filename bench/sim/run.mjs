// Runs one proof: `node bench/sim/run.mjs speed [args…]`. Vite's runner strips the types (Node 20 cannot).
import { runnerImport } from 'vite';

const [name = 'help', ...args] = process.argv.slice(2);
if (!/^[a-z-]+$/.test(name) || name === 'help') {
  console.log('usage: node bench/sim/run.mjs speed|points [args…]');
  process.exit(name === 'help' ? 0 : 2);
}
const { module } = await runnerImport(new URL(`./${name}.ts`, import.meta.url).pathname, { logLevel: 'error' });
await module.main(args);
