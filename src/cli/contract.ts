/** `goodput contract`: checks a contract and says what it promises, or prints a preset to start from. */
import type { Contract } from '../core/contract.ts';
import { PRESET_NAMES, type PresetName } from '../core/presets.ts';
import { type Cli, command, JSON_FLAG } from './command.ts';

interface Flags {
  readonly json: boolean;
  readonly preset?: PresetName;
  readonly schema: boolean;
}

export const contract = command({
  func: runContract,
  parameters: {
    flags: {
      json: JSON_FLAG,
      preset: {
        kind: 'enum',
        values: PRESET_NAMES,
        brief: 'Print a commented contract to start from',
        optional: true,
      },
      schema: { kind: 'boolean', brief: 'Print the JSON Schema of contract files', default: false },
    },
    positional: {
      kind: 'tuple',
      parameters: [{ brief: 'A contract in YAML or JSON', parse: String, placeholder: 'FILE', optional: true }],
    },
  },
  docs: {
    brief: 'Check a latency contract and say what it promises',
    fullDescription:
      'Checks FILE and says in sentences what it promises and how it classes every edge.\n' +
      'With --preset it prints a contract to start from: goodput contract --preset chat > chat.yaml',
  },
});

export async function runContract(this: Cli, flags: Flags, file?: string): Promise<void> {
  const { InputError } = await import('../base/errors.ts');
  if ([file !== undefined, flags.preset !== undefined, flags.schema].filter(Boolean).length !== 1) {
    throw new InputError('contract: give one of FILE, --preset or --schema');
  }
  if (flags.schema) {
    const { contractJsonSchema } = await import('../core/contract-file.ts');
    this.stdout.line(JSON.stringify(contractJsonSchema(), null, 2));
    return;
  }
  if (flags.preset !== undefined && !flags.json) {
    const { presetYaml } = await import('../core/contract-file.ts');
    this.stdout.write(presetYaml(flags.preset));
    return;
  }
  const parsed = await load(flags, file);
  const { explainContract } = await import('../report/contract-text.ts');
  const { promise, edges } = explainContract(parsed);
  if (flags.json) {
    this.stdout.line(JSON.stringify({ schema: 'goodput.contract-check/1', contract: parsed, promise, edges }, null, 2));
    return;
  }
  const { wrapText } = await import('../report/text.ts');
  const width = Math.max(60, Math.min(this.stdout.columns, 110));
  this.stdout.line(`Contract '${parsed.name}' is well formed. It promises:`);
  for (const sentence of promise) this.stdout.line(wrapText(sentence, width, '  - ', '    '));
  this.stdout.line();
  this.stdout.line('How the edges are classed:');
  const wide = Math.max(...edges.map((e) => e.edge.length));
  for (const { edge, classed } of edges) {
    this.stdout.line(wrapText(classed, width, `  ${edge.padEnd(wide)}  `, ' '.repeat(wide + 4)));
  }
}

async function load(flags: Flags, file: string | undefined): Promise<Contract> {
  if (flags.preset !== undefined) return (await import('../core/presets.ts')).PRESETS[flags.preset].contract;
  return (await import('./slo-flags.ts')).readContract(file as string);
}
