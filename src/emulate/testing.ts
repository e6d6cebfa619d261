/** For tests: a client that decodes with `wire` and decides with the recorder, as any other client of the project does. */
import { type Agent, request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { type Ending, Recorder, type RequestRecord, type RequestSpec, type StreamEvent } from '../core/index.ts';
import { streamDecoder } from '../wire/index.ts';
import { monotonicMillis } from './host.ts';

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** Receipt of each read of the body, monotonic ms. */
  readonly reads: readonly number[];
  readonly events: readonly StreamEvent[];
  readonly record: RequestRecord;
}

export interface Ask {
  readonly path?: string;
  readonly method?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly agent?: Agent;
  /** Called at each read, with a way to drop the connection. */
  readonly onRead?: (text: string, drop: () => void) => void;
}

/** Sends one request and folds the answer into a record. Never rejects: a broken connection is an outcome. */
export function ask(url: string, given: Ask): Promise<Answer> {
  const path = given.path ?? '/v1/chat/completions';
  const body =
    given.body === undefined ? undefined : typeof given.body === 'string' ? given.body : JSON.stringify(given.body);
  const fields = (typeof given.body === 'object' ? given.body : {}) as Record<string, unknown>;
  const spec: RequestSpec = {
    operation: 0,
    attempt: 0,
    class: 'default',
    inputTokens: 0,
    outputTokens: (fields.max_tokens as number | undefined) ?? 0,
    choices: (fields.n as number | undefined) ?? 1,
    stream: fields.stream === true,
    ignoreEos: true,
  };
  const recorder = new Recorder(spec, monotonicMillis());
  recorder.dispatched(monotonicMillis());
  return new Promise((resolve) => {
    let status = 0;
    let headers: IncomingHttpHeaders = {};
    let text = '';
    const reads: number[] = [];
    const events: StreamEvent[] = [];
    const finish = (ending: Ending): void => {
      if (recorder.isEnded) return;
      recorder.ended(monotonicMillis(), ending);
      resolve({ status, headers, text, reads, events, record: recorder.record() });
    };
    const failed = (error: Error): void => finish({ kind: 'failed', reason: 'reset', detail: error.message });
    const outgoing = httpRequest(
      `${url}${path}`,
      {
        method: given.method ?? (body === undefined ? 'GET' : 'POST'),
        headers: { 'content-type': 'application/json', ...given.headers },
        agent: given.agent ?? false,
      },
      (incoming) => {
        status = incoming.statusCode ?? 0;
        headers = incoming.headers;
        recorder.headers(monotonicMillis(), status);
        const decoder = streamDecoder(
          path === '/v1/completions' ? 'openai.completions' : 'openai.chat',
          headers['content-type'],
        );
        const emit = (at: number) => (event: StreamEvent) => {
          events.push(event);
          recorder.event(at, event, false);
        };
        incoming.on('data', (bytes: Buffer) => {
          const at = monotonicMillis();
          reads.push(at);
          text += bytes.toString();
          if (status === 200) decoder.push(bytes, emit(at));
          given.onRead?.(text, () => outgoing.destroy());
        });
        incoming.on('end', () => {
          const at = monotonicMillis();
          if (status === 200) decoder.end(emit(at));
          finish(status === 200 ? { kind: 'closed' } : { kind: 'http-error', status, detail: text });
        });
        incoming.on('error', failed);
      },
    );
    outgoing.on('error', failed);
    outgoing.end(body);
  });
}

/** A chat request of three prompt tokens. */
export function chat(fields: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return { model: 'm', messages: [{ role: 'user', content: 'one two three' }], max_tokens: 6, stream: true, ...fields };
}
