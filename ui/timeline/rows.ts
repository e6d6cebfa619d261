/** What a timeline shows: a row a request, top to bottom. Columns, since there are thousands with hundreds of chunks each. */
export interface Rows {
  /** Stamps in ms since the run's epoch, NaN where missing. `ended` is always there. */
  readonly scheduled: Float64Array;
  readonly sent: Float64Array;
  readonly first: Float64Array;
  readonly ended: Float64Array;
  /** Ticks: row r holds `us[start[r] … end[r])`, µs since it was scheduled, ascending. Both 0 where they are not here (yet). */
  readonly start: Uint32Array;
  readonly end: Uint32Array;
  readonly us: Uint32Array;
}

/** Receipts stay below 2^31 µs (`ChunksBuilder`): read as signed they are the engine's small integers. */
export const signed = (us: Uint32Array): Int32Array => new Int32Array(us.buffer, us.byteOffset, us.length);
