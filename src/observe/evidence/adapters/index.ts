/** Every adapter. The first that owns a series takes it. */
import type { Adapter } from '../adapter.ts';
import { DYNAMO, DYNAMO_ROUTER, DYNAMO_WORKER } from './dynamo.ts';
import { EPP } from './epp.ts';
import { DCGM, TRITON_GPU } from './gpus.ts';
import { LITELLM } from './litellm.ts';
import { LLAMACPP } from './llamacpp.ts';
import { LMDEPLOY } from './lmdeploy.ts';
import { OTEL } from './otel.ts';
import { RAY_SERVE } from './ray.ts';
import { SGLANG, SGLANG_REEXPORT, SGLANG_ROUTER } from './sglang.ts';
import { TGI } from './tgi.ts';
import { TRITON } from './triton.ts';
import { TRTLLM } from './trtllm.ts';
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
  DYNAMO_ROUTER,
  DYNAMO_WORKER,
  RAY_SERVE,
  EPP,
  LITELLM,
  OTEL,
  DCGM,
  TRITON_GPU,
];
