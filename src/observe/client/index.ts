export * from './measured-fetch.ts';
