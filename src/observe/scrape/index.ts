/** Server metrics over time: scraped into a folder, and read back as evidence. */
export { scrapeOnce, type Target, targetOf } from './fetch.ts';
export { isScrapeFolder, readScrapes, type Scrapes, scrapesIn, snapshotsOf } from './read.ts';
export { type Scraper, type ScraperOptions, startScraper, type TargetCount } from './scraper.ts';
export type { Scrape } from './segments.ts';
export { readSources, type SourceOptions, type Sources } from './sources.ts';
export { ScrapeWriter, type WriterOptions } from './writer.ts';
