/**
 * What is known to have been changed between the two sides: versions, flags, lifecycle marks, deployments. Told by a file,
 * never guessed. `readChanges` takes the file's parsed YAML or JSON.
 */
import { InputError, oneLine } from '../base/errors.ts';
import { didYouMean } from '../base/nearest.ts';

/** What a flag is about; decides which causes it speaks for. */
export const TOPIC_IDS = [
  'admission',
  'scheduling',
  'budget',
  'cache',
  'kv',
  'speculation',
  'kernel',
  'power',
  'frontend',
  'warmup',
  'transfer',
  'proxy',
  'stream',
  'model',
  'adapter',
  'replicas',
  'other',
] as const;
export type FlagTopic = (typeof TOPIC_IDS)[number];

/** Whether a setting now stands for more or less of what it is about, where its two values tell. */
export type Direction = 'down' | 'up' | 'unknown';

export interface Diff {
  readonly name: string;
  readonly before: string;
  readonly after: string;
}

export interface FlagDiff extends Diff {
  readonly topic: FlagTopic;
}

export type MarkKind = 'process-start' | 'model-load' | 'deploy' | 'other';

export interface Mark {
  readonly kind: MarkKind;
  readonly side: 'before' | 'after';
  /** Words of whoever wrote the file. */
  readonly text: string;
}

export interface Changes {
  readonly versions: readonly Diff[];
  readonly flags: readonly FlagDiff[];
  readonly deployments: readonly FlagDiff[];
  readonly marks: readonly Mark[];
}

const UNSET = '(not set)';

/** Words of a flag, an environment variable or a setting → what it is about. First that matches. */
const TOPICS: readonly (readonly [RegExp, FlagTopic])[] = [
  [
    /max[-_.]?num[-_.]?batched|chunked[-_.]?prefill|long[-_.]?prefill|prefill[-_.]?(budget|chunk)|chunk[-_.]?(size|budget)|batched[-_.]?tokens/i,
    'budget',
  ],
  [
    /sched(uler|uling|ule)?[-_.]?policy|admission[-_.]?policy|queue[-_.]?(policy|order)|fcfs|priority|shortest/i,
    'scheduling',
  ],
  [/stream[-_.]?interval|detokeniz|chunk[-_.]?flush/i, 'stream'],
  [/max[-_.]?num[-_.]?seqs|max[-_.]?running|max[-_.]?batch|max[-_.]?concurren|admission|max[-_.]?queue/i, 'admission'],
  [/prefix|radix|block[-_.]?size|cache[-_.]?aware|affinity|hash|mamba/i, 'cache'],
  [/specul|spec[-_.]|draft|eagle|(?<![a-z])mtp(?![a-z])|ngram|medusa/i, 'speculation'],
  [/warm[-_.]?up|jit|precompile|compile[-_.]?cache|keep[-_.]?alive(?!.*proxy)/i, 'warmup'],
  [
    /load[-_.]?balanc|(?<!scheduling[-_.])(?<!scheduler[-_.])\bpolicy\b|rout(er|ing)[-_.]?policy|lb[-_.]?(policy|method)/i,
    'replicas',
  ],
  [/num[-_.]?ctx|model[-_.]?load|context[-_.]?length/i, 'model'],
  [/lora|adapter/i, 'adapter'],
  [/power[-_.]?(limit|cap|brake)|sclk|gpu[-_.]?clo?c?k|clo?c?k[-_.]?(cap|limit|lock)|nvpmodel|tdp/i, 'power'],
  [/nixl|mooncake|kv[-_.]?transfer|rdma|ucx|disagg|kv[-_.]?connector|kv[-_.]?link/i, 'transfer'],
  [/gpu[-_.]?memory|kv[-_.]?cache|mem[-_.]?fraction|kv[-_.]?blocks|max[-_.]?model[-_.]?len|swap/i, 'kv'],
  [
    /proxy|buffer|gzip|zstd|compress|encode|flush|http[-_/.]?(1\.0|version)|ingress|nginx|caddy|envoy|keepalive/i,
    'proxy',
  ],
  [
    /api[-_.]?server|tokenizer|multimodal|mm[-_.]?|guided|grammar|structured|frontend|asyncio|uvloop|workers/i,
    'frontend',
  ],
  [/replica|data[-_.]?parallel|dp[-_.]?size|scale|router|lb[-_.]?|load[-_.]?balanc/i, 'replicas'],
  [
    /cuda|graph|attention|backend|kernel|eager|dtype|quant|tensor[-_.]?parallel|tp[-_.]?size|nccl|clock|power|trace/i,
    'kernel',
  ],
];

export function topicOf(name: string, value = ''): FlagTopic {
  for (const [words, topic] of TOPICS) if (words.test(name)) return topic;
  for (const [words, topic] of TOPICS) if (words.test(value)) return topic;
  return 'other';
}

const ON = new Set(['true', 'on', 'yes', 'enabled', 'enable']);
const OFF = new Set(['false', 'off', 'no', 'disabled', 'disable', 'none', UNSET]);
/** Switched on it makes a step smaller, not larger. */
const INVERSE = /chunked[-_.]?prefill$/i;
/** A name that says no: `--no-enable-prefix-caching`, `disable_radix_cache`. */
const NEGATED = /(^|[-_.])(no|disable[ds]?|without|skip)([-_.]|$)/i;

export function directionOf({ name, before, after }: Diff): Direction {
  const isSwitch = [before, after].some((v) => ON.has(v.toLowerCase()));
  const negated = NEGATED.test(name) !== (isSwitch && INVERSE.test(name));
  const level = (v: string): number | undefined => (isSwitch && v === UNSET ? 0 : levelOf(v));
  const [x, y] = [level(before), level(after)];
  if (x === undefined || y === undefined) {
    // From nothing, or to nothing: switched on, or off, whatever the value.
    const [was, is] = [OFF.has(before.toLowerCase()), OFF.has(after.toLowerCase())];
    if (was === is || x !== undefined || y !== undefined) return 'unknown';
    return was !== negated ? 'up' : 'down';
  }
  if (x === y) return 'unknown';
  return y > x !== negated ? 'up' : 'down';
}

/** A number (`8192`, `8k`, `90%`), or a switch as 0 or 1. */
function levelOf(value: string): number | undefined {
  const text = value.trim().toLowerCase();
  if (ON.has(text)) return 1;
  if (OFF.has(text) && text !== UNSET && text !== 'none') return 0;
  const m = /^([-+]?\d[\d,_]*(?:\.\d+)?)\s*(k|m|g|%|w|mhz|ms|s|gb|gib|mb|mib)?$/.exec(text);
  if (!m) return undefined;
  const scale = { k: 1e3, m: 1e6, g: 1e9 }[m[2] ?? ''] ?? 1;
  return Number(m[1]!.replace(/[,_]/g, '')) * scale;
}

const MARKS: readonly MarkKind[] = ['process-start', 'model-load', 'deploy', 'other'];
const KEYS = ['versions', 'flags', 'env', 'marks', 'deployments', 'note', 'schema'] as const;

/**
 * `versions: { vllm: [0.6.1, 0.7.0] }`, `flags:` and `env:` likewise (`null` where absent), `deployments:` likewise, and
 * `marks: [{ kind: process-start, side: after, text: … }]`. @throws InputError naming the file and the key.
 */
export function readChanges(value: unknown, where: string): Changes {
  const bad = (what: string): never => {
    throw new InputError(`${where}: ${what}`);
  };
  if (value === null || value === undefined) return { versions: [], flags: [], deployments: [], marks: [] };
  if (typeof value !== 'object' || Array.isArray(value))
    return bad(`is not a map; it may have the keys ${KEYS.join(', ')}`);
  const map = value as Record<string, unknown>;
  for (const key of Object.keys(map)) {
    if (!(KEYS as readonly string[]).includes(key))
      bad(`'${oneLine(key, 40)}' is no key of a changes file${didYouMean(key, KEYS)}`);
  }
  const diffs = (key: string): Diff[] => {
    const part = map[key];
    if (part === undefined || part === null) return [];
    if (typeof part !== 'object' || Array.isArray(part)) return bad(`'${key}' is not a map of name: [before, after]`);
    return Object.entries(part).flatMap(([name, pair]) => {
      if (!Array.isArray(pair) || pair.length !== 2)
        return bad(`'${key}.${oneLine(name, 40)}' is not [before, after]; write null where it was not set`);
      const [before, after] = pair.map((v) => (v === null || v === undefined ? UNSET : oneLine(String(v), 120)));
      return before === after ? [] : [{ name: oneLine(name, 80), before: before as string, after: after as string }];
    });
  };
  const topical = (list: readonly Diff[]): FlagDiff[] =>
    list.map((d) => ({ ...d, topic: topicOf(d.name, `${d.before} ${d.after}`) }));
  const marks = map.marks ?? [];
  if (!Array.isArray(marks)) return bad("'marks' is not a list of { kind, side, text }");
  return {
    versions: diffs('versions'),
    flags: topical([...diffs('flags'), ...diffs('env')]),
    deployments: topical(diffs('deployments')),
    marks: marks.map((mark: unknown, i) => {
      const m = (typeof mark === 'object' && mark !== null ? mark : {}) as Record<string, unknown>;
      const kind = String(m.kind ?? '').replace(/_/g, '-') as MarkKind;
      if (!MARKS.includes(kind)) bad(`marks[${i}].kind is '${oneLine(kind, 40)}', not one of ${MARKS.join(', ')}`);
      const side = m.side ?? 'after';
      if (side !== 'before' && side !== 'after') bad(`marks[${i}].side is neither before nor after`);
      return { kind, side: side as Mark['side'], text: oneLine(String(m.text ?? kind), 200) };
    }),
  };
}

/** Nothing but settings of the user's own was changed: no version, no deployment. */
export function onlyOwnSettings(changes: Changes | undefined): boolean {
  return (
    changes !== undefined &&
    changes.flags.length > 0 &&
    changes.versions.length === 0 &&
    changes.deployments.length === 0
  );
}

/** The same changes seen from the later side. */
export function reversedChanges({ versions, flags, deployments, marks }: Changes): Changes {
  const back = <T extends Diff>(d: T): T => ({ ...d, before: d.after, after: d.before });
  return {
    versions: versions.map(back),
    flags: flags.map(back),
    deployments: deployments.map(back),
    marks: marks.map((m) => ({ ...m, side: m.side === 'after' ? 'before' : 'after' })),
  };
}
