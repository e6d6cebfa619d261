/**
 * Images of a given size, synthesised: a PNG of one bit a pixel, its rows drawn from the request's own key, so that no two
 * are alike and none is cached. Servers decode it to full colour, and count its tokens by its size. Stored, not compressed
 * (deflate's stored blocks): width × height / 8 bytes.
 */
import type { Uniform } from '../base/random.ts';

export interface ImagePlan {
  /** Images a request holds. */
  readonly count: number;
  readonly width: number;
  readonly height: number;
}

/** A wider or taller image than this is a mistake. */
export const MAX_SIDE = 8192;

/** Side of the squares of the pattern, in pixels: big enough to survive a server's resizing as different images. */
const CELL = 8;

/** A PNG as a base64 `data:` URL. */
export function imageUrl(width: number, height: number, u: Uniform): string {
  return `data:image/png;base64,${base64(png(width, height, u))}`;
}

function png(width: number, height: number, u: Uniform): Uint8Array {
  const stride = Math.ceil(width / 8);
  const raw = new Uint8Array((stride + 1) * height); // each row begins with its filter, 0: none
  for (let y = 0; y < height; y++) {
    const at = y * (stride + 1) + 1;
    if (y % CELL === 0) for (let x = 0; x < stride; x++) raw[at + x] = u() < 0.5 ? 0 : 0xff;
    else raw.copyWithin(at, at - stride - 1, at - 1);
  }
  const header = new Uint8Array(13);
  const view = new DataView(header.buffer);
  view.setUint32(0, width);
  view.setUint32(4, height);
  header[8] = 1; // bits a sample; grey, deflate, adaptive filters, not interlaced are the zeros after it
  const parts = [
    Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a),
    chunk('IHDR', header),
    chunk('IDAT', stored(raw)),
    chunk('IEND', new Uint8Array()),
  ];
  return joined(parts);
}

/** zlib's format (RFC 1950) around stored deflate blocks (RFC 1951, 3.2.4). */
function stored(data: Uint8Array): Uint8Array {
  const parts: Uint8Array[] = [Uint8Array.of(0x78, 0x01)];
  for (let at = 0; at < data.length; at += 0xffff) {
    const block = data.subarray(at, at + 0xffff);
    const n = block.length;
    const last = at + n >= data.length ? 1 : 0;
    parts.push(Uint8Array.of(last, n & 0xff, n >> 8, ~n & 0xff, (~n >> 8) & 0xff), block);
  }
  let a = 1;
  let b = 0;
  for (const byte of data) {
    a = (a + byte) % 65_521;
    b = (b + a) % 65_521;
  }
  parts.push(Uint8Array.of(b >> 8, b & 0xff, a >> 8, a & 0xff));
  return joined(parts);
}

function chunk(type: string, data: Uint8Array): Uint8Array {
  const out = new Uint8Array(12 + data.length);
  const view = new DataView(out.buffer);
  view.setUint32(0, data.length);
  for (let i = 0; i < 4; i++) out[4 + i] = type.charCodeAt(i);
  out.set(data, 8);
  view.setUint32(8 + data.length, crc32(out.subarray(4, 8 + data.length)));
  return out;
}

/** PNG specification, annex D. */
const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, n) => {
  let c = n;
  for (let k = 0; k < 8; k++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  return c;
});

function crc32(data: Uint8Array): number {
  let c = 0xffffffff;
  for (const byte of data) c = CRC_TABLE[(c ^ byte) & 0xff]! ^ (c >>> 8);
  return (c ^ 0xffffffff) >>> 0;
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

function base64(bytes: Uint8Array): string {
  let binary = '';
  for (let at = 0; at < bytes.length; at += 8192) {
    binary += String.fromCharCode(...bytes.subarray(at, at + 8192));
  }
  return btoa(binary);
}
