/** `goodput inspect`: explains a captured stream, event by event. */
import { type Cli, command, JSON_FLAG, text } from './command.ts';

interface Flags {
  readonly json: boolean;
  readonly dialect?: string;
  readonly contentType?: string;
}

export const inspect = command({
  func: runInspect,
  parameters: {
    flags: {
      json: JSON_FLAG,
      dialect: text('The API the capture is of, such as openai.chat; read from the capture when not given', 'NAME'),
      contentType: text("The response's content type, where it is known", 'TYPE'),
    },
    positional: {
      kind: 'tuple',
      parameters: [
        { brief: "A captured response body, or '-' for standard input", parse: String, placeholder: 'CAPTURE' },
      ],
    },
  },
  docs: {
    brief: 'Explain a captured stream: each event, what counted as output and why, tokens, outcome',
    fullDescription:
      'Reads a response body as it came from the server and says of every event whether it is output, and why.\n' +
      'Capture one with: curl -N http://host:8000/v1/chat/completions -d @body.json > capture.txt\n' +
      "A first line '#wire {json}' is skipped.",
  },
});

export async function runInspect(this: Cli, flags: Flags, capture: string): Promise<void> {
  const { dialectNamed, inspectCapture, inspectionText } = await import('../wire/index.ts');
  const dialect = flags.dialect === undefined ? undefined : dialectNamed(flags.dialect);
  const bytes = await read(capture);
  const inspection = inspectCapture(bytes, {
    ...(dialect !== undefined && { dialect }),
    ...(flags.contentType !== undefined && { contentType: flags.contentType }),
  });
  if (flags.json) this.stdout.line(terminalSafe(JSON.stringify(inspection, null, 2)));
  else this.stdout.write(inspectionText(inspection));
}

async function read(capture: string): Promise<Uint8Array> {
  const { InputError, messageOf } = await import('../base/errors.ts');
  const name = capture === '-' ? 'standard input' : capture;
  let bytes: Uint8Array;
  try {
    bytes = capture === '-' ? await readAll(process.stdin) : await readBounded(capture);
  } catch (error) {
    throw new InputError(`inspect: cannot read ${name}: ${reasonOf(error) ?? messageOf(error)}`, { cause: error });
  }
  if (bytes.length === 0) {
    throw new InputError(
      `inspect: ${name} is empty; capture a response body with: curl -N URL -d @body.json > capture.txt`,
    );
  }
  return bytes;
}

/** A response of hours is far smaller; what is larger is no capture, and would fill the memory. */
const MAX_CAPTURE_BYTES = 256 * 1024 * 1024;

async function readBounded(path: string): Promise<Uint8Array> {
  const { createReadStream } = await import('node:fs');
  return readAll(createReadStream(path));
}

async function readAll(stream: AsyncIterable<Uint8Array | string>): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream) {
    const bytes = Buffer.from(chunk as Uint8Array);
    size += bytes.length;
    if (size > MAX_CAPTURE_BYTES) throw new Error(`it is larger than ${MAX_CAPTURE_BYTES / 1024 / 1024} MiB`);
    chunks.push(bytes);
  }
  return Buffer.concat(chunks);
}

function reasonOf(error: unknown): string | undefined {
  switch ((error as NodeJS.ErrnoException).code) {
    case 'ENOENT':
      return 'there is no such file';
    case 'EACCES':
      return 'permission denied';
    case 'EISDIR':
      return 'it is a directory';
    default:
      return undefined;
  }
}

/** JSON leaves some characters that terminals act on as they are; written as escapes they are the same text. */
function terminalSafe(json: string): string {
  return json.replace(
    /[\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
