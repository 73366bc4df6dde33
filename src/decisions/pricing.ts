const TOKENS_PER_PRICE = 1_000_000;

/**
 * Returns the cost of `tokens` in micro-dollars at a price in micro-dollars per million tokens, rounded up
 * (contract: cost rule). Exact: all integers are below 2^53, which allows 9 billion tokens at $1.
 */
export function cost_micros(tokens: number, price_micros_per_million_tokens: number): number {
  const product = tokens * price_micros_per_million_tokens;
  if (!Number.isSafeInteger(product) || product < 0)
    throw new RangeError(`cost of ${tokens} tokens is out of range`);
  const remainder = product % TOKENS_PER_PRICE;
  return (product - remainder) / TOKENS_PER_PRICE + (remainder === 0 ? 0 : 1);
}
