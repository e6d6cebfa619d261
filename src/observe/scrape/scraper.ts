/** Scrapes targets at a steady pace into a folder. One that is slow or gone delays no other. */
import { messageOf } from '../../base/errors.ts';
import type { Millis } from '../../base/units.ts';
import type { Cancel, Clock } from '../../core/clock.ts';
import { scrapeOnce, type Target } from './fetch.ts';
import type { ScrapeWriter } from './writer.ts';

export interface ScraperOptions {
  readonly clock: Clock;
  /** Wall time of the clock's epoch, Unix ms. */
  readonly epochWall: Millis;
  readonly every: Millis;
  /** At most `every`, unless given. */
  readonly timeout?: Millis;
  readonly token?: string;
  readonly onScrape?: (target: Target, error: string | undefined) => void;
}

export interface TargetCount {
  readonly target: string;
  ok: number;
  failed: number;
  /** Turns passed over since the scrape before was not done. */
  skipped: number;
  lastError?: string;
}

export interface Scraper {
  readonly counts: readonly TargetCount[];
  /** Takes each target once more, so that the window ends here, and resolves when all is written. */
  stop(): Promise<void>;
}

export function startScraper(targets: readonly Target[], writer: ScrapeWriter, options: ScraperOptions): Scraper {
  const { clock, every } = options;
  const timeout = options.timeout ?? Math.min(every, 10_000);
  const counts = targets.map(({ name }): TargetCount => ({ target: name, ok: 0, failed: 0, skipped: 0 }));
  const running = targets.map((): Promise<void> | undefined => undefined);
  const cancels: Cancel[] = targets.map(() => () => {});
  const start = clock.now();
  let stopped = false;

  const once = async (i: number): Promise<void> => {
    const target = targets[i]!;
    const count = counts[i]!;
    const at = Math.round(options.epochWall + clock.now());
    let body = '';
    let error: string | undefined;
    try {
      body = await scrapeOnce(target, { timeout, ...(options.token !== undefined && { token: options.token }) });
      count.ok++;
    } catch (thrown) {
      error = messageOf(thrown);
      count.failed++;
      count.lastError = error;
    }
    await writer.add({ target: target.name, at, body, ...(error !== undefined && { error }) });
    options.onScrape?.(target, error);
  };
  const begin = (i: number): Promise<void> => {
    running[i] = once(i).finally(() => {
      running[i] = undefined;
    });
    return running[i];
  };
  const turn = (i: number, k: number): void => {
    if (stopped) return;
    if (running[i] === undefined) void begin(i);
    else counts[i]!.skipped++;
    // From the start, not from the last: no drift. Turns missed altogether are passed over.
    const next = Math.max(k + 1, Math.ceil((clock.now() - start) / every));
    cancels[i] = clock.at(start + next * every, () => turn(i, next));
  };
  targets.forEach((_, i) => {
    cancels[i] = clock.at(start, () => turn(i, 0));
  });
  return {
    counts,
    async stop() {
      stopped = true;
      for (const cancel of cancels) cancel();
      await Promise.all(running);
      await Promise.all(targets.map((_, i) => begin(i)));
      await writer.close();
    },
  };
}
