import { defineConfig } from 'vitest/config';

// `.ci/run` asks for the counts in a file; by hand the default reporter alone is enough.
const results = process.env.GOODPUT_TEST_RESULTS;

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    setupFiles: ['test/seeded.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: 'forks',
    maxWorkers: 2,
    reporters: results ? ['default', 'json'] : ['default'],
    ...(results && { outputFile: { json: results } }),
  },
});
