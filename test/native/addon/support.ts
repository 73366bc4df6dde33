import { describe } from 'bun:test';
import fc from 'fast-check';
import { compilerPath } from '../../../native/addon/build.ts';
import type { Branch, Plan, PlanLogits } from '../../../native/plan/plan.ts';
import { largestDistance } from '../support/distances.ts';

/** The evaluators that there are on this machine: the addon needs a C++ compiler. */
export const IMPLEMENTATIONS =
  compilerPath() === undefined ? (['llama'] as const) : (['addon', 'llama'] as const);

/** Like `describe`; skips where the addon cannot be built because there is no C++ compiler, and nowhere else. */
export function describeAddon(name: string, body: () => void): void {
  if (compilerPath() === undefined) console.warn(`No C++ compiler: "${name}" is not tested.`);
  describe.skipIf(compilerPath() === undefined)(name, body);
}

/** A branch of up to `longest` tokens with up to four reads, the last token among them. */
export function arbitraryBranch(token: fc.Arbitrary<number>, longest: number): fc.Arbitrary<Branch> {
  return fc.array(token, { minLength: 1, maxLength: longest, size: 'max' }).chain((tokens) =>
    fc.record({
      tokens: fc.constant(tokens),
      reads: fc
        .array(
          fc.record({
            index: fc.nat({ max: tokens.length - 1 }),
            tokens: fc.array(token, { minLength: 1, maxLength: 3 }),
          }),
          { maxLength: 3 },
        )
        .map((reads) => [...reads, { index: tokens.length - 1, tokens: [7, 8] }]),
    }),
  );
}

/** Plans whose parts are long enough to lie in several tiles of the cache, and short enough not to. */
export function arbitraryPlan(
  token: fc.Arbitrary<number>,
  longest: { readonly prefix: number; readonly branch: number; readonly branches: number },
): fc.Arbitrary<Plan> {
  return fc.record({
    prefix: fc.array(token, { maxLength: longest.prefix, size: 'max' }),
    branches: fc.array(arbitraryBranch(token, longest.branch), {
      minLength: 1,
      maxLength: longest.branches,
      size: 'max',
    }),
  });
}

/** A plan of these sizes with tokens that look random; `seed` makes another one. */
export function filledPlan(
  seed: number,
  sizes: { readonly prefix: number; readonly branches: readonly number[] },
  vocabulary = 260,
): Plan {
  let state = seed;
  const tokens = (count: number): number[] =>
    Array.from({ length: count }, () => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      return 9 + ((state >>> 8) % (vocabulary - 9));
    });
  return {
    prefix: tokens(sizes.prefix),
    branches: sizes.branches.map((length) => ({
      tokens: tokens(length),
      reads: [{ index: length - 1, tokens: [7, 8] }],
    })),
  };
}

/** The same plan with only the last read of each branch: what `probabilityDistance` compares. */
export function withLastReads(plan: Plan): Plan {
  return {
    ...plan,
    branches: plan.branches.map(({ tokens, reads }) => ({ tokens, reads: reads.slice(-1) })),
  };
}

/** The largest difference between two results in the probability of token 7 against token 8. */
export function probabilityDistance(left: PlanLogits, right: PlanLogits): number {
  const probabilities = (logits: PlanLogits) =>
    logits.flat().map(([yes = Number.NaN, no = Number.NaN]) => 1 / (1 + Math.exp(no - yes)));
  return largestDistance(probabilities(left), probabilities(right));
}
