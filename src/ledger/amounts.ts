/** Throws `RangeError` for an amount that is not a whole number of micro-dollars from `least` to `most`. */
export function requireMicros(amount: number, least: number, most = Number.MAX_SAFE_INTEGER): void {
  if (!Number.isSafeInteger(amount) || amount < least || amount > most) {
    throw new RangeError(`${amount} is not a whole number of micro-dollars from ${least} to ${most}`);
  }
}
