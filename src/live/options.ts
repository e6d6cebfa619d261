/** What a live engine needs to know. Plain data, except that an API key in it is a secret. */
import type { Millis } from '../base/units.ts';
import type { BodyOptions } from '../wire/index.ts';
import type { TlsOptions } from './dial.ts';
import type { Environment } from './proxy.ts';

export interface LiveOptions extends TlsOptions {
  /** Where, as the user gave it: a whole URL, an API's base URL, or a bare host. */
  readonly url: string;
  /** The API spoken there; read from the URL's path when not given. */
  readonly dialect?: string;
  /** Sent in each request's body (or path); probe for it where the user names none. */
  readonly model?: string;
  /** Sent with every request, over those of the dialect. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The API key, from `keyFromEnvironment`. Sent in the dialect's own header; shown and stored nowhere. */
  readonly key?: string;
  /**
   * Each request carries `x-request-id: <prefix><operation>-<attempt>`, by which a server's logs, spans and stamps can be
   * joined to our records. Default `op-`.
   */
  readonly idPrefix?: string;
  /** For `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`. Without it no proxy is used. */
  readonly env?: Environment;
  /** How request bodies are made. */
  readonly body?: BodyOptions;
  /** Bound on one response, bytes; default 256 MiB. */
  readonly maxResponseBytes?: number;
  /** How long an idle connection is kept, default 4 s: below what common servers keep theirs. */
  readonly keepAlive?: Millis;
  /** Bound on opening one connection; default none, since deadlines come from outside. */
  readonly connectTimeout?: Millis;
}
