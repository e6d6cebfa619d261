/** Uint32 of a `#rrggbb` or `#rgb` colour, as a little-endian ImageData holds it. */
export function rgba(hex: string, alpha = 255): number {
  const digits = hex.replace('#', '');
  const n = Number.parseInt(digits.length === 3 ? digits.replace(/./g, '$&$&') : digits, 16);
  return ((alpha << 24) | ((n & 0xff) << 16) | (n & 0xff00) | (n >> 16)) >>> 0;
}
