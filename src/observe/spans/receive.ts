/** Receives spans by OTLP/HTTP on /v1/traces: protobuf and JSON, gzip or not, bounded. Only what tells of requests is handed on. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { InputError, messageOf, oneLine } from '../../base/errors.ts';
import { spansOfJson, spansOfProtobuf } from './otlp.ts';
import { requestOf, type SpanEvidence } from './request.ts';

export const MOST_BODY = 16 * 1024 * 1024;
const unzip = promisify(gunzip);

export interface ReceiverCounts {
  /** Spans that told of a request, other spans, and bodies refused. */
  kept: number;
  other: number;
  refused: number;
}

export interface Receiver {
  readonly server: Server;
  readonly counts: ReceiverCounts;
}

/** Not listening yet. @param take what each kept span is handed to; a throw of it refuses the body. */
export function spanReceiver(take: (spans: readonly SpanEvidence[]) => void): Receiver {
  const counts: ReceiverCounts = { kept: 0, other: 0, refused: 0 };
  const server = createServer({ requestTimeout: 30_000, headersTimeout: 10_000, maxHeaderSize: 16_384 }, (req, res) => {
    void answer(req, res, take, counts);
  });
  server.maxConnections = 256;
  return { server, counts };
}

async function answer(
  req: IncomingMessage,
  res: ServerResponse,
  take: (spans: readonly SpanEvidence[]) => void,
  counts: ReceiverCounts,
): Promise<void> {
  const path = (req.url ?? '').split('?', 1)[0];
  const refuse = (status: number, message: string): void => {
    counts.refused++;
    if (res.headersSent || res.destroyed) return;
    res.writeHead(status, { 'content-type': 'application/json', connection: 'close' });
    res.end(JSON.stringify({ code: status, message: oneLine(message) }));
  };
  if (path === '/healthz' && req.method === 'GET') {
    res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(counts));
    return;
  }
  if (path !== '/v1/traces') {
    refuse(404, 'spans are received at /v1/traces');
    return;
  }
  if (req.method !== 'POST') {
    refuse(405, 'spans are posted');
    return;
  }
  const type = (req.headers['content-type'] ?? '').split(';', 1)[0]!.trim().toLowerCase();
  const isJson = type === 'application/json';
  if (!isJson && type !== 'application/x-protobuf') {
    refuse(
      415,
      'a body is application/x-protobuf or application/json (set OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf)',
    );
    return;
  }
  try {
    const body = await bodyOf(req);
    const spans = isJson ? spansOfJson(body.toString('utf8')) : spansOfProtobuf(body);
    const kept = spans.flatMap((span) => requestOf(span) ?? []);
    take(kept);
    counts.kept += kept.length;
    counts.other += spans.length - kept.length;
    res.writeHead(200, { 'content-type': type });
    res.end(isJson ? '{}' : '');
  } catch (error) {
    refuse(error instanceof InputError ? 400 : error instanceof TooLarge ? 413 : 500, messageOf(error));
  }
}

class TooLarge extends Error {}

async function bodyOf(req: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of req as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MOST_BODY) throw new TooLarge(`the body is larger than ${MOST_BODY / 1024 / 1024} MiB`);
    chunks.push(chunk);
  }
  const body = Buffer.concat(chunks);
  const encoding = (req.headers['content-encoding'] ?? 'identity').trim().toLowerCase();
  if (encoding === 'identity') return body;
  if (encoding !== 'gzip')
    throw new InputError(`the content encoding '${oneLine(encoding, 40)}' is not read; send gzip or none`);
  try {
    return await unzip(body, { maxOutputLength: MOST_BODY });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE')
      throw new TooLarge(`the body unpacks to more than ${MOST_BODY / 1024 / 1024} MiB`);
    throw new InputError(`the body is no gzip: ${messageOf(error)}`, { cause: error });
  }
}
