import { createHash, timingSafeEqual } from 'node:crypto';

/** Returns the stored form of a secret: its SHA-256, 64 hexadecimal characters. */
export function secretHash(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

/** Returns true if two hashes are equal, in a time that does not depend on where they differ. */
export function sameHash(left: string, right: string): boolean {
  const leftBytes = Buffer.from(left);
  const rightBytes = Buffer.from(right);
  return leftBytes.length === rightBytes.length && timingSafeEqual(leftBytes, rightBytes);
}
