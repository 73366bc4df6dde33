/** Texts that all have the same hash in JavaScriptCore, which hashes strings without a seed. */
export function collidingTexts(count: number): readonly string[] {
  const letters = Array.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789');
  return Array.from({ length: count }, (_, index) => {
    const free = [0, 1, 2, 3].map(
      (place) => letters[Math.floor(index / letters.length ** place) % letters.length],
    );
    return `\x93\x4b\xb8\x8b${free.join('')}\xc9\xac\x2e\x96`;
  });
}
