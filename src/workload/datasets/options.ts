export interface DatasetOptions {
  /** Entries kept: a uniform sample of what the file has. */
  readonly sample: number;
  readonly seed: number;
  /** Take each answer's length from the file, where it tells one. */
  readonly outputOfFile: boolean;
}

export const DEFAULT_SAMPLE = 2000;
export const MAX_SAMPLE = 100_000;
/** Characters a prompt may have, its images among them; longer ones are left out, and counted. */
export const MAX_PROMPT = 8 << 20;
/** Characters all kept prompts may have together. */
export const MAX_TEXT = 256 << 20;
