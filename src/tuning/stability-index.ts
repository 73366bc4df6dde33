/** A distribution of answers over the classes of a question, and the number of answers that it was counted on. */
export interface AnswerDistribution {
  readonly shares: readonly number[];
  readonly answers: number;
}

/** Above this index, a distribution is usually taken for another one. */
export const STABILITY_INDEX_MAX = 0.2;

/** The standard errors above the index that chance alone brings on average which are taken for chance, too. */
const CHANCE_ERRORS = 2;

/**
 * Returns the population stability index of two distributions over the same classes, less the part that chance explains; 0
 * for equal ones. Two samples of one distribution have an index of about `(1 / n + 1 / m)` times a chi-squared number. Each
 * share is raised by half an answer of the smaller sample, because the index of a share of zero is infinite.
 */
export function stabilityIndex(one: AnswerDistribution, other: AnswerDistribution): number {
  const classes = one.shares.length;
  const added = 0.5 / Math.min(one.answers, other.answers);
  const index = one.shares.reduce((sum, share, at) => {
    const other_share = other.shares[at] ?? 0;
    const difference = (share - other_share) / (1 + classes * added);
    return sum + difference * Math.log((share + added) / (other_share + added));
  }, 0);
  const freedom = classes - 1;
  const chance = freedom + CHANCE_ERRORS * Math.sqrt(2 * freedom);
  return Math.max(0, index - chance * (1 / one.answers + 1 / other.answers));
}
