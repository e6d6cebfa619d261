/**
 * Errors that are the user's to mend. Their message is one line: what was wrong, where, and what to do next. The CLI
 * prints it alone, without a stack; anything else that is thrown is a defect of ours and keeps its stack.
 */
export class UserError extends Error {
  /** The process exit code: 2 bad usage or input, 3 the measurement is not valid. */
  readonly exitCode: 2 | 3;
  constructor(message: string, exitCode: 2 | 3, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    this.exitCode = exitCode;
  }
}

/** A flag, file or value we cannot accept. */
export class InputError extends UserError {
  constructor(message: string, options?: ErrorOptions) {
    super(message, 2, options);
  }
}

/** The measurement could not be made or proves nothing. */
export class MeasurementError extends UserError {
  constructor(message: string, options?: ErrorOptions) {
    super(message, 3, options);
  }
}

/** The message of anything thrown, on one line and without control characters. */
export function messageOf(error: unknown): string {
  if (error instanceof Error) return oneLine(error.message || error.name);
  return oneLine(String(error));
}

/**
 * Text from outside made safe to print: control characters (terminal escapes among them) become `·`, line breaks a
 * space, and the whole is cut at `max` characters.
 */
export function oneLine(text: string, max = 300): string {
  const clean = text
    .replace(/[\r\n\t]+/g, ' ')
    .replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '·')
    .trim();
  return clean.length > max ? `${clean.slice(0, max - 1)}…` : clean;
}

/** Throws a defect of ours (not the user's) when `condition` is false. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`internal: ${message}`);
}
