/** Opens one connection to the target: TCP, through a proxy where there is one, TLS where asked. */
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { buildConnector, Client } from 'undici';
import { InputError, messageOf } from '../base/errors.ts';
import type { Millis } from '../base/units.ts';
import type { Cancel } from '../core/clock.ts';
import { ConnectionFailure } from './failure.ts';
import type { HttpProxy } from './proxy.ts';
import { redactUrl } from './secrets.ts';

export interface TlsOptions {
  /** A PEM file with the authorities to trust, instead of the built-in ones (as curl's `--cacert`). */
  readonly cacert?: string;
  /** Accept any certificate. */
  readonly insecure?: boolean;
}

/** Opens one connection and calls back once, never inside the call; cancelling destroys it and calls back no more. */
export type Dial = (done: (error: Error | null, socket: Socket | undefined) => void) => Cancel;

/** @throws InputError when the authorities' file cannot be read. */
export function dialer(origin: URL, proxy: HttpProxy | undefined, tls: TlsOptions, timeout: Millis): Dial {
  const trust = {
    ...(tls.cacert !== undefined && { ca: readAuthorities(tls.cacert) }),
    ...(tls.insecure && { rejectUnauthorized: false }),
  };
  const connect = buildConnector({ ...trust, timeout, port: 0 });
  const to = { hostname: bare(origin.hostname), host: origin.host, protocol: origin.protocol, port: origin.port };
  if (proxy === undefined) return (done) => open(connect, to, done);

  const proxyTo = {
    hostname: bare(proxy.url.hostname),
    host: proxy.url.host,
    protocol: proxy.url.protocol,
    port: proxy.url.port,
  };
  const named = `the proxy ${redactUrl(proxy.url.origin)} (${proxy.variable})`;
  const viaProxy: Dial = (done) =>
    open(connect, proxyTo, (error, socket) =>
      done(error && new ConnectionFailure('connect', `${named}: ${messageOf(error)}`), socket),
    );
  if (origin.protocol === 'http:') return viaProxy;

  return (done) => {
    let cancel: Cancel = () => {};
    let over = false;
    const end = (error: Error | null, socket: Socket | undefined): void => {
      if (over) socket?.destroy();
      else done(error, socket);
      over = true;
    };
    const client = new Client(proxy.url.origin, {
      connect: (_, callback) => {
        cancel = viaProxy((error, socket) => (error ? callback(error, null) : callback(null, socket as Socket)));
      },
    });
    const authority = `${origin.hostname}:${origin.port || 443}`;
    const headers = { host: authority, ...(proxy.authorization && { 'proxy-authorization': proxy.authorization }) };
    client.connect({ path: authority, headers }, (error, data) => {
      if (error) {
        void client.destroy();
        end(
          error instanceof ConnectionFailure
            ? error
            : new ConnectionFailure('connect', `${named}: ${messageOf(error)}`),
          undefined,
        );
      } else if (data.statusCode !== 200) {
        data.socket.on('error', () => {}).destroy();
        void client.destroy();
        end(
          new ConnectionFailure(
            'connect',
            `${named} ${REFUSED[data.statusCode] ?? 'refused'} to connect to ${authority} (${data.statusCode})`,
          ),
          undefined,
        );
      } else if (over) {
        data.socket.destroy();
      } else {
        cancel = open(connect, { ...to, httpSocket: data.socket as Socket }, end);
      }
    });
    return () => {
      over = true;
      cancel();
      void client.destroy();
    };
  };
}

const REFUSED: Readonly<Record<number, string>> = {
  407: 'asks for a user and password (http://user:password@host) before it agrees',
  403: 'forbids us',
};

function open(
  connect: buildConnector.connector,
  to: buildConnector.Options,
  done: (error: Error | null, socket: Socket | undefined) => void,
): Cancel {
  let over = false;
  // The connector gives its socket back, though its type does not say so.
  const socket = connect(to, (error, connected) => {
    if (over) return;
    over = true;
    done(error, connected ?? undefined);
  }) as unknown as Socket | undefined;
  return () => {
    over = true;
    socket?.on('error', () => {}).destroy();
  };
}

function readAuthorities(file: string): Buffer {
  let pem: Buffer;
  try {
    pem = readFileSync(file);
  } catch (error) {
    throw new InputError(`--cacert: ${messageOf(error)}; name a readable PEM file`, { cause: error });
  }
  if (!pem.includes('-----BEGIN CERTIFICATE-----')) {
    throw new InputError(`--cacert: ${file} holds no PEM certificate; convert it with openssl x509 -outform PEM`);
  }
  return pem;
}

const bare = (hostname: string): string => hostname.replace(/^\[|\]$/g, '');
