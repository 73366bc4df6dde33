const TOKENS_PER_PRICE = 1_000_000;

/**
 * Added to the exact count for the token window: the estimate is deliberately high (contract: rate limits).
 */
const MARGIN_TOKENS = 16;

/** Returns the tokens that the window reserves for a request that will be billed `input_tokens`. */
export function estimatedTokens(input_tokens: number): number {
  return input_tokens + MARGIN_TOKENS;
}

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
