/** Whether a profile is of the deployment it is to stand for: what can be told, and what is taken on trust. */
import { InputError, oneLine } from '../base/errors.ts';
import { accelerator } from '../model/accelerator.ts';
import { model } from '../model/lookup.ts';
import type { ModelShape } from '../model/shape.ts';
import type { Profile } from './profile.ts';

/**
 * @returns what must be said of it, a clause each.
 * @throws InputError when the profile names another model, accelerator or parallelism.
 */
export function checkProfile(
  { target, limits, name }: Pick<Profile, 'target' | 'limits' | 'name'>,
  asked: { readonly model: ModelShape; readonly gpu: string; readonly tp: number },
  where: string,
): string[] {
  const emulated = (target.emulated ?? {}) as Readonly<Record<string, unknown>>;
  const remarks: string[] = [];
  const said = emulated.model ?? target.model;
  const known = typeof said === 'string' ? shapeOf(said) : undefined;
  if (known && !sameShape(known, asked.model)) {
    throw new InputError(
      `${oneLine(where)}: it was measured on ${oneLine(String(said), 80)}, not ${asked.model.name}; a profile does not carry over to another model: calibrate that one, or leave --profile out`,
    );
  }
  if (!known)
    remarks.push(
      typeof said === 'string'
        ? `the profile's model is called '${oneLine(said, 60)}', which cannot be told from here: taken to be ${asked.model.name}`
        : `the profile does not say its model: taken to be ${asked.model.name}`,
    );
  const device = emulated.gpu ?? target.gpu;
  if (typeof device === 'string' && gpuOf(device) !== undefined && gpuOf(device) !== asked.gpu) {
    throw new InputError(
      `${oneLine(where)}: it was measured on ${oneLine(device, 60)}, not ${asked.gpu}; a profile does not carry over to another accelerator: give --gpu ${gpuOf(device)}`,
    );
  }
  if (typeof device !== 'string') remarks.push(`the profile does not say its accelerator: taken to be ${asked.gpu}`);
  const tp = emulated.tp ?? target.tp;
  if (typeof tp === 'number' && tp !== asked.tp) {
    throw new InputError(
      `${oneLine(where)}: it was measured at tensor parallelism ${tp}, not ${asked.tp}; give --tp ${tp}`,
    );
  }
  if (typeof tp !== 'number')
    remarks.push(`the profile does not say over how many devices: taken to be ${asked.tp} (--tp)`);
  if (limits.max_seqs === null)
    remarks.push(
      `'${oneLine(name, 60)}' does not say its engine's batch limit: caps beyond its range are extrapolated`,
    );
  else
    remarks.push(
      `batches are capped at ${limits.max_seqs}, the limit its engine was run with (${limits.max_seqs_from})`,
    );
  return remarks;
}

function shapeOf(name: string): ModelShape | undefined {
  try {
    return model(name);
  } catch {
    return undefined;
  }
}

function gpuOf(name: string): string | undefined {
  try {
    return accelerator(name).id;
  } catch {
    return undefined;
  }
}

/** Fine-tunes and releases of one shape take the same time. */
function sameShape(a: ModelShape, b: ModelShape): boolean {
  return (['layers', 'hidden', 'heads', 'kvHeads', 'ffn', 'vocab'] as const).every((k) => a[k] === b[k]);
}
