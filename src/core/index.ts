/** The vocabulary. Everything here is pure and runs in a browser. */
export * from './attempts.ts';
export * from './clock.ts';
export * from './cohort.ts';
export * from './contract.ts';
export * from './engine.ts';
export * from './health.ts';
export * from './judge.ts';
export * from './measure.ts';
export * from './outcome.ts';
export * from './record.ts';
export * from './recorder.ts';
export * from './request.ts';
export * from './sink.ts';
export * from './stream.ts';
export * from './throughput.ts';
export * from './timeline.ts';
export * from './tokens.ts';
