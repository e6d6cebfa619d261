/** What the page computes for, read from the address. */
import type { Dtype } from '../../src/model/index.ts';
import { param } from '../route.ts';
import type { Engine } from '../simulate.ts';

export const DTYPES: readonly Dtype[] = ['bf16', 'fp8', 'int8', 'fp4', 'int4'];

export interface Asked extends Engine {
  readonly context: number;
  readonly output: number;
  /** ms; NaN: no limit. */
  readonly tpot: number;
}

export function asked(): Asked {
  const number = (name: string, usual: number): number => {
    const x = Number(param(name) ?? usual);
    return Number.isFinite(x) && x > 0 ? x : usual;
  };
  const weights = param('weights');
  return {
    model: param('model') ?? 'llama-3.1-8b',
    gpu: param('gpu') ?? 'h100-sxm',
    tp: Math.round(number('tp', 1)),
    weights: DTYPES.find((d) => d === weights),
    kv: DTYPES.find((d) => d === param('kv')) ?? 'bf16',
    basis: param('basis') === 'ideal' ? 'ideal' : 'calibrated',
    maxSeqs: Math.round(number('seqs', 256)),
    replicas: 1,
    context: Math.round(number('context', 2048)),
    output: Math.round(number('output', 256)),
    tpot: param('tpot') === 'none' ? Number.NaN : number('tpot', 10),
  };
}
