/** Listening, with errors in the words of whoever asked for it. */
import type { Server } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { InputError, messageOf } from '../../base/errors.ts';

/** Listens. @returns `scheme://host:port`. @throws InputError */
export function listen(
  server: Server | TlsServer,
  host: string,
  port: number,
  flag: string,
  scheme: 'http' | 'https' = 'http',
): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const where = `${host}:${port}`;
      const why =
        error.code === 'EADDRINUSE'
          ? 'something listens there already; choose another port, or 0 for any'
          : error.code === 'EACCES'
            ? 'not allowed; choose a port above 1023'
            : error.code === 'EADDRNOTAVAIL' || error.code === 'ENOTFOUND'
              ? 'not an address of this machine'
              : messageOf(error);
      reject(new InputError(`${flag} ${where}: ${why}`, { cause: error }));
    });
    server.listen({ host, port, backlog: 4096 }, () => {
      server.removeAllListeners('error');
      const { address, family, port: taken } = server.address() as AddressInfo;
      resolve(`${scheme}://${family === 'IPv6' ? `[${address}]` : address}:${taken}`);
    });
  });
}
