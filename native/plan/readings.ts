import type { Branch, Plan, PlanLogits } from './plan.ts';
import { cutMiddle, readableTokens } from './shorten.ts';

/** A plan of a request: `readings[i]` is the number, among all of the request's readings, of what branch `i` reads. */
export interface RequestPlan extends Plan {
  readonly readings: readonly number[];
}

/** The logits of one branch: a list a read. */
export type BranchLogits = PlanLogits[number];

/** The logits of each reading, by its number. Throws when a plan has other logits than branches. */
export function logitsByReading(
  plans: readonly RequestPlan[],
  logits: readonly PlanLogits[],
): readonly BranchLogits[] {
  const found: BranchLogits[] = [];
  plans.forEach(({ readings }, plan) => {
    readings.forEach((reading, branch) => {
      const of_branch = logits[plan]?.[branch];
      if (of_branch === undefined) throw new Error(`The logits of reading ${reading} are missing.`);
      found[reading] = of_branch;
    });
  });
  return found;
}

/** A branch after a record, and how many tokens of the record there is room for beside it. */
export interface RoomedBranch {
  readonly branch: Branch;
  readonly room: number;
}

/**
 * Plans that read `opening` and the record once for all branches that see as much of it; reading `i` is branch `i`. How
 * much a branch sees depends on its own room alone, so that no other question of a request moves its answer.
 */
export function sharedPlans(
  opening: readonly number[],
  record: readonly number[],
  branches: readonly RoomedBranch[],
  context_tokens: number,
): readonly RequestPlan[] {
  const sizes = branches.map(({ room }) => readableTokens(record.length, room, context_tokens));
  return [...new Set(sizes)].map((size) => {
    const readings = sizes.flatMap((own, reading) => (own === size ? [reading] : []));
    return {
      prefix: [...opening, ...cutMiddle(record, size)],
      branches: readings.flatMap((reading) => branches[reading]?.branch ?? []),
      readings,
    };
  });
}

/** How many of a record's tokens are missing in the shortest of plans that begin with an opening and the record. */
export function leftOut(plans: readonly Plan[], record_tokens: number, opening_tokens: number): number {
  const shortest = plans.reduce(
    (least, { prefix }) => Math.min(least, prefix.length),
    Number.POSITIVE_INFINITY,
  );
  return plans.length === 0 ? 0 : record_tokens - (shortest - opening_tokens);
}

/** What is billed for plans of one record: its longest reading once, and every branch. */
export function sharedTokens(plans: readonly Plan[]): number {
  const longest = plans.reduce((most, { prefix }) => Math.max(most, prefix.length), 0);
  return plans.flatMap(({ branches }) => branches).reduce((sum, { tokens }) => sum + tokens.length, longest);
}
