/** What one read asks of an evaluator at most, or what an evaluator can give. */
export interface ReadBounds {
  /** Tokens whose logits one read looks at. */
  readonly tokens_max: number;
  /** Where in a branch logits are read: after any of its tokens, or after the last one only. */
  readonly position: 'anywhere' | 'last_token';
}

/** Whether an evaluator that can give `offered` serves a profile that needs `needed`. */
export function coversReads(offered: ReadBounds, needed: ReadBounds): boolean {
  const covers_position = offered.position === 'anywhere' || needed.position === 'last_token';
  return covers_position && needed.tokens_max <= offered.tokens_max;
}
