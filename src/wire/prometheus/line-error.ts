/** Why a line cannot be read. */
export class LineError extends Error {}
