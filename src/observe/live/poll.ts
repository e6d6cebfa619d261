/** One look at a proxy's `/live` or an engine's `/metrics`. What answers neither is told with the reason. */
import { request } from 'undici';
import { InputError, messageOf, oneLine } from '../../base/errors.ts';
import type { Millis } from '../../base/units.ts';
import type { ReplicaEvidence } from '../../core/evidence.ts';
import type { LiveSnapshot } from '../cohorts/snapshot.ts';
import { evidenceOf, type Snapshot, SnapshotReader } from '../evidence/index.ts';

/** Longer than any `/live` or `/metrics` of ours; more is not read. */
const MAX_BYTES = 32 * 1024 * 1024;

export type Look =
  | { readonly kind: 'proxy'; readonly url: string; readonly snapshot: LiveSnapshot }
  /** What its metrics say of the time between two looks; at the first, since its process began. */
  | {
      readonly kind: 'engine';
      readonly url: string;
      readonly replicas: readonly ReplicaEvidence[];
      readonly since: boolean;
    }
  | { readonly kind: 'down'; readonly url: string; readonly why: string };

export interface PollOptions {
  readonly timeout: Millis;
  /** Windows of a proxy asked for. */
  readonly windows: number;
  /** Wall time, ms since 1970. */
  readonly wall: () => Millis;
}

/** Keeps what it needs of the last look: an engine's counters, and which of the two paths a URL answers. */
export class Watched {
  readonly url: string;
  readonly #reader = new SnapshotReader();
  #last: Snapshot | undefined;
  #kind: 'proxy' | 'engine' | undefined;

  /** @throws InputError where `url` is none. A user and password in it are sent, and never shown. */
  constructor(url: string) {
    let parsed: URL;
    try {
      parsed = new URL(/^[a-z]+:\/\//i.test(url) ? url : `http://${url}`);
    } catch {
      throw new InputError(
        `${oneLine(url)}: is no URL; give a proxy's admin address or an engine, like http://127.0.0.1:9464`,
      );
    }
    if (parsed.protocol !== 'http:' && parsed.protocol !== 'https:')
      throw new InputError(`${oneLine(url)}: ${parsed.protocol} cannot be watched; give an http or https URL`);
    this.#base = parsed;
    this.url = `${parsed.protocol}//${parsed.host}`;
  }
  readonly #base: URL;

  async look(options: PollOptions): Promise<Look> {
    const { url } = this;
    try {
      if (this.#kind !== 'engine') {
        const live = await this.#get(`/live?windows=${options.windows}&sketches=1`, options.timeout);
        if (live.status === 200 && live.text.startsWith('{')) {
          const snapshot = JSON.parse(live.text) as LiveSnapshot;
          if (snapshot.schema === 'goodput.live/1') {
            this.#kind = 'proxy';
            return { kind: 'proxy', url, snapshot };
          }
        }
        if (this.#kind === 'proxy') return { kind: 'down', url, why: `/live answered ${live.status}` };
      }
      const { status, text } = await this.#get('/metrics', options.timeout);
      if (status !== 200) return { kind: 'down', url, why: `neither /live nor /metrics is there (${status})` };
      this.#kind = 'engine';
      const taken = this.#reader.read(text, url, options.wall());
      const last = this.#last;
      this.#last = taken;
      const { replicas, errors } = evidenceOf([last ? [last, taken] : [taken]]);
      if (replicas.length === 0)
        return { kind: 'down', url, why: oneLine(errors[0] ?? 'its metrics are of no engine we know', 120) };
      return { kind: 'engine', url, replicas, since: last === undefined };
    } catch (error) {
      return { kind: 'down', url, why: oneLine(messageOf(error), 120) };
    }
  }

  async #get(path: string, timeout: Millis): Promise<{ status: number; text: string }> {
    const target = new URL(path, this.#base);
    const { username, password } = this.#base;
    target.username = '';
    target.password = '';
    const { statusCode, body } = await request(target, {
      headersTimeout: timeout,
      bodyTimeout: timeout,
      ...(username && {
        headers: {
          authorization: `Basic ${Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64')}`,
        },
      }),
    });
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of body as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > MAX_BYTES) {
        body.destroy();
        throw new Error(`${path} is longer than ${MAX_BYTES / 1024 / 1024} MiB`);
      }
      chunks.push(chunk);
    }
    return { status: statusCode, text: Buffer.concat(chunks).toString('utf8') };
  }
}
