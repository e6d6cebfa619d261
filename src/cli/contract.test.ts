import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseContract } from '../core/contract-file.ts';
import { PRESET_NAMES, PRESETS } from '../core/presets.ts';
import type { Cli } from './cli.ts';
import { runContract } from './contract.ts';
import { contractOfFlags } from './slo-flags.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'contract-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

type Flags = Parameters<typeof runContract>[0];

async function run(flags: Partial<Flags>, file?: string): Promise<string> {
  let out = '';
  const stdout = { write: (s: string) => void (out += s), line: (s = '') => void (out += `${s}\n`), columns: 80 };
  await runContract.call({ stdout } as unknown as Cli, { json: false, schema: false, ...flags }, file);
  return out;
}

describe('goodput contract', () => {
  test.each(PRESET_NAMES)(
    '--preset %s prints a contract that reads back, and says what it protects',
    async (preset) => {
      const yaml = await run({ preset });
      expect(parseContract(yaml, preset)).toEqual(PRESETS[preset].contract);
      for (const what of PRESETS[preset].protects) expect(yaml.replace(/\n# /g, ' ')).toContain(what);
      const file = join(folder, `${preset}.yaml`);
      await writeFile(file, yaml);
      expect(await run({}, file)).toMatch(new RegExp(`^Contract '${preset}' is well formed\\. It promises:`));
    },
  );
  test('a file in sentences, within the width of the terminal', async () => {
    const file = join(folder, 'mine.yaml');
    await writeFile(file, 'limits: { ttft: 500ms, e2e: 20s }\ncases: { one_token: late, cancelled: observed }\n');
    const out = await run({}, file);
    expect(out).toContain('  - The first token comes within 500 ms.\n');
    expect(out).toContain('  - The response has ended within 20 s.\n');
    expect(out).toMatch(/one token +nothing this contract limits is undefined for it/);
    for (const line of out.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
  });
  test('--json, and the schema', async () => {
    const check = JSON.parse(await run({ preset: 'chat', json: true }));
    expect(check).toMatchObject({ schema: 'goodput.contract-check/1', contract: PRESETS.chat.contract });
    expect(check.edges.length).toBeGreaterThan(12);
    expect(JSON.parse(await run({ schema: true })).properties.limits.properties).toHaveProperty('tpot');
  });
  test('bad input is one clear line', async () => {
    await expect(run({})).rejects.toThrow('contract: give one of FILE, --preset or --schema');
    await expect(run({ preset: 'chat' }, 'x.yaml')).rejects.toThrow('give one of');
    await expect(run({}, join(folder, 'none.yaml'))).rejects.toThrow(/cannot read the contract: ENOENT/);
    await writeFile(join(folder, 'bad.yaml'), 'limits:\n  tttf: 1s\n');
    await expect(run({}, join(folder, 'bad.yaml'))).rejects.toThrow(
      /bad\.yaml:2: unknown key 'limits\.tttf' \(did you mean/,
    );
  });
});

describe('the flags that name a contract', () => {
  test('the chat preset when none does, and it is said', async () => {
    expect(await contractOfFlags({})).toEqual({ contract: PRESETS.chat.contract, isDefault: true });
  });
  test('a deadline too short for the limits is refused, a longer limit moves the default', async () => {
    await expect(contractOfFlags({ slo: ['e2e=30s'], deadline: '20s' })).rejects.toThrow(
      /--slo: the e2e limit of 30 s lies beyond/,
    );
    expect((await contractOfFlags({ slo: ['e2e=60s'] })).contract.deadline).toBe(60_000);
    await expect(contractOfFlags({ slo: ['ttft=1s,deadline=9s'], deadline: '9s' })).rejects.toThrow(
      /given in the limits too/,
    );
    await expect(contractOfFlags({ deadline: '0s' })).rejects.toThrow(/--deadline: it must be above 0/);
  });
  test('shares in either form, and no target of nothing', async () => {
    expect((await contractOfFlags({ attainment: '95%' })).contract.attainment).toBe(0.95);
    expect((await contractOfFlags({ attainment: '0.95' })).contract.attainment).toBe(0.95);
    await expect(contractOfFlags({ attainment: '95' })).rejects.toThrow(/--attainment: '95' is not a share/);
    await expect(contractOfFlags({ attainment: '0%' })).rejects.toThrow(/asks nothing/);
  });
});
