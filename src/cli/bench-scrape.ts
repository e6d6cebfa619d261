/** `bench --scrape`: servers' own metrics scraped during a run into its folder, where `merge` and `diagnose` find them. */
import { InputError, messageOf } from '../base/errors.ts';
import { type Millis, parseDuration } from '../base/units.ts';
import type { Target } from '../observe/scrape/index.ts';
import type { Cli } from './cli.ts';
import type { HostClock } from './host.ts';

export interface ScrapeFlags {
  readonly scrape?: readonly string[];
  readonly scrapeEvery?: string;
}

export const SCRAPE_FLAGS = {
  scrape: {
    kind: 'parsed',
    parse: String,
    optional: true,
    variadic: true,
    brief: "Scrape servers' own metrics into the run folder meanwhile: http://host:8000[,…] (/metrics unless a path)",
    placeholder: 'URL,…',
  },
  scrapeEvery: {
    kind: 'parsed',
    parse: String,
    optional: true,
    brief: 'How often (default 5s)',
    placeholder: 'time',
  },
} as const;

export interface ScrapePlan {
  readonly targets: readonly Target[];
  readonly every: Millis;
}

/** A server that answers late must not hold a run's end up for long. */
const TIMEOUT: Millis = 5000;

/** @throws InputError, before anything is sent. */
export async function scrapePlan({ scrape, scrapeEvery }: ScrapeFlags): Promise<ScrapePlan | undefined> {
  const urls = (scrape ?? []).flatMap((text) => text.split(',')).filter((url) => url.trim() !== '');
  if (urls.length === 0) {
    if (scrapeEvery !== undefined) throw new InputError('--scrape-every: it needs --scrape URL');
    return undefined;
  }
  const every = parseDuration(scrapeEvery ?? '5s', '--scrape-every');
  if (!(every >= 100)) throw new InputError(`--scrape-every: ${scrapeEvery} is too often; give at least 100ms`);
  const { targetOf } = await import('../observe/scrape/index.ts');
  const targets = urls.map((url) => targetOf(url.trim()));
  return { targets: targets.filter((t, i) => targets.findIndex((o) => o.name === t.name) === i), every };
}

/**
 * Scrapes until the returned function is called; that takes each once more and says how it went. Whatever fails here is said
 * and counted, and never the run's.
 */
export async function scrapeInto(
  folder: string,
  { targets, every }: ScrapePlan,
  { clock, epochWall }: HostClock,
  cli: Pick<Cli, 'env' | 'stderr'>,
): Promise<() => Promise<void>> {
  const say = (text: string): void => cli.stderr.line(`Scrape    ${text}`);
  try {
    const { ScrapeWriter, startScraper } = await import('../observe/scrape/index.ts');
    const writer = new ScrapeWriter(folder);
    const token = cli.env.GOODPUT_SCRAPE_TOKEN;
    const scraper = startScraper(targets, writer, {
      clock,
      epochWall,
      every,
      timeout: Math.min(every, TIMEOUT),
      ...(token !== undefined && token !== '' && { token }),
    });
    return async () => {
      try {
        await scraper.stop();
      } catch (error) {
        say(`the last scrapes could not be kept (${messageOf(error)})`);
      }
      for (const { target, ok, failed, skipped, lastError } of scraper.counts) {
        const missed = failed > 0 ? `, ${failed} failed (${lastError})` : '';
        say(
          `${target}: ${ok} scrapes${missed}${skipped > 0 ? `, ${skipped} passed over: it was still answering` : ''}`,
        );
      }
      if (writer.dropped > 0) say(`${writer.dropped} scrapes could not be written (${writer.problem})`);
    };
  } catch (error) {
    say(`no metrics are scraped (${messageOf(error)})`);
    return async () => {};
  }
}
