export * from './arrivals.ts';
export * from './lengths.ts';
export * from './prompts.ts';
export * from './synthetic.ts';
