import { type Plan, type PlanLogits, planTokens } from '../../plan/plan.ts';

/** Returns the length of the packed plan. */
function packedLength(plan: Plan): number {
  let length = 2 + planTokens(plan) + 2 * plan.branches.length;
  for (const branch of plan.branches) {
    for (const read of branch.reads) length += 2 + read.tokens.length;
  }
  return length;
}

/**
 * Packs a plan for the addon (`src/plan.hpp`), which checks it. Throws a RangeError for numbers that are no 32-bit
 * integers, because a typed array would convert them silently.
 */
export function packPlan(plan: Plan): Int32Array {
  const packed = new Int32Array(packedLength(plan));
  let at = 0;
  const put = (value: number): void => {
    packed[at] = value;
    if (packed[at++] !== value) throw new RangeError(`${value} is not a 32-bit integer`);
  };
  put(plan.prefix.length);
  put(plan.branches.length);
  plan.prefix.forEach(put);
  for (const branch of plan.branches) {
    put(branch.tokens.length);
    put(branch.reads.length);
    branch.tokens.forEach(put);
    for (const read of branch.reads) {
      put(read.index);
      put(read.tokens.length);
      read.tokens.forEach(put);
    }
  }
  return packed;
}

/** Returns one list of tokens for each text. */
export function unpackTokens(tokens: Int32Array, lengths: Int32Array): readonly (readonly number[])[] {
  let at = 0;
  return Array.from(lengths, (length) => {
    // A loop is several times as fast as `Array.from`, for up to hundreds of thousands of tokens.
    const list: number[] = [];
    for (const end = at + length; at < end; at++) list.push(tokens[at] ?? 0);
    return list;
  });
}

/** Returns the flat logits of a plan's reads as nested lists. */
export function unpackLogits(plan: Plan, logits: Float32Array): PlanLogits {
  let at = 0;
  return plan.branches.map((branch) =>
    branch.reads.map((read) => {
      const start = at;
      at += read.tokens.length;
      return Array.from(logits.subarray(start, at));
    }),
  );
}
