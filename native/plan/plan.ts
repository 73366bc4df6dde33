/** One place in a branch where logits are wanted: an index into the branch's tokens, and the token ids to look at. */
export interface Read {
  readonly index: number;
  readonly tokens: readonly number[];
}

/** Tokens that attend to the plan's prefix and to themselves only; their positions go on from the prefix's length. */
export interface Branch {
  readonly tokens: readonly number[];
  readonly reads: readonly Read[];
}

/** All that an evaluator understands, and pure data: a prefix that is read once, and branches over it. */
export interface Plan {
  readonly prefix: readonly number[];
  readonly branches: readonly Branch[];
}

/** The logits that a plan asked for: `logits[branch][read][token]`, in the plan's own order. */
export type PlanLogits = readonly (readonly (readonly number[])[])[];

/** Everything that a plan reads, in tokens: what is billed for it. */
export function planTokens(plan: Plan): number {
  return plan.branches.reduce((sum, branch) => sum + branch.tokens.length, plan.prefix.length);
}

/** The positions that a plan needs at once for its longest branch. */
export function planPositions(plan: Plan): number {
  return plan.branches.reduce(
    (longest, branch) => Math.max(longest, plan.prefix.length + branch.tokens.length),
    plan.prefix.length,
  );
}
