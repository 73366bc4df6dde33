import type { ChoiceQuestion } from '../../src/questions/choice.ts';
import type { Question } from '../../src/questions/question.ts';
import type { ScoreQuestion } from '../../src/questions/score.ts';
import { PlanRejected } from '../errors.ts';
import type { HiddenStates } from './hidden-state.ts';
import type { PlanLogits } from './plan.ts';
import type { DecisionInput, PromptProfile, RequestPlans, StateReads } from './profile.ts';
import type { RequestPlan } from './readings.ts';

/** The readings of one question, and the function that combines their scores. */
interface QuestionReadings {
  /** The question of each reading. The first one is billed. */
  readonly questions: readonly [Question, ...Question[]];
  /** Takes the scores of each reading, in the order of `questions`. */
  combine(scores: readonly (readonly number[])[]): readonly number[];
}

/** Returns the mean of each option's two scores. In `backward`, the score of the first option is the last. */
function meanOfDirections(
  forward: readonly number[] = [],
  backward: readonly number[] = [],
): readonly number[] {
  return forward.map((score, index) => (score + (backward.at(-1 - index) ?? Number.NaN)) / 2);
}

/** Reads the options sorted by id, forward and backward. Sorting makes the client's order irrelevant. */
function choiceReadings(question: ChoiceQuestion): QuestionReadings {
  const sorted = question.options
    .map((option, place) => ({ option, place }))
    .sort((left, right) => (left.option.id < right.option.id ? -1 : 1));
  const forward = { ...question, options: sorted.map(({ option }) => option) };
  return {
    questions: [forward, { ...forward, options: forward.options.toReversed() }],
    combine([one, other]) {
      const means = meanOfDirections(one, other);
      const scores = means.map(() => Number.NaN);
      sorted.forEach(({ place }, index) => {
        scores[place] = means[index] ?? Number.NaN;
      });
      return scores;
    },
  };
}

/** Reads the levels from the lowest to the highest, and backward. */
function scoreReadings(question: ScoreQuestion): QuestionReadings {
  return {
    questions: [question, { ...question, levels: question.levels.toReversed() }],
    combine: ([up, down]) => meanOfDirections(up, down),
  };
}

function readingsOf(question: Question): QuestionReadings {
  switch (question.type) {
    case 'noul':
      // Once: no second reading made a noul more consistent at the same accuracy.
      return { questions: [question], combine: ([own = []]) => own };
    case 'choice':
      return choiceReadings(question);
    case 'score':
      return scoreReadings(question);
  }
}

/** A request in which each reading of each question is a separate question. */
interface ExpandedRequest {
  /** The readings of each question of the original request. */
  readonly asked: readonly QuestionReadings[];
  /** The request that is planned, in fast mode: all readings, question by question. */
  readonly input: DecisionInput;
  /** The index of the original question, by reading. */
  readonly owners: readonly number[];
}

function expanded(input: DecisionInput): ExpandedRequest {
  const asked = input.questions.map(readingsOf);
  return {
    asked,
    input: { ...input, mode: 'fast', questions: asked.flatMap(({ questions }) => questions) },
    owners: asked.flatMap(({ questions }, index) => questions.map(() => index)),
  };
}

/** Groups one item for each reading by original question. */
function byQuestion<Item>({ asked, owners }: ExpandedRequest, items: readonly Item[]): readonly Item[][] {
  return asked.map((_, question) => items.filter((_item, reading) => owners[reading] === question));
}

/** Returns the plans with only the branches of one original question. */
function plansOf(
  { owners }: ExpandedRequest,
  question: number,
  plans: readonly RequestPlan[],
): readonly RequestPlan[] {
  return plans.flatMap(({ prefix, branches, readings }) => {
    const own = readings.flatMap((reading, at) => (owners[reading] === question ? [at] : []));
    if (own.length === 0) return [];
    return [
      {
        prefix,
        branches: own.flatMap((at) => branches[at] ?? []),
        readings: own.flatMap((at) => readings[at] ?? []),
      },
    ];
  });
}

/**
 * Returns the tokens of a question's first reading, record included. Further readings are free, so that clients can
 * predict the bill.
 */
function billedTokens(plans: readonly RequestPlan[]): number {
  const first = Math.min(...plans.flatMap(({ readings }) => readings));
  for (const { prefix, branches, readings } of plans) {
    const branch = branches[readings.indexOf(first)];
    if (branch !== undefined) return prefix.length + branch.tokens.length;
  }
  throw new Error('A question has no reading.');
}

/**
 * Resolves as `plan` does. A `PlanRejected` that names a reading is rejected again with the original question's index.
 */
async function namingOwners(
  owners: readonly number[],
  plan: () => Promise<RequestPlans>,
): Promise<RequestPlans> {
  try {
    return await plan();
  } catch (error) {
    if (!(error instanceof PlanRejected) || error.question === null) throw error;
    throw new PlanRejected(error.message, owners[error.question] ?? null);
  }
}

/** Returns hidden states that are combined in consistent mode, number by number, as scores are. */
function consistentStates(states: StateReads): StateReads {
  return {
    asked(input, plans, isWanted) {
      if (input.mode === 'fast') return states.asked(input, plans, isWanted);
      const { owners, input: read } = expanded(input);
      return states.asked(read, plans, (reading) => isWanted(owners[reading] ?? -1));
    },
    of(input, plans, logits) {
      if (input.mode === 'fast') return states.of(input, plans, logits);
      const request = expanded(input);
      const readings = byQuestion(request, states.of(request.input, plans, logits));
      return request.asked.map((asked, question) => combinedStates(asked, readings[question] ?? []));
    },
  };
}

function combinedStates({ combine }: QuestionReadings, readings: readonly HiddenStates[]): HiddenStates {
  const [first = []] = readings;
  const combined = (first[0] ?? []).map((_, at) =>
    combine(readings.map((states) => states.map((state) => state[at] ?? Number.NaN))),
  );
  return first.map((_, score) => combined.map((numbers) => numbers[score] ?? Number.NaN));
}

/**
 * Returns a profile whose consistent mode asks each question in several readings and averages their scores. An option
 * attends only to the options before it, so a choice and a score are read forward and backward. A noul is read once.
 *
 * Each reading is planned as a question of `profile`'s fast mode, and each question has its own plans with the record.
 * The model card compares this with other methods, such as `profile`'s consistent mode. Fast mode is `profile`'s own.
 */
export function withConsistentReadings(profile: PromptProfile): PromptProfile {
  return {
    // Calibrations on disk and the model card use this name.
    name: `${profile.name}+steady-v3`,
    reads_many_options_twice: profile.reads_many_options_twice,
    states: profile.states && consistentStates(profile.states),

    async plan(input: DecisionInput, context_tokens: number): Promise<RequestPlans> {
      if (input.mode === 'fast') return await profile.plan(input, context_tokens);
      const request = expanded(input);
      const all = await namingOwners(request.owners, () => profile.plan(request.input, context_tokens));
      const asked = request.asked.map((_, question) => plansOf(request, question, all.plans));
      return {
        plans: asked.flat(),
        input_tokens: asked.reduce((sum, plans) => sum + billedTokens(plans), 0),
        record_tokens_left_out: all.record_tokens_left_out,
      };
    },

    scores(
      input: DecisionInput,
      plans: readonly RequestPlan[],
      logits: readonly PlanLogits[],
    ): readonly (readonly number[])[] {
      if (input.mode === 'fast') return profile.scores(input, plans, logits);
      const request = expanded(input);
      const scores = byQuestion(request, profile.scores(request.input, plans, logits));
      return request.asked.map(({ combine }, question) => combine(scores[question] ?? []));
    },
  };
}
