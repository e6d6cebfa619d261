/**
 * `goodput/client`: measures an application's own calls. `measuredFetch(contract, sink)` is a `fetch` for SDKs that take
 * one; docs/client.md has recipes.
 */
export { type Contract, contractFor, contractOf } from './core/contract.ts';
export { judgeRecord, type LedgerClass, type Verdict } from './core/judge.ts';
export type { Metrics } from './core/measure.ts';
export { PRESETS } from './core/presets.ts';
export type { RequestRecord } from './core/record.ts';
export * from './observe/client/index.ts';
export type { FinalOperation, LiveSnapshot, OperationListener } from './observe/cohorts/index.ts';
