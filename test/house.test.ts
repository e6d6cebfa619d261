import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PURE, ROOMS, UI_MAY } from './house.ts';

const SRC = join(import.meta.dirname, '..', 'src');
const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((f) => f.endsWith('.ts'));

/** Every module a file names in an import, export-from or dynamic import. */
function importsOf(text: string): string[] {
  const code = text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '');
  return [...code.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].map((m) => m[1] as string);
}

/** The room a file stands in; a file directly in `src/` is the package's front door and may import all. */
const roomOf = (file: string): string | undefined => (file.includes(sep) ? file.split(sep)[0] : undefined);

describe('the house', () => {
  it('has no room the table does not know', () => {
    const rooms = new Set(files.map(roomOf).filter((r) => r !== undefined));
    expect([...rooms].filter((r) => !(r in ROOMS))).toEqual([]);
  });

  it('keeps to the import table', () => {
    const trespasses: string[] = [];
    for (const file of files) {
      const room = roomOf(file);
      if (room === undefined || file.endsWith('.test.ts')) continue;
      for (const target of importsOf(readFileSync(join(SRC, file), 'utf8'))) {
        if (!target.startsWith('.')) continue;
        const to = roomOf(relative(SRC, join(SRC, file, '..', target)));
        if (to !== undefined && to !== room && !ROOMS[room]?.includes(to)) trespasses.push(`${file} imports ${target}`);
      }
    }
    expect(trespasses).toEqual([]);
  });

  it('keeps node: and ambient clocks out of the pure rooms', () => {
    const trespasses: string[] = [];
    for (const file of files) {
      const room = roomOf(file);
      if (room === undefined || !PURE.includes(room) || file.endsWith('.test.ts')) continue;
      const text = readFileSync(join(SRC, file), 'utf8')
        .replace(/\/\*[\s\S]*?\*\//g, '')
        .replace(/\/\/.*$/gm, '');
      if (importsOf(text).some((t) => t.startsWith('node:'))) trespasses.push(`${file} imports node:`);
      if (/\bDate\.now\(|\bMath\.random\(|\bperformance\.now\(|\bprocess\.(?=[a-zA-Z])/.test(text))
        trespasses.push(`${file} has an ambient clock`);
    }
    expect(trespasses).toEqual([]);
  });

  it('lets the pages import what runs in a browser, and of the rest types alone', () => {
    const ui = join(SRC, '..', 'ui');
    const pages = readdirSync(ui, { recursive: true, encoding: 'utf8' }).filter((f) => /\.tsx?$/.test(f));
    expect(pages.length).toBeGreaterThan(10);
    const trespasses: string[] = [];
    for (const file of pages) {
      const text = readFileSync(join(ui, file), 'utf8').replace(/^import type [^;]*;/gm, '');
      for (const target of importsOf(text)) {
        if (target.startsWith('node:')) trespasses.push(`${file} imports ${target}`);
        if (!target.startsWith('.')) continue;
        const path = relative(SRC, join(ui, file, '..', target))
          .split(sep)
          .join('/');
        if (path.startsWith('../ui/')) continue;
        if (!UI_MAY.some((room) => path === room || path.startsWith(`${room}/`)))
          trespasses.push(`${file} imports ${target}`);
      }
    }
    expect(trespasses).toEqual([]);
  });

  it('keeps the forms of the dashboard that pages read as pure as the rooms below', () => {
    const trespasses: string[] = [];
    for (const file of files) {
      const at = file.split(sep).join('/');
      if (!at.startsWith('dashboard/packed/') || at.endsWith('.test.ts')) continue;
      for (const target of importsOf(readFileSync(join(SRC, file), 'utf8'))) {
        if (!/^(\.\/|\.\.\/\.\.\/(base|core|stats)\/)/.test(target)) trespasses.push(`${file} imports ${target}`);
      }
    }
    expect(trespasses).toEqual([]);
  });

  it('is quoted in ARCHITECTURE.md as it stands', () => {
    const page = readFileSync(join(SRC, '..', 'ARCHITECTURE.md'), 'utf8');
    for (const [room, may] of Object.entries(ROOMS)) {
      const row = `| \`${room}\` | ${may.length === 0 ? 'nothing' : may.map((m) => `\`${m}\``).join(' ')} |`;
      expect(page, `ARCHITECTURE.md lacks the row ${row}`).toContain(row);
    }
  });
});
