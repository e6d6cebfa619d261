/** What the proxy shows to callers that speak TLS to it: its certificate and key, from files. */
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { InputError, messageOf, oneLine } from '../../base/errors.ts';

export interface TlsIdentity {
  /** PEM: the certificate, and those of the authorities between. */
  readonly cert: Buffer;
  readonly key: Buffer;
}

/** @throws InputError where one of the two is missing, cannot be read, is none, or does not belong to the other. */
export function tlsIdentity(cert: string | undefined, key: string | undefined): TlsIdentity | undefined {
  if (cert === undefined && key === undefined) return undefined;
  if (cert === undefined) throw new InputError('--tls-key: give --tls-cert with it');
  if (key === undefined) throw new InputError('--tls-cert: give --tls-key with it');
  const identity = {
    cert: readPem(cert, '--tls-cert', /-----BEGIN CERTIFICATE-----/, 'certificate'),
    key: readPem(key, '--tls-key', /-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----/, 'private key'),
  };
  try {
    createSecureContext(identity);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? '';
    const why = /MISMATCH/.test(code)
      ? 'the key is not the one of the certificate'
      : /PASSWORD|INTERRUPTED_OR_CANCELLED|BAD_DECRYPT/.test(code)
        ? 'the key is encrypted; give one that is not, readable by this user alone'
        : messageOf(error);
    throw new InputError(`--tls-cert, --tls-key: ${why}`, { cause: error });
  }
  return identity;
}

/** @throws InputError */
export function readPem(file: string, flag: string, has: RegExp, what: string): Buffer {
  let pem: Buffer;
  try {
    pem = readFileSync(file);
  } catch (error) {
    throw new InputError(`${flag}: ${messageOf(error)}; name a readable PEM file`, { cause: error });
  }
  if (!has.test(pem.toString('latin1'))) throw new InputError(`${flag}: ${oneLine(file)} holds no PEM ${what}`);
  return pem;
}
