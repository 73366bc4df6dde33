/** The bounds of one read: those that a profile needs, or that an evaluator supports. */
export interface ReadBounds {
  /** The largest number of tokens of one read. */
  readonly tokens_max: number;
  /** The position of reads in a branch: after any of its tokens, or after the last one only. */
  readonly position: 'anywhere' | 'last_token';
}

/** Returns true if an evaluator with `offered` serves a profile that needs `needed`. */
export function coversReads(offered: ReadBounds, needed: ReadBounds): boolean {
  const covers_position = offered.position === 'anywhere' || needed.position === 'last_token';
  return covers_position && needed.tokens_max <= offered.tokens_max;
}
