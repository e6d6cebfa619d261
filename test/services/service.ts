/** Programs of other projects that a suite runs against. Missing, the suite is skipped with the reason; under CI=true it fails. */
import { spawnSync } from 'node:child_process';
import { createServer } from 'node:net';
import { it } from 'vitest';

/** The path of `program`, or undefined where it is not installed. */
export function service(program: string): string | undefined {
  const found = spawnSync('sh', ['-c', `command -v ${program}`], { encoding: 'utf8' });
  return found.status === 0 ? found.stdout.trim() : undefined;
}

/** A test that needs `program`. `run` is handed its path. */
export function withService(program: string, name: string, run: (path: string) => Promise<void> | void): void {
  const path = service(program);
  if (path !== undefined) it(name, () => run(path));
  else if (process.env.CI === 'true') {
    it(name, () => {
      throw new Error(`${program} is not installed; run test/services/install`);
    });
  } else it.skip(`${name} (${program} is not installed; run test/services/install)`, () => {});
}

/** A port that was free a moment ago: Prometheus cannot be asked for any and told which. */
export const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
