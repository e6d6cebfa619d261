/** The painter, without a page: for tests and measurements. */
export * from './lines.ts';
export * from './paint.ts';
export * from './rows.ts';
export * from './stalls.ts';
