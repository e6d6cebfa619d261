/**
 * Randomness keyed by (seed, purpose, operation), so that any shard of workers or machines draws the same operation the
 * same way, in any order, and adding a purpose shifts no other. The generator is pure-rand's xoroshiro128+; the key is
 * spread over its state by SplitMix-style mixing (Steele, Lea, Flood 2014; murmur3 finaliser).
 */
import { xoroshiro128plusFromState } from 'pure-rand/generator/xoroshiro128plus';

/** The next float in [0, 1), 53 bits. */
export type Uniform = () => number;

/** A stream of uniforms for one (seed, purpose, operation). Equal keys give equal streams; the key is 128 bits wide. */
export function keyed(seed: number, purpose: string, operation = 0): Uniform {
  const state = LANES.map((lane) => {
    let h = lane;
    for (let i = 0; i < purpose.length; i++) h = mix(Math.imul(h, 31) ^ purpose.charCodeAt(i));
    h = mix(h ^ mix(low32(seed) + lane) ^ Math.imul(high32(seed), 0x2c1b3c6d));
    return mix(h ^ mix(low32(operation) + ~lane) ^ Math.imul(high32(operation), 0x297a2d39));
  });
  state[3]! |= 1; // an all-zero state would stay zero
  const generator = xoroshiro128plusFromState(state);
  return () => {
    const high = generator.next() >>> 5;
    const low = generator.next() >>> 6;
    return (high * 67_108_864 + low) / 9_007_199_254_740_992;
  };
}

const LANES = [0x6a09e667, 0xbb67ae85 | 0, 0x3c6ef372, 0xa54ff53a | 0];
const low32 = (x: number): number => x | 0;
const high32 = (x: number): number => Math.floor(x / 2 ** 32) | 0;

function mix(x: number): number {
  x ^= x >>> 16;
  x = Math.imul(x, 0x85ebca6b);
  x ^= x >>> 13;
  x = Math.imul(x, 0xc2b2ae35);
  return x ^ (x >>> 16);
}
