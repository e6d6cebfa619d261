// `node bench/diagnose/run.mjs [--cases N] [--seed S] [--only cause,…] [--verbose]`. Vite's runner strips the types.
import { runnerImport } from 'vite';

const { module } = await runnerImport(new URL('./gym.ts', import.meta.url).pathname, { logLevel: 'error' });
await module.main(process.argv.slice(2));
