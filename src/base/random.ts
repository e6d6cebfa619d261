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
  const high = Math.imul(high32(operation), 0x297a2d39);
  const state = LANES.map((lane) => mix(seedLane(lane, seed, purpose) ^ mix(low32(operation) + ~lane) ^ high));
  state[3]! |= 1; // an all-zero state would stay zero
  const generator = xoroshiro128plusFromState(state);
  return () => {
    const high = generator.next() >>> 5;
    const low = generator.next() >>> 6;
    return (high * 67_108_864 + low) / 9_007_199_254_740_992;
  };
}

/**
 * `keyed` for many operations of one (seed, purpose): the same streams, without hashing the purpose or making a generator
 * each time. The uniform it hands out is one and the same function, set to the start of that operation's stream: it is
 * valid until the source is asked for the next operation.
 */
export function keyedSource(seed: number, purpose: string): (operation: number) => Uniform {
  const prefix = LANES.map((lane) => seedLane(lane, seed, purpose));
  const [p0, p1, p2, p3] = prefix as [number, number, number, number];
  const [l0, l1, l2, l3] = LANES as [number, number, number, number];
  // xoroshiro128+ as pure-rand steps it, its four words held here. A test holds the two equal.
  let s01 = 0;
  let s00 = 0;
  let s11 = 0;
  let s10 = 0;
  const next = (): number => {
    const out = (s00 + s10) | 0;
    const a0 = s10 ^ s00;
    const a1 = s11 ^ s01;
    const b0 = s00;
    const b1 = s01;
    s00 = (b0 << 24) ^ (b1 >>> 8) ^ a0 ^ (a0 << 16);
    s01 = (b1 << 24) ^ (b0 >>> 8) ^ a1 ^ ((a1 << 16) | (a0 >>> 16));
    s10 = (a1 << 5) ^ (a0 >>> 27);
    s11 = (a0 << 5) ^ (a1 >>> 27);
    return out;
  };
  const uniform = (): number => {
    const high = next() >>> 5;
    const low = next() >>> 6;
    return (high * 67_108_864 + low) / 9_007_199_254_740_992;
  };
  return (operation) => {
    const low = low32(operation);
    const high = Math.imul(high32(operation), 0x297a2d39);
    s01 = mix(p0 ^ mix(low + ~l0) ^ high);
    s00 = mix(p1 ^ mix(low + ~l1) ^ high);
    s11 = mix(p2 ^ mix(low + ~l2) ^ high);
    s10 = mix(p3 ^ mix(low + ~l3) ^ high) | 1; // an all-zero state would stay zero
    return uniform;
  };
}

/** A whole number in [0, 2^32) for (seed, purpose, operation): an identity, where a stream is not needed. */
export function keyedHash(seed: number, purpose: string, operation = 0): number {
  return Math.floor(keyed(seed, purpose, operation)() * 2 ** 32);
}

const LANES = [0x6a09e667, 0xbb67ae85 | 0, 0x3c6ef372, 0xa54ff53a | 0];
const low32 = (x: number): number => x | 0;
const high32 = (x: number): number => Math.floor(x / 2 ** 32) | 0;

function seedLane(lane: number, seed: number, purpose: string): number {
  let h = lane;
  for (let i = 0; i < purpose.length; i++) h = mix(Math.imul(h, 31) ^ purpose.charCodeAt(i));
  return mix(h ^ mix(low32(seed) + lane) ^ Math.imul(high32(seed), 0x2c1b3c6d));
}

function mix(x: number): number {
  x ^= x >>> 16;
  x = Math.imul(x, 0x85ebca6b);
  x ^= x >>> 13;
  x = Math.imul(x, 0xc2b2ae35);
  return x ^ (x >>> 16);
}
