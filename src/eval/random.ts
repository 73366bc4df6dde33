/** Returns numbers from 0 (inclusive) to 1 (exclusive). */
export type Random = () => number;

/**
 * Returns random numbers that are the same for the same seed: Tommy Ettinger's mulberry32, sufficient for
 * sampling.
 */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * Returns the items in an order drawn by `random` (Fisher and Yates), in which every order is equally likely.
 */
export function shuffled<Item>(items: readonly Item[], random: Random): Item[] {
  const drawn: Item[] = [];
  items.forEach((item, index) => {
    const place = Math.floor(random() * (index + 1));
    const displaced = drawn[place];
    if (displaced === undefined || place === index) drawn.push(item);
    else {
      drawn.push(displaced);
      drawn[place] = item;
    }
  });
  return drawn;
}
