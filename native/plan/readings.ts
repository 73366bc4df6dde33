import { PlanRejected } from '../errors.ts';
import type { Branch, Plan, PlanLogits } from './plan.ts';
import { cutMiddle, readableTokens } from './shorten.ts';

/** A plan of a request. `readings[i]` is the number of branch `i`'s reading among all of the request. */
export interface RequestPlan extends Plan {
  readonly readings: readonly number[];
}

/** The logits of one branch: one list for each read. */
export type BranchLogits = PlanLogits[number];

/** Returns the logits of each reading, by its number. Throws if a plan's logits do not match its branches. */
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

/** A branch after a record, and the room for the record's tokens beside it. */
export interface RoomedBranch {
  readonly branch: Branch;
  readonly room: number;
}

/** Returns the tokens left for a record beside `used` others. Throws `PlanRejected` if they alone are too many. */
export function recordRoom(used: number, context_tokens: number, index: number): number {
  if (used <= context_tokens) return context_tokens - used;
  throw new PlanRejected(
    `The question needs ${used} tokens, more than the ${context_tokens} that the model can read at once.`,
    index,
  );
}

/**
 * Returns plans that read `opening` and the record once for all branches that see equally much of it. Reading `i` is
 * branch `i`. A branch's view depends on its own room only, so that no other question changes its answer.
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

/** Returns the number of a record's tokens that are missing in the shortest of these plans. */
export function leftOut(plans: readonly Plan[], record_tokens: number, opening_tokens: number): number {
  const shortest = plans.reduce(
    (least, { prefix }) => Math.min(least, prefix.length),
    Number.POSITIVE_INFINITY,
  );
  return plans.length === 0 ? 0 : record_tokens - (shortest - opening_tokens);
}

/** Returns the billed tokens for plans of one record: its longest reading once, and every branch. */
export function sharedTokens(plans: readonly Plan[]): number {
  const longest = plans.reduce((most, { prefix }) => Math.max(most, prefix.length), 0);
  return plans.flatMap(({ branches }) => branches).reduce((sum, { tokens }) => sum + tokens.length, longest);
}
