import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterEach, describe, expect, it } from 'vitest';
import { InputError } from '../../base/errors.ts';
import { tlsIdentity } from './identity.ts';
import {
  chat,
  chunk,
  client,
  DONE,
  FINISH,
  LAST_CHUNK,
  origin,
  requests,
  STREAM_HEAD,
  token,
  watchedProxy,
} from './testing.ts';

const closers: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});
const fixture = (name: string): string =>
  new URL(`../../../test/conformance/fixtures/localhost.${name}.pem`, import.meta.url).pathname;
const IDENTITY = tlsIdentity(fixture('crt'), fixture('key'));

async function secured(serve: (write: (text: string) => void, socket: import('node:net').Socket) => void) {
  const server = await origin((socket) => requests(socket, () => serve((text) => void socket.write(text), socket)));
  closers.push(server.close);
  const watched = await watchedProxy(server.url, IDENTITY && { tls: IDENTITY });
  closers.push(() => watched.proxy.close());
  const ask = (request: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket = connect(
        {
          host: '127.0.0.1',
          port: Number(new URL(watched.proxy.url).port),
          ca: readFileSync(fixture('crt')),
          servername: 'localhost',
        },
        () => void socket.write(request),
      );
      let text = '';
      socket.on('data', (bytes) => {
        text += bytes;
      });
      socket.on('error', reject);
      socket.on('close', () => resolve(text));
      closers.push(() => socket.destroy());
    });
  return { ...watched, ask };
}

describe('callers over TLS', () => {
  it('get the same bytes, and the same record', async () => {
    const whole = [token('Hello'), token('x'.repeat(100_000)), FINISH, DONE].map(chunk).join('') + LAST_CHUNK;
    const { proxy, ask, final } = await secured((write) => write(STREAM_HEAD + whole));
    expect(proxy.url).toMatch(/^https:/);
    const text = await ask(chat('connection: close\r\n'));
    expect(text.slice(text.indexOf('\r\n\r\n') + 4)).toBe(whole);
    const { record } = await final(1);
    expect([record.outcome, record.timeline.length]).toEqual(['completed', 2]);
  });

  it('are broken off where the upstream breaks off, and reach it when they leave', async () => {
    const broken = await secured((write, socket) => {
      write(STREAM_HEAD + chunk(token('Hello')));
      setImmediate(() => socket.resetAndDestroy());
    });
    for (const request of [chat(), chat().replace('HTTP/1.1', 'HTTP/1.0')]) {
      const text = await broken.ask(request).catch(() => 'broken');
      expect(text).not.toMatch(/0\r\n\r\n$/);
    }
    expect((await broken.final(2)).record.outcome).toBe('failed');
  });

  it('are refused where they speak none, and the proxy goes on', async () => {
    const { proxy, ask } = await secured((write) => write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'));
    const c = await client(proxy.url);
    c.send('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
    expect((await c.closed).text).not.toMatch(/200/);
    expect(await ask('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')).toMatch(/ok$/);
  });
});

describe('certificate and key', () => {
  it('are refused in one line where one is missing, is none, or is not the other’s', () => {
    const dir = mkdtempSync(join(tmpdir(), 'goodput-tls-'));
    closers.push(() => rmSync(dir, { recursive: true }));
    const file = (name: string, text: string): string => {
      writeFileSync(join(dir, name), text);
      return join(dir, name);
    };
    const pair = (cipher?: { cipher: string; passphrase: string }): string =>
      generateKeyPairSync('rsa', {
        modulusLength: 2048,
        publicKeyEncoding: { type: 'spki', format: 'pem' },
        privateKeyEncoding: { type: 'pkcs8', format: 'pem', ...cipher },
      }).privateKey;
    const crt = fixture('crt');
    const key = fixture('key');
    const why = (c?: string, k?: string): string => {
      try {
        tlsIdentity(c, k);
        return 'accepted';
      } catch (error) {
        expect(error).toBeInstanceOf(InputError);
        return (error as Error).message;
      }
    };
    expect(tlsIdentity(undefined, undefined)).toBeUndefined();
    expect(why(crt, key)).toBe('accepted');
    expect(why(crt)).toMatch(/^--tls-cert: give --tls-key/);
    expect(why(undefined, key)).toMatch(/^--tls-key: give --tls-cert/);
    expect(why(join(dir, 'none'), key)).toMatch(/^--tls-cert: ENOENT/);
    expect(why(crt, crt)).toMatch(/^--tls-key: .* holds no PEM private key$/);
    expect(why(file('empty', ''), key)).toMatch(/holds no PEM certificate$/);
    expect(why(crt, file('other', pair()))).toMatch(/the key is not the one of the certificate/);
    expect(why(crt, file('locked', pair({ cipher: 'aes-256-cbc', passphrase: 'secret' })))).toMatch(
      /the key is encrypted/,
    );
    expect(why(file('bad', '-----BEGIN CERTIFICATE-----\nzzz\n-----END CERTIFICATE-----\n'), key)).not.toMatch(/\n/);
  });
});
