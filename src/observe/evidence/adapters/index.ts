/** Every adapter. The first that owns a series takes it. */
import type { Adapter } from '../adapter.ts';
import { LLAMACPP, LMDEPLOY, TGI, TRITON, TRTLLM } from './engines.ts';
import { DCGM, TRITON_GPU } from './gpus.ts';
import { DYNAMO, DYNAMO_WORKER, EPP, LITELLM, OTEL } from './routers.ts';
import { SGLANG, SGLANG_REEXPORT, SGLANG_ROUTER } from './sglang.ts';
import { PRODUCTION_STACK, VLLM } from './vllm.ts';

export const ADAPTERS: readonly Adapter[] = [
  VLLM,
  PRODUCTION_STACK,
  SGLANG,
  SGLANG_REEXPORT,
  SGLANG_ROUTER,
  TRTLLM,
  TGI,
  LLAMACPP,
  LMDEPLOY,
  TRITON,
  DYNAMO,
  DYNAMO_WORKER,
  EPP,
  LITELLM,
  OTEL,
  DCGM,
  TRITON_GPU,
];
