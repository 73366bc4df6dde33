import type { RequestPlan } from './readings.ts';

/** The numbers of a hidden state, each a logit of another token: as many as decision-1's embeddings have. */
export const STATE_SIZE = 576;

/** The hidden states of one question: one list of `STATE_SIZE` numbers for each of its scores, in their order. */
export type HiddenStates = readonly (readonly number[])[];

/**
 * Returns the tokens whose logits are read as the hidden state, evenly spaced over a vocabulary. Logits are the product
 * of the hidden state with the output matrix. Those of as many tokens as the state has numbers tell what it tells.
 */
export function stateTokens(vocabulary_tokens: number): readonly number[] {
  const distance = vocabulary_tokens / STATE_SIZE;
  return Array.from({ length: STATE_SIZE }, (_, index) => Math.floor((index + 0.5) * distance));
}

/** Returns the plans with more wanted tokens at every read of the wanted readings. */
export function withStateTokens(
  plans: readonly RequestPlan[],
  tokens: readonly number[],
  isWanted: (reading: number) => boolean,
): readonly RequestPlan[] {
  return plans.map((plan) => ({
    ...plan,
    branches: plan.branches.map((branch, at) =>
      isWanted(plan.readings[at] ?? -1)
        ? {
            ...branch,
            reads: branch.reads.map((read) => ({ ...read, tokens: [...read.tokens, ...tokens] })),
          }
        : branch,
    ),
  }));
}

/** Returns a hidden state: the distances of its tokens' logits from their mean. */
export function hiddenState(logits: readonly number[]): readonly number[] {
  const mean = logits.reduce((sum, logit) => sum + logit, 0) / logits.length;
  return logits.map((logit) => logit - mean);
}
