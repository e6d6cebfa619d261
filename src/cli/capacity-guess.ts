/** Where the knee may lie, by the model of the hardware: only where to look first. */
import { InputError, messageOf } from '../base/errors.ts';
import type { Contract } from '../core/contract.ts';
import { idealRow, largestBatch } from '../model/index.ts';
import { meanLength, meanTokens } from '../workload/index.ts';
import type { CapacityFlags } from './capacity-flags.ts';
import { type DeploymentFlags, type EngineChoice, engineOf } from './engine-flags.ts';
import { type LoadPlan, mixOf } from './load-plan.ts';

/** What full batches of the largest size that meets TPOT would sustain: an upper guess, queueing and prefill left out. */
export function guessOf(choice: EngineChoice, load: LoadPlan, contract: Contract, maxSeqs: number): number | undefined {
  const mix = mixOf(load);
  const each = mix
    ? meanTokens(mix)
    : { requests: 1, input: meanLength(load.requests.input), output: meanLength(load.requests.output) };
  const context = Math.max(1, Math.round((each.input + each.output / 2) / each.requests));
  const batch = Math.min(maxSeqs, largestBatch(choice.on, context, contract.limits.tpot, choice.reserves).largest);
  if (batch < 1 || !(each.output > 0)) return undefined;
  const piece = { ms: 0, slope: 0, untilKv: 0 };
  choice.step.decode(batch, batch * context, piece);
  const step = piece.ms || idealRow(choice.on, batch, context, each.output / each.requests).stepMs;
  const guess = (1000 * batch) / (each.output * step);
  return Number.isFinite(guess) && guess > 0 ? Number(guess.toPrecision(3)) : undefined;
}

/**
 * The same for a live server behind a named accelerator: of the model named, or the one the server lists. @param say told why
 * there is no guess, where the model is none we know the shape of.
 */
export async function guessOfServer(
  flags: CapacityFlags,
  listed: string | undefined,
  load: LoadPlan,
  contract: Contract,
  say: (line: string) => void,
): Promise<{ readonly guess?: number }> {
  if (flags.gpu === undefined || flags.guess !== undefined) return {};
  const model = flags.model ?? listed ?? '';
  try {
    const guess = guessOf(await engineOf(deploymentFlags(flags, model)), load, contract, flags.maxNumSeqs ?? 256);
    return guess === undefined ? {} : { guess };
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    say(`          no guess by the hardware: ${messageOf(error)}`);
    return {};
  }
}

export function deploymentFlags(flags: CapacityFlags, model: string): DeploymentFlags {
  const { gpu, tp, weights, kvDtype, gpuMemoryUtilization, ideal } = flags;
  return {
    model,
    gpu: gpu as string,
    ideal,
    ...(tp !== undefined && { tp }),
    ...(weights !== undefined && { weights }),
    ...(kvDtype !== undefined && { kvDtype }),
    ...(gpuMemoryUtilization !== undefined && { gpuMemoryUtilization }),
  };
}
