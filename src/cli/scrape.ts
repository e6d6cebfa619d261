/** `goodput scrape URL…`: servers' metrics over time, into a folder that `merge` and `diagnose` read. */
import { InputError } from '../base/errors.ts';
import { formatDuration, parseDuration } from '../base/units.ts';
import { type Cli, EXIT } from './cli.ts';
import { command, JSON_FLAG, text } from './command.ts';
import { hostClock } from './host.ts';

interface Flags {
  readonly json: boolean;
  readonly every?: string;
  readonly duration?: string;
  readonly out?: string;
  readonly timeout?: string;
  readonly maxSize?: number;
}

export const scrape = command({
  func: runScrape,
  parameters: {
    flags: {
      json: JSON_FLAG,
      every: text('How often each is scraped; 5s unless given', 'time'),
      duration: text('Stop after this long; until interrupted unless given', 'time'),
      out: text('The folder the scrapes go to; scrapes unless given', 'DIR'),
      timeout: text('How long one scrape may take; at most 10s unless given', 'time'),
      maxSize: {
        kind: 'parsed',
        parse: Number,
        brief: 'MiB the folder may hold, the oldest go first; 512 unless given',
        placeholder: 'MiB',
        optional: true,
      },
    },
    positional: {
      kind: 'array',
      parameter: {
        brief: 'Where metrics are: http://host:8000 (/metrics unless a path is given)',
        parse: String,
        placeholder: 'URL',
      },
      minimum: 1,
    },
  },
  docs: {
    brief: "Scrape servers' metrics over time, into a folder that merge and diagnose read",
    fullDescription:
      'Only the URLs given are asked, redirects are not followed. A bearer token is taken from GOODPUT_SCRAPE_TOKEN alone.\n' +
      'Exit codes: 0 fine, 2 bad usage, 3 some server never answered.',
  },
});

export async function runScrape(this: Cli, flags: Flags, ...urls: string[]): Promise<void> {
  const { ScrapeWriter, startScraper, targetOf } = await import('../observe/scrape/index.ts');
  const every = parseDuration(flags.every ?? '5s', '--every');
  if (!(every >= 100)) throw new InputError(`--every: ${flags.every} is too often; give at least 100ms`);
  const duration = flags.duration === undefined ? undefined : parseDuration(flags.duration, '--duration');
  const timeout = flags.timeout === undefined ? undefined : parseDuration(flags.timeout, '--timeout');
  if (timeout !== undefined && !(timeout > 0)) throw new InputError('--timeout: it must be above 0');
  if (flags.maxSize !== undefined && !(flags.maxSize >= 1)) throw new InputError('--max-size: give at least 1 MiB');
  const targets = urls.map(targetOf);
  const twice = targets.find((t, i) => targets.findIndex((o) => o.name === t.name) !== i);
  if (twice !== undefined) throw new InputError(`scrape: ${twice.name} is named twice; name each server once`);
  const maxBytes = (flags.maxSize ?? 512) * 1024 * 1024;
  const writer = new ScrapeWriter(flags.out ?? 'scrapes', {
    maxBytes,
    segmentBytes: Math.min(8 * 1024 * 1024, maxBytes / 4),
  });
  const { clock, epochWall } = hostClock();
  const token = this.env.GOODPUT_SCRAPE_TOKEN;
  const failing = new Set<string>();
  const scraper = startScraper(targets, writer, {
    clock,
    epochWall,
    every,
    ...(timeout !== undefined && { timeout }),
    ...(token !== undefined && token !== '' && { token }),
    // Said when it changes, not each time.
    onScrape: ({ name }, error) => {
      if (error === undefined ? failing.delete(name) : !failing.has(name)) {
        if (error !== undefined) failing.add(name);
        this.stderr.line(error === undefined ? `${name}: answers again` : `${name}: ${error}`);
      }
    },
  });
  if (this.stderr.isTTY) {
    this.stderr.line(
      `Scraping ${targets.map((t) => t.name).join(', ')} every ${formatDuration(every)} into ${writer.folder}; Ctrl-C stops`,
    );
  }
  await new Promise<void>((resolve) => {
    const done = (): void => {
      process.off('SIGINT', done);
      process.off('SIGTERM', done);
      resolve();
    };
    process.on('SIGINT', done);
    process.on('SIGTERM', done);
    if (duration !== undefined) clock.at(clock.now() + duration, done);
  });
  await scraper.stop();
  const summary = {
    schema: 'goodput.scrape/1',
    folder: writer.folder,
    targets: scraper.counts.map(({ target, ok, failed, skipped, lastError }) => ({
      target,
      ok,
      failed,
      skipped,
      ...(lastError !== undefined && { last_error: lastError }),
    })),
    dropped: writer.dropped,
    segments_removed: writer.removed,
    ...(writer.problem !== undefined && { problem: writer.problem }),
  };
  if (flags.json) this.stdout.line(JSON.stringify(summary, null, 2));
  else {
    for (const { target, ok, failed, last_error } of summary.targets) {
      this.stdout.line(`${target}: ${ok} scrapes${failed > 0 ? `, ${failed} failed (${last_error})` : ''}`);
    }
    if (summary.dropped > 0) this.stdout.line(`${summary.dropped} scrapes could not be written: ${summary.problem}`);
    if (summary.segments_removed > 0)
      this.stdout.line(
        `${summary.segments_removed} oldest segments removed: the folder is held below ${flags.maxSize ?? 512} MiB`,
      );
    this.stdout.line(`Scrapes: ${writer.folder}  (goodput merge ${writer.folder})`);
  }
  if (scraper.counts.some((c) => c.ok === 0) || writer.dropped > 0) this.exit(EXIT.invalid);
}
