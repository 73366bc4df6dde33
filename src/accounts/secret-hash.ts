import { createHash, timingSafeEqual } from 'node:crypto';

/** What is stored of a secret: its SHA-256, 64 hexadecimal characters. */
export function secretHash(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

/** Equal or not, in a time that does not tell where two hashes differ. */
export function sameHash(left: string, right: string): boolean {
  const leftBytes = Buffer.from(left);
  const rightBytes = Buffer.from(right);
  return leftBytes.length === rightBytes.length && timingSafeEqual(leftBytes, rightBytes);
}
