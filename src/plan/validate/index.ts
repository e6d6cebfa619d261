/** The model and the simulator against data others measured. Pure: files are handed in as text. */
export * from './interference.ts';
export * from './knees.ts';
export * from './left-out.ts';
export * from './margins.ts';
export * from './refit.ts';
export * from './request-log.ts';
export * from './scoreboard.ts';
export * from './served.ts';
export { type Floor, readServed } from './served-table.ts';
