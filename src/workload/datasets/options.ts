export interface DatasetOptions {
  /** Entries kept: a uniform sample of what the file has. */
  readonly sample: number;
  readonly seed: number;
  /** Take each answer's length from the file, where it tells one. */
  readonly outputOfFile: boolean;
}

export const DEFAULT_SAMPLE = 2000;
/** Together with `MAX_PROMPT` this bounds what a dataset may take of memory, and in practice is far above it. */
export const MAX_SAMPLE = 100_000;
/** Characters a prompt may have; longer ones are left out, and counted. */
export const MAX_PROMPT = 1 << 20;
