/** What arrives when, and what each request asks for. Pure: files are handed in as streams of text. */
export * from './ahead.ts';
export * from './arrivals.ts';
export * from './classes.ts';
export * from './dataset.ts';
export * from './datasets/index.ts';
export * from './images.ts';
export * from './lengths.ts';
export * from './lines.ts';
export * from './mix.ts';
export * from './pauses.ts';
export * from './prefix.ts';
export * from './prompts.ts';
export * from './synthetic.ts';
export * from './tools.ts';
export * from './traces/index.ts';
