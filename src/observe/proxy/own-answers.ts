/** What the proxy itself says to a client: refusals, in one line, in the shape that clients of every dialect can read. */
import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

export function answer(
  res: ServerResponse,
  status: number,
  type: string,
  message: string,
  headers: readonly string[] = [],
): void {
  if (res.headersSent || res.destroyed) return;
  const body = JSON.stringify({ error: { message: `goodput proxy: ${message}`, type, code: status } });
  res.writeHead(status, [
    'content-type',
    'application/json',
    'content-length',
    String(Buffer.byteLength(body)),
    ...headers,
  ]);
  res.end(body);
}

/** What node's parser would not take: refused, and the connection closed. */
export function refuseBadRequest(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const status =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? '431 Request Header Fields Too Large'
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? '408 Request Timeout'
        : '400 Bad Request';
  socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
}
