/**
 * Property tests draw the same cases in every run, so that a change alone can make one fail. Other cases are drawn by
 * `GOODPUT_TEST_SEED=N npx vitest run`, which is worth doing now and then.
 */
import fc from 'fast-check';

fc.configureGlobal({ seed: Number(process.env.GOODPUT_TEST_SEED ?? 1) });
