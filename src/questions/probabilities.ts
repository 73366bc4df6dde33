/** Probabilities are whole millionths: fine enough that rounding makes no relevant ties. */
const PARTS = 1_000_000;

/** Returns the logistic function, without overflow for any finite score. */
export function sigmoid(score: number): number {
  return score >= 0 ? 1 / (1 + Math.exp(-score)) : Math.exp(score) / (1 + Math.exp(score));
}

/** Returns probabilities that sum to 1, proportional to the exponentials of the scores. */
export function softmax(scores: readonly number[]): number[] {
  const highest = Math.max(...scores);
  const weights = scores.map((score) => Math.exp(score - highest));
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return weights.map((weight) => weight / sum);
}

/** Returns the logarithms of `softmax`: finite also for a probability that is too small for a number. */
export function logSoftmax(scores: readonly number[]): number[] {
  const highest = Math.max(...scores);
  const sum = scores.reduce((total, score) => total + Math.exp(score - highest), 0);
  return scores.map((score) => score - highest - Math.log(sum));
}

/**
 * Rounds the probabilities to whole millionths that sum to exactly one. Each is rounded down, and the
 * remaining millionths go to the largest remainders, so that rounding never swaps the order of two. Throws as
 * `checkProbability`.
 */
export function roundToSumOne(probabilities: readonly number[]): number[] {
  for (const probability of probabilities) checkProbability(probability);
  const parts = probabilities.map((probability) => Math.floor(probability * PARTS));
  const missing = PARTS - parts.reduce((sum, part) => sum + part, 0);
  const byRemainder = probabilities
    .map((probability, index) => ({
      index,
      probability,
      remainder: probability * PARTS - Math.floor(probability * PARTS),
    }))
    // Two probabilities that differ only in their last bit can have the same remainder.
    .sort((a, b) => b.remainder - a.remainder || b.probability - a.probability || a.index - b.index);
  for (const { index } of byRemainder.slice(0, Math.max(0, missing))) parts[index] = (parts[index] ?? 0) + 1;
  // Products that round up to whole parts can sum to one part too many.
  if (missing < 0) parts[largest(parts).index] = largest(parts).value + missing;
  return parts.map((part) => part / PARTS);
}

/** Rounds the value to whole millionths. */
export function roundToParts(value: number): number {
  return Math.round(value * PARTS) / PARTS;
}

/** Returns the first of the largest values, and its index; 0 at index 0 where there are none. */
export function largest(values: ArrayLike<number>): { readonly index: number; readonly value: number } {
  let index = 0;
  for (let at = 1; at < values.length; at += 1) if ((values[at] ?? 0) > (values[index] ?? 0)) index = at;
  return { index, value: values[index] ?? 0 };
}

/** Throws `RangeError` unless the value is a probability: NaN from a model is not an answer. */
export function checkProbability(value: number): void {
  if (!(value >= 0 && value <= 1)) throw new RangeError('the model gave a score that is not a number');
}
