/** The dashboard: the API behind the pages of `ui/`, and the page a run is exported to. */
export * from './export.ts';
export * from './run-data.ts';
export * from './server.ts';
