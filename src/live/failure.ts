/** What a transport error amounts to, and one line for the user that says what to do about it. */
import { messageOf } from '../base/errors.ts';
import type { Ending, TransportFailure } from '../core/engine.ts';
import type { Redactor } from './secrets.ts';

/** Where the attempt stood when the error came; the same `ECONNRESET` means different things. */
export interface FailurePlace {
  /** `host:port` as the user knows it. */
  readonly host: string;
  readonly secure: boolean;
  readonly phase: 'connecting' | 'waiting' | 'receiving';
  /** A connection open and idle before this request that carried no byte of its response. */
  readonly untouchedReuse: boolean;
}

type Failed = Extract<Ending, { kind: 'failed' }>;

/** A connection error of ours that already knows its reason (a proxy that refused, say). */
export class ConnectionFailure extends Error {
  readonly reason: TransportFailure;
  constructor(reason: TransportFailure, message: string) {
    super(message);
    this.name = 'ConnectionFailure';
    this.reason = reason;
  }
}

export function failureOf(error: unknown, place: FailurePlace, redact: Redactor): Failed {
  const [reason, detail] = explain(error, place);
  const stale = reason === 'reset' && place.untouchedReuse;
  return { kind: 'failed', reason, detail: redact(detail), ...(stale && { stale }) };
}

function explain(error: unknown, place: FailurePlace): [TransportFailure, string] {
  if (error instanceof ConnectionFailure) return [error.reason, error.message];
  const { name, code, message } = causeOf(error);
  const { host } = place;

  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN' || code === 'EAI_NODATA') {
    return ['dns', `the name ${host} cannot be resolved (${code}); check the spelling, the network and the DNS`];
  }
  if (isTls(code, message)) return ['tls', explainTls(code, message, host)];
  const open = OPEN_FILES[code];
  if (open !== undefined) return ['client-limit', `${open} (${code})`];
  const connect = CONNECT[code];
  if (connect !== undefined) return ['connect', `${host} ${connect} (${code})`];
  if (name === 'HTTPParserError') {
    if (/EOF/.test(message)) return ['reset', 'the connection closed in the middle of the response'];
    const hint = place.secure ? '' : '; if it expects TLS, write https://';
    const why = /\(([^)]*)\)/.exec(message)?.[1] ?? message;
    return ['protocol', `${host} did not answer in HTTP/1.1 (${why})${hint}`];
  }
  switch (code) {
    case 'UND_ERR_RES_EXCEEDED_MAX_SIZE':
      return ['too-large', 'the response is larger than the bound on one response'];
    case 'UND_ERR_HEADERS_OVERFLOW':
      return ['protocol', 'the response headers are larger than the bound on headers (16 KiB)'];
    case 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH':
      return ['reset', 'the connection closed before the content-length announced'];
    case 'UND_ERR_DESTROYED':
    case 'UND_ERR_CLOSED':
      return ['engine', 'the engine was closed'];
    case 'ECONNRESET':
    case 'ECONNABORTED':
    case 'EPIPE':
    case 'UND_ERR_SOCKET':
      if (place.phase === 'connecting') return ['connect', `${host} closed the connection while it was being opened`];
      if (place.untouchedReuse)
        return ['reset', 'an idle connection was closed by the server just as it was to be used'];
      if (place.phase === 'waiting') return ['reset', `${host} closed the connection before it answered`];
      return ['reset', 'the connection was reset in the middle of the response'];
  }
  return ['engine', code === '' ? message : `${message} (${code})`];
}

const CONNECT: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'refuses connections; is the server running, and on this port?',
  ETIMEDOUT: 'does not answer; check the address, the port and firewalls',
  UND_ERR_CONNECT_TIMEOUT: 'does not answer; check the address, the port and firewalls',
  EHOSTUNREACH: 'cannot be reached; check the address and the network',
  ENETUNREACH: 'cannot be reached; check the address and the network',
  EHOSTDOWN: 'cannot be reached; check the address and the network',
  EACCES: 'may not be connected to from here; check firewalls',
  EPERM: 'may not be connected to from here; check firewalls',
  EINVAL: 'is no address that can be connected to',
};

/** The client's own limits, not the server's. */
const OPEN_FILES: Readonly<Record<string, string>> = {
  EMFILE: 'this process may open no more files; raise `ulimit -n` or lower the load',
  ENFILE: 'this machine can open no more files; raise the system limit or lower the load',
  EADDRNOTAVAIL: 'this machine has no free local port for another connection; lower the load or use more machines',
  ENOBUFS: 'this machine has no buffers for another connection; lower the load',
};

const CERTIFICATE =
  /SELF_SIGNED|UNABLE_TO_|CERT_|_CERT$|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH_EXCEEDED|HOSTNAME_MISMATCH/;

function isTls(code: string, message: string): boolean {
  return (
    code.startsWith('ERR_TLS_') ||
    code.startsWith('ERR_SSL_') ||
    code === 'EPROTO' ||
    CERTIFICATE.test(code) ||
    message.includes('before secure TLS connection')
  );
}

function explainTls(code: string, message: string, host: string): string {
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return `the certificate of ${host} is for another name; use the name it was made for, or --insecure to accept it`;
  }
  if (code === 'CERT_HAS_EXPIRED') {
    return `the certificate of ${host} has expired; renew it, or --insecure to accept it`;
  }
  if (CERTIFICATE.test(code)) {
    const why = code.toLowerCase().replaceAll('_', ' ');
    return `the certificate of ${host} is not trusted (${why}); name its authority with --cacert FILE, or --insecure to accept it`;
  }
  if (/wrong version number|packet length too long|WRONG_VERSION_NUMBER|HTTP_REQUEST/i.test(`${code} ${message}`)) {
    return `${host} does not speak TLS on this port; write http:// instead of https://`;
  }
  return `no TLS connection to ${host}: ${message.slice(0, 160)}${code && ` (${code})`}`;
}

/** The code and message that matter: of several addresses tried the first error, of a wrapped error the cause. */
function causeOf(error: unknown): { name: string; code: string; message: string } {
  const message = messageOf(error);
  if (typeof error !== 'object' || error === null) return { name: '', code: '', message };
  const { name, code, cause, errors } = error as { name?: unknown; code?: unknown; cause?: unknown; errors?: unknown };
  if (Array.isArray(errors) && errors.length > 0) return causeOf(errors[0]);
  const called = String(name ?? '');
  if (typeof code === 'string') return { name: called, code, message };
  return cause === undefined ? { name: called, code: '', message } : causeOf(cause);
}
