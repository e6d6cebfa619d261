/**
 * One connection to an upstream. Plain TCP reads into a buffer of its own, used again for every read: no allocation and no
 * stream machinery between the socket and whoever listens. A reader that handed the bytes to a write still pending says so
 * (`giveBuffer`), and the next read gets another buffer.
 */
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

/** A read holds this much at most: a token event is a few hundred bytes; whoever fills it gets a larger one. */
const READ_BYTES = 4 * 1024;
const BULK_READ_BYTES = 32 * 1024;

/** An upstream that has vanished without a word is asked for after so much silence. */
const KEEP_ALIVE_MS = 30_000;

export interface ConnectionEvents {
  connected(): void;
  /** Bytes `[0, length)` of `bytes`, valid during the call alone unless `giveBuffer` is called in it. */
  read(bytes: Buffer, length: number): void;
  /** The upstream closed its side cleanly. */
  end(): void;
  /** The connection is gone; nothing follows. `error` is absent where it was closed cleanly or by us. */
  closed(error: NodeJS.ErrnoException | undefined): void;
  /** What was written has gone, after `write` said false. */
  drain(): void;
}

export interface Destination {
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
  /** Name the certificate must be for. */
  readonly servername?: string;
  readonly ca?: Buffer;
  readonly rejectUnauthorized?: boolean;
}

export class Connection {
  /** Requests it has carried, the present one included. */
  served = 0;
  isOpen = false;
  readonly socket: Socket;
  #events: ConnectionEvents | undefined;
  #buffer: Buffer | undefined;
  #bulk = false;
  #error: NodeJS.ErrnoException | undefined;

  constructor(to: Destination) {
    const { host, port } = to;
    if (to.tls) {
      this.socket = connectTls({
        host,
        port,
        ...(to.servername && { servername: to.servername }),
        ...(to.ca && { ca: to.ca }),
        rejectUnauthorized: to.rejectUnauthorized ?? true,
        ALPNProtocols: ['http/1.1'],
      });
      this.socket.setNoDelay(true);
      this.socket.setKeepAlive(true, KEEP_ALIVE_MS);
      this.socket.on('data', (bytes: Buffer) => this.#events?.read(bytes, bytes.length));
      this.socket.once('secureConnect', () => this.#opened());
    } else {
      this.socket = connect({
        host,
        port,
        noDelay: true,
        keepAlive: true,
        keepAliveInitialDelay: KEEP_ALIVE_MS,
        onread: {
          buffer: () => (this.#buffer ??= Buffer.allocUnsafeSlow(this.#bulk ? BULK_READ_BYTES : READ_BYTES)),
          callback: (length, bytes) => {
            const bulk = length === bytes.length || (this.#bulk && length > READ_BYTES);
            this.#events?.read(bytes as Buffer, length);
            if (bulk !== this.#bulk) {
              this.#bulk = bulk;
              this.#buffer = undefined;
            }
            return true;
          },
        },
      });
      this.socket.once('connect', () => this.#opened());
    }
    this.socket.on('end', () => this.#events?.end());
    this.socket.on('drain', () => this.#events?.drain());
    this.socket.on('error', (error) => {
      this.#error = error;
    });
    this.socket.once('close', () => {
      this.isOpen = false;
      const events = this.#events;
      this.#events = undefined;
      events?.closed(this.#error);
    });
  }

  /** Who is told from now on; undefined while the connection is idle. */
  listen(events: ConnectionEvents | undefined): void {
    this.#events = events;
  }

  /** The bytes of the read under way are still needed after it. */
  giveBuffer(): void {
    this.#buffer = undefined;
  }

  write(data: string | Uint8Array): boolean {
    return typeof data === 'string' ? this.socket.write(data, 'latin1') : this.socket.write(data);
  }

  pause(): void {
    this.socket.pause();
  }
  resume(): void {
    this.socket.resume();
  }

  /** Closes at once: the upstream sees a reset or an end before its next write. Nothing is told. */
  destroy(): void {
    this.#events = undefined;
    this.socket.destroy();
  }

  #opened(): void {
    this.isOpen = true;
    this.#events?.connected();
  }
}
