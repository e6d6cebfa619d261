/** Which serving software answers, by the signs each gives of itself. */
import type { DialectName } from '../wire/index.ts';
import type { Answer } from './ask.ts';

/** A path that only one software serves. */
export interface ServerSign {
  readonly path: string;
  readonly server: string;
  /** Its own API, for where it does not serve OpenAI's. */
  readonly dialect?: DialectName;
  /** The models named in the answer; undefined when the answer is not that software's. */
  models(json: unknown): readonly string[] | undefined;
}

/** In order of how sure each is. */
export const SIGNS: readonly ServerSign[] = [
  {
    path: '/api/tags',
    server: 'Ollama',
    dialect: 'ollama.chat',
    models: (json) => list(field(json, 'models'), 'name'),
  },
  { path: '/info', server: 'TGI', dialect: 'tgi.generate_stream', models: (json) => one(field(json, 'model_id')) },
  {
    path: '/get_model_info',
    server: 'SGLang',
    dialect: 'sglang.generate',
    models: (json) => one(field(json, 'model_path')),
  },
  {
    path: '/props',
    server: 'llama.cpp',
    dialect: 'llamacpp.completion',
    models: (json) =>
      field(json, 'default_generation_settings') === undefined
        ? undefined
        : (one(field(json, 'model_alias')) ?? one(field(json, 'model_path')) ?? []),
  },
];

/** `owned_by` in `/v1/models`, as each software fills it in. */
const OWNERS: Readonly<Record<string, string>> = {
  vllm: 'vLLM',
  sglang: 'SGLang',
  llamacpp: 'llama.cpp',
  library: 'Ollama',
  lmdeploy: 'LMDeploy',
  organization_owner: 'LM Studio',
  tensorrt_llm: 'TensorRT-LLM',
};

/** The software by the model list's `owned_by`, else by the `server` header, where one says more than the HTTP library. */
export function softwareOf(
  listed: Answer | undefined,
  models: readonly { readonly ownedBy?: string }[],
): { name: string; sign: string } | undefined {
  for (const { ownedBy } of models) {
    const name = ownedBy === undefined ? undefined : OWNERS[ownedBy.toLowerCase()];
    if (name !== undefined) return { name, sign: `its models are owned by '${ownedBy}'` };
  }
  const header = listed?.headers.server ?? '';
  const known = /llama\.cpp|vllm|sglang|text-generation|litellm|ollama/i.exec(header)?.[0];
  return known === undefined ? undefined : { name: known, sign: `its server header is '${header}'` };
}

const field = (json: unknown, name: string): unknown =>
  typeof json === 'object' && json !== null ? (json as Record<string, unknown>)[name] : undefined;

const one = (x: unknown): readonly string[] | undefined => (typeof x === 'string' && x !== '' ? [x] : undefined);

const list = (x: unknown, name: string): readonly string[] | undefined =>
  Array.isArray(x) ? x.flatMap((entry) => one(field(entry, name)) ?? []) : undefined;
