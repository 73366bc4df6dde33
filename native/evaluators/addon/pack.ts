import { type Plan, type PlanLogits, planTokens } from '../../plan/plan.ts';

/** How many numbers the packed plan has. */
function packedLength(plan: Plan): number {
  let length = 2 + planTokens(plan) + 2 * plan.branches.length;
  for (const branch of plan.branches) {
    for (const read of branch.reads) length += 2 + read.tokens.length;
  }
  return length;
}

/**
 * A plan as the addon reads it (`src/plan.hpp`). The addon checks all but one thing: that the numbers are integers of
 * 32 bits, which a typed array would make of any number. Throws a RangeError for those that are not.
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

/** The flat tokens of texts, in their order, as a list a text. */
export function unpackTokens(tokens: Int32Array, lengths: Int32Array): readonly (readonly number[])[] {
  let at = 0;
  return Array.from(lengths, (length) => {
    // A loop, because `Array.from` takes several times as long, and there may be hundreds of thousands.
    const list: number[] = [];
    for (const end = at + length; at < end; at++) list.push(tokens[at] ?? 0);
    return list;
  });
}

/** The flat logits of a plan's reads, in their order, as nested lists. */
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
