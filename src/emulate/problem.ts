/** Errors as vLLM words them: `{"error":{"message","type","param","code"}}` with the same status. */
export class Problem extends Error {
  readonly status: number;
  readonly type: string;
  readonly param: string | null;
  constructor(status: number, type: string, message: string, param: string | null = null) {
    super(message);
    this.name = 'Problem';
    this.status = status;
    this.type = type;
    this.param = param;
  }

  /** The error object, as a body or inside a stream. */
  json(): string {
    return JSON.stringify({
      error: { message: this.message, type: this.type, param: this.param, code: this.status },
    });
  }
}

export function badRequest(message: string, param: string | null = null): Problem {
  return new Problem(400, 'BadRequestError', message, param);
}

/** A body that does not fit the schema; vLLM prints the validator's list, in Python. */
export function invalidField(type: string, field: string, message: string): Problem {
  return new Problem(
    400,
    'Bad Request',
    `[{'type': '${type}', 'loc': ('body', '${field}'), 'msg': '${message}'}]`,
    field,
  );
}

export function invalidJson(position: number): Problem {
  return new Problem(
    400,
    'Bad Request',
    `[{'type': 'json_invalid', 'loc': ('body', ${position}), 'msg': 'JSON decode error', 'input': {}, 'ctx': {'error': 'Expecting value'}}]`,
  );
}

export function noModel(model: string): Problem {
  return new Problem(404, 'NotFoundError', `The model \`${model.slice(0, 200)}\` does not exist.`, 'model');
}

export const NOT_FOUND = new Problem(404, 'Not Found', 'Not Found');
export const METHOD_NOT_ALLOWED = new Problem(405, 'Method Not Allowed', 'Method Not Allowed');
export const TOO_LARGE = new Problem(413, 'Request Entity Too Large', 'The request body is larger than 16 MiB.');

/** The prompt, with the output it asks for, does not fit the model. */
export function tooLong(limit: number, input: number, output: number | undefined): Problem {
  if (output === undefined) {
    return badRequest(
      `This model's maximum context length is ${limit} tokens. However, your request has ${input} input tokens. ` +
        'Please reduce the length of the input messages.',
      'input_tokens',
    );
  }
  return badRequest(
    `This model's maximum context length is ${limit} tokens. However, you requested ${output} output tokens and your ` +
      `prompt contains ${input} input tokens, for a total of ${input + output} tokens. Please reduce the length of the ` +
      'input prompt or the number of requested output tokens.',
    'input_tokens',
  );
}
