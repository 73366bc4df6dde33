/** One US dollar in micro-dollars, the unit of all money in the service. */
export const MICROS_PER_DOLLAR = 1_000_000;
/** One cent in micro-dollars. */
export const CENT_MICROS = MICROS_PER_DOLLAR / 100;
/** The tokens that a price is for. */
const TOKENS_PER_PRICE = 1_000_000;

/** Returns micro-dollars as a JSON number of dollars, exact to the micro-dollar. */
export function dollarsOf(amount_micros: number): number {
  return amount_micros / MICROS_PER_DOLLAR;
}

/** Returns the exact micro-dollars of a number that `dollarsOf` gave. */
export function microsOf(dollars: number): number {
  return Math.round(dollars * MICROS_PER_DOLLAR);
}

/** Returns micro-dollars as text with six decimals, for exports and listings: `-0.000150`. */
export function formatDollars(amount_micros: number): string {
  const magnitude = Math.abs(amount_micros);
  const whole = Math.floor(magnitude / MICROS_PER_DOLLAR);
  const fraction = String(magnitude % MICROS_PER_DOLLAR).padStart(6, '0');
  return `${amount_micros < 0 ? '-' : ''}${whole}.${fraction}`;
}

/**
 * Parses dollars as a person writes them (`25`, `0.5`, `19.999999`) into micro-dollars, without rounding.
 * Returns null for anything but a plain amount with at most six decimals and nine whole digits.
 */
export function parseDollars(text: string): number | null {
  const match = /^(\d{1,9})(?:\.(\d{1,6}))?$/.exec(text.trim());
  if (match === null) return null;
  const [, whole = '0', fraction = ''] = match;
  return Number(whole) * MICROS_PER_DOLLAR + Number(fraction.padEnd(6, '0'));
}

/** The price of a model. */
interface InputPrice {
  readonly input_price_micros_per_million_tokens: number;
}

/**
 * Returns the cost of a model's input tokens in micro-dollars, rounded up (contract: cost rule). Exact: all integers
 * are below 2^53, which allows 9 billion tokens at $1.
 */
export function inputCost_micros(
  { input_price_micros_per_million_tokens }: InputPrice,
  tokens: number,
): number {
  const product = tokens * input_price_micros_per_million_tokens;
  if (!Number.isSafeInteger(product) || product < 0)
    throw new RangeError(`cost of ${tokens} tokens is out of range`);
  const remainder = product % TOKENS_PER_PRICE;
  return (product - remainder) / TOKENS_PER_PRICE + (remainder === 0 ? 0 : 1);
}

/** Throws `RangeError` for an amount that is not a whole number of micro-dollars from `least` to `most`. */
export function requireMicros(amount: number, least: number, most = Number.MAX_SAFE_INTEGER): void {
  if (!Number.isSafeInteger(amount) || amount < least || amount > most) {
    throw new RangeError(`${amount} is not a whole number of micro-dollars from ${least} to ${most}`);
  }
}
