/** The bounds of a share. */
export interface ShareInterval {
  readonly low: number;
  readonly high: number;
}

/** The normal quantile of a 95% interval. */
const QUANTILE = 1.959_964;

/**
 * Returns Wilson's 95% interval of the share of successes among `count` independent trials. It is between 0 and 1, and
 * contains the observed share. Without trials it is all of 0 to 1.
 */
export function wilsonInterval(successes: number, count: number): ShareInterval {
  if (count === 0) return { low: 0, high: 1 };
  const share = successes / count;
  const square = QUANTILE ** 2 / count;
  const center = (share + square / 2) / (1 + square);
  const half = Math.sqrt(share * (1 - share) * square + square ** 2 / 4) / (1 + square);
  // Rounding must not push a bound beyond the observed share.
  return {
    low: Math.max(0, Math.min(share, center - half)),
    high: Math.min(1, Math.max(share, center + half)),
  };
}
