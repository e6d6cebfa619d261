/** Between the engine and the client: when each chunk arrives, and how many tokens it holds. */
import type { Delivery } from './world.ts';

export interface Delivered {
  readonly at: Float64Array;
  readonly tokens: Int32Array;
}

export function delivered(how: Delivery, engine: Float64Array, network: number, shift = 0): Delivered {
  const n = engine.length;
  const add = network + shift;
  const last = engine[n - 1]!;
  if (how.kind === 'batch') {
    const chunks = Math.ceil(n / how.tokens);
    const at = new Float64Array(chunks);
    const tokens = new Int32Array(chunks);
    for (let i = 0; i < chunks; i++) {
      const to = Math.min(n, (i + 1) * how.tokens);
      at[i] = engine[to - 1]! + add;
      tokens[i] = to - i * how.tokens;
    }
    return { at, tokens };
  }
  const at = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    switch (how.kind) {
      case 'straight':
        at[i] = engine[i]! + add;
        break;
      case 'block': {
        // Frames stay frames: each arrives with the one that filled the block.
        const full = (Math.floor(i / how.tokens) + 1) * how.tokens - 1;
        at[i] = (full < n ? engine[full]! : last) + add;
        break;
      }
      case 'whole':
        at[i] = last + add + (i / n) * 0.8;
        break;
      case 'pauses':
        at[i] = after(engine[i]! + shift, how) + network;
        break;
    }
  }
  return { at, tokens: new Int32Array(n).fill(1) };
}

/** `t`, or the end of the pause it falls in. */
function after(t: number, { period, pause, growth }: Extract<Delivery, { kind: 'pauses' }>): number {
  const k = Math.floor(t / period);
  const length = Math.min(0.8 * period, pause * (1 + growth * k));
  const into = t - k * period;
  return into < length ? k * period + length : t;
}
