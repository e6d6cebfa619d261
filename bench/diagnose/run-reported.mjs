// `node bench/diagnose/run-reported.mjs [--batch N]`: how public reports are diagnosed. Vite's runner strips the types.
import { runnerImport } from 'vite';

const { module } = await runnerImport(new URL('./reported.ts', import.meta.url).pathname, { logLevel: 'error' });
module.main(process.argv.slice(2));
