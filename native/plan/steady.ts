import type { Plan, PlanLogits } from './plan.ts';
import { planTokens } from './plan.ts';
import type { DecisionInput, DecisionPlan, PromptProfile } from './profile.ts';
import type { ChoiceQuestion, Question } from './question.ts';

/** A choice with its options sorted, and where each of them stood: `places[i]` is the client's index of option `i`. */
interface SortedChoice {
  readonly question: ChoiceQuestion;
  readonly places: readonly number[];
}

/** Sorted by id: every order that the options may come in becomes the same. */
function sortOptions(question: ChoiceQuestion): SortedChoice {
  const sorted = question.options
    .map((option, place) => ({ option, place }))
    .sort((left, right) => (left.option.id < right.option.id ? -1 : 1));
  return {
    question: { ...question, options: sorted.map(({ option }) => option) },
    places: sorted.map(({ place }) => place),
  };
}

/** The client's questions with choices sorted, and after them every choice once more with its options backwards. */
interface Wordings {
  readonly questions: readonly Question[];
  /** For each of the client's questions that is a choice: the index of its backward wording, and its places. */
  readonly choices: readonly (
    | { readonly backward: number; readonly places: readonly number[] }
    | undefined
  )[];
}

function wordings(asked: readonly Question[]): Wordings {
  const forward: Question[] = [];
  const backward: Question[] = [];
  const choices = asked.map((question) => {
    if (question.type !== 'choice') {
      forward.push(question);
      return undefined;
    }
    const sorted = sortOptions(question);
    forward.push(sorted.question);
    backward.push({ ...sorted.question, options: sorted.question.options.toReversed() });
    return { backward: asked.length + backward.length - 1, places: sorted.places };
  });
  return { questions: [...forward, ...backward], choices };
}

/** The scores of a sorted choice by both of its wordings, in the client's order. */
function clientScores(
  forward: readonly number[],
  backward: readonly number[],
  places: readonly number[],
): readonly number[] {
  const scores = forward.map(() => Number.NaN);
  places.forEach((place, index) => {
    scores[place] = ((forward[index] ?? Number.NaN) + (backward.at(-1 - index) ?? Number.NaN)) / 2;
  });
  return scores;
}

/**
 * A profile whose consistent mode asks a choice with its options in both directions and takes the mean of each
 * option's two scores, because an option sees only those before it. The options are sorted first, so that the order in
 * which a client sends them changes nothing at all. Every question has a plan of its own that reads the record.
 *
 * Each way of asking is `profile`'s fast one. Its own consistent mode puts the question before the record too; the
 * model card has the measurements by which that is left out. Fast mode is `profile`'s own.
 */
export function withSteadyChoices(profile: PromptProfile): PromptProfile {
  return {
    name: `${profile.name}+steady-v1`,

    plan(input: DecisionInput, context_tokens: number): DecisionPlan {
      if (input.mode === 'fast') return profile.plan(input, context_tokens);
      const { questions, choices } = wordings(input.questions);
      const together = profile.plan({ ...input, questions, mode: 'fast' }, context_tokens).plans[0];
      if (together === undefined) throw new Error('A profile made no plan.');
      const { prefix, branches } = together;
      const plans = choices.map((choice, index): Plan => {
        const asked = choice === undefined ? [index] : [index, choice.backward];
        return { prefix, branches: asked.flatMap((wording) => branches[wording] ?? []) };
      });
      return { plans, input_tokens: plans.reduce((sum, plan) => sum + planTokens(plan), 0) };
    },

    scores(input: DecisionInput, logits: readonly PlanLogits[]): readonly (readonly number[])[] {
      if (input.mode === 'fast') return profile.scores(input, logits);
      const { questions, choices } = wordings(input.questions);
      const forward = logits.flatMap((plan) => plan.slice(0, 1));
      const backward = logits.flatMap((plan) => plan.slice(1));
      const scores = profile.scores({ ...input, questions, mode: 'fast' }, [[...forward, ...backward]]);
      return choices.map((choice, index) =>
        choice === undefined
          ? (scores[index] ?? [])
          : clientScores(scores[index] ?? [], scores[choice.backward] ?? [], choice.places),
      );
    },
  };
}
