/**
 * Added to the exact count for the token window: the estimate is deliberately high (contract: rate limits).
 */
const MARGIN_TOKENS = 16;

/** Returns the tokens that the window reserves for a request that will be billed `input_tokens`. */
export function estimatedTokens(input_tokens: number): number {
  return input_tokens + MARGIN_TOKENS;
}
