/** Server metrics → `core/evidence`, and replicas put together. docs/server-metrics.md is its reference. */
export * from './document.ts';
export { type JointLimits, jointOf } from './joint.ts';
export { type MergeCounts, mergeEvidence } from './merge.ts';
export { renderMerge } from './render.ts';
export { type ReplicaSnapshot, type Snapshot, SnapshotReader } from './snapshot.ts';
export { evidenceOf } from './window.ts';
