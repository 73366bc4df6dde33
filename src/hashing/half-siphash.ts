/** A secret of 64 bits. Without it nobody can choose texts whose hashes collide. */
export type HashKey = readonly [low: number, high: number];

/** Returns a random key that is known only to this process. */
export function drawHashKey(): HashKey {
  const [low = 0, high = 0] = crypto.getRandomValues(new Int32Array(2));
  return [low, high];
}

/** The rounds of mixing for each four bytes, and at the end. */
const FINAL_ROUNDS = 3;

/**
 * Returns HalfSipHash-1-3 of a text's UTF-16 code units, as an integer of 32 bits: the keyed hash of Linux's
 * hash tables. The seeded hashes of `Bun.hash` are no substitute: wyhash and xxHash have texts that collide
 * for every seed.
 */
export function halfSipHash(text: string, [low, high]: HashKey): number {
  let v0 = low;
  let v1 = high;
  let v2 = 0x6c796765 ^ low;
  let v3 = 0x74656462 ^ high;
  const { length } = text;
  // The last word holds an odd code unit and the length, so that no text is the start of another.
  const words = (length >> 1) + 1;
  for (let word = 0; word < words + FINAL_ROUNDS; word += 1) {
    let input = 0;
    if (word < words - 1) input = text.charCodeAt(2 * word) | (text.charCodeAt(2 * word + 1) << 16);
    else if (word === words - 1) input = (length << 16) | (length & 1 ? text.charCodeAt(length - 1) : 0);
    else if (word === words) v2 ^= 0xff;
    v3 ^= input;
    v0 = (v0 + v1) | 0;
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
    v0 = (v0 << 16) | (v0 >>> 16);
    v2 = (v2 + v3) | 0;
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
    v0 = (v0 + v3) | 0;
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
    v2 = (v2 + v1) | 0;
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
    v2 = (v2 << 16) | (v2 >>> 16);
    v0 ^= input;
  }
  return v1 ^ v3;
}
