/** All rooms but the two that put them together. */
const INSIDE: readonly string[] = [
  'base',
  'core',
  'stats',
  'wire',
  'workload',
  'model',
  'sim',
  'live',
  'drive',
  'store',
  'report',
  'emulate',
  'plan',
  'diagnose',
  'observe',
];

/** The rooms of `src/` and who may import whom: the one table, quoted in ARCHITECTURE.md and held by house.test.ts. */
export const ROOMS: Readonly<Record<string, readonly string[]>> = {
  base: [],
  stats: ['base'],
  core: ['base', 'stats'],
  wire: ['base', 'core', 'stats'],
  workload: ['base', 'core', 'stats'],
  model: ['base', 'core', 'stats'],
  sim: ['base', 'core', 'stats', 'workload', 'model'],
  live: ['base', 'core', 'wire'],
  drive: ['base', 'core', 'stats', 'workload'],
  plan: ['base', 'core', 'stats', 'workload', 'model', 'sim', 'drive'],
  store: ['base', 'core', 'stats', 'wire'],
  report: ['base', 'core', 'stats'],
  diagnose: ['base', 'core', 'stats'],
  observe: ['base', 'core', 'stats', 'wire', 'store'],
  emulate: ['base', 'core', 'wire', 'model', 'sim'],
  cli: [...INSIDE, 'dashboard'],
  dashboard: INSIDE,
};

/** Rooms that also run in a browser: no `node:` module, no ambient clock or randomness. */
export const PURE: readonly string[] = ['base', 'core', 'stats', 'wire', 'workload', 'model', 'sim', 'diagnose'];

/**
 * What the pages of `ui/` may import of `src/`: rooms that run in a browser, the binary forms of the dashboard, a
 * profile's step times, and of all others types alone.
 */
export const UI_MAY: readonly string[] = [
  'base',
  'core',
  'stats',
  'model',
  'sim',
  'dashboard/packed',
  'plan/form-step.ts',
];
