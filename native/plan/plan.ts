/** A position in a branch with wanted logits: an index into the branch's tokens, and the token ids. */
export interface Read {
  readonly index: number;
  readonly tokens: readonly number[];
}

/** Tokens that attend only to the plan's prefix and to themselves. Their positions continue after the prefix. */
export interface Branch {
  readonly tokens: readonly number[];
  readonly reads: readonly Read[];
}

/** The input of an evaluator, as pure data: a prefix that is read once, and branches after it. */
export interface Plan {
  readonly prefix: readonly number[];
  readonly branches: readonly Branch[];
}

/** The logits of a plan: `logits[branch][read][token]`, in the plan's order. */
export type PlanLogits = readonly (readonly (readonly number[])[])[];

/** Returns the number of a plan's tokens, which are billed. */
export function planTokens(plan: Plan): number {
  return plan.branches.reduce((sum, branch) => sum + branch.tokens.length, plan.prefix.length);
}

/** Returns the pairs of a plan's tokens and the tokens that each attends to, which are itself and those before it. */
export function planPairs({ prefix, branches }: Plan): number {
  const triangle = (length: number) => (length * (length + 1)) / 2;
  return branches.reduce(
    (sum, { tokens }) => sum + tokens.length * prefix.length + triangle(tokens.length),
    triangle(prefix.length),
  );
}

/** Returns the positions that a plan needs for its longest branch. */
export function planPositions(plan: Plan): number {
  return plan.branches.reduce(
    (longest, branch) => Math.max(longest, plan.prefix.length + branch.tokens.length),
    plan.prefix.length,
  );
}
