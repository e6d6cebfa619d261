/** What leaves the process about real traffic: metrics for a scrape, metrics and spans by OTLP. */
export * from './metrics.ts';
export * from './names.ts';
export * from './otlp.ts';
export * from './span.ts';
