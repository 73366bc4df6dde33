import type { ChoiceQuestion } from '../../src/questions/choice.ts';
import type { NoulQuestion } from '../../src/questions/noul.ts';
import type { Question } from '../../src/questions/question.ts';
import type { ScoreQuestion } from '../../src/questions/score.ts';
import type { PlanLogits } from './plan.ts';
import { type DecisionInput, type DecisionPlan, PlanRejected, type PromptProfile } from './profile.ts';
import type { RequestPlan } from './readings.ts';

/** The ways in which one question is asked, and how their scores become its own. */
interface Wordings {
  readonly questions: readonly [Question, ...Question[]];
  /** `scores[i]` are those of `questions[i]`. */
  combine(scores: readonly (readonly number[])[]): readonly number[];
}

/** The mean of an option's scores, in one direction and, last option first, in the other. */
function meanOfDirections(
  forward: readonly number[] = [],
  backward: readonly number[] = [],
): readonly number[] {
  return forward.map((score, index) => (score + (backward.at(-1 - index) ?? Number.NaN)) / 2);
}

function backwards(question: ChoiceQuestion): ChoiceQuestion {
  return { ...question, options: question.options.toReversed() };
}

/** Sorted by id, in both directions: every order that the options may come in becomes the same. */
function choiceWordings(question: ChoiceQuestion): Wordings {
  const sorted = question.options
    .map((option, place) => ({ option, place }))
    .sort((left, right) => (left.option.id < right.option.id ? -1 : 1));
  const forward = { ...question, options: sorted.map(({ option }) => option) };
  return {
    questions: [forward, backwards(forward)],
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

/** As it is: no other way of asking made a noul steadier at the same accuracy. */
function noulWordings(question: NoulQuestion): Wordings {
  return { questions: [question], combine: ([own = []]) => own };
}

/** Its levels in both directions: the mean of the two. */
function scoreWordings(question: ScoreQuestion): Wordings {
  return {
    questions: [question, { ...question, levels: question.levels.toReversed() }],
    combine: ([up, down]) => meanOfDirections(up, down),
  };
}

function wordingsOf(question: Question): Wordings {
  switch (question.type) {
    case 'noul':
      return noulWordings(question);
    case 'choice':
      return choiceWordings(question);
    case 'score':
      return scoreWordings(question);
  }
}

/** All wordings of a request as one request, with the question that each of them is of. */
interface WordedRequest {
  readonly asked: readonly Wordings[];
  readonly input: DecisionInput;
  readonly owners: readonly number[];
}

function worded(input: DecisionInput): WordedRequest {
  const asked = input.questions.map(wordingsOf);
  return {
    asked,
    input: { ...input, mode: 'fast', questions: asked.flatMap(({ questions }) => questions) },
    owners: asked.flatMap(({ questions }, index) => questions.map(() => index)),
  };
}

/** The items of each question, of one item a wording. */
function byQuestion<Item>({ asked, owners }: WordedRequest, items: readonly Item[]): readonly Item[][] {
  return asked.map((_, question) => items.filter((_item, wording) => owners[wording] === question));
}

/** The plans of one question: those of all wordings, with the branches of its own. */
function plansOf(
  { owners }: WordedRequest,
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

/** The record and the question once, however many wordings are read: a client can tell beforehand what is billed. */
function billedTokens(plans: readonly RequestPlan[]): number {
  const first = Math.min(...plans.flatMap(({ readings }) => readings));
  for (const { prefix, branches, readings } of plans) {
    const branch = branches[readings.indexOf(first)];
    if (branch !== undefined) return prefix.length + branch.tokens.length;
  }
  throw new Error('A question has no wording.');
}

/** `plan`'s result; a rejected wording is a rejection of the question that it is of. */
async function rejectingOwners(
  owners: readonly number[],
  plan: () => Promise<DecisionPlan>,
): Promise<DecisionPlan> {
  try {
    return await plan();
  } catch (error) {
    if (!(error instanceof PlanRejected) || error.question === null) throw error;
    throw new PlanRejected(error.message, owners[error.question] ?? null);
  }
}

/**
 * A profile whose consistent mode asks every question in the ways after the record that made its answers steadier, and
 * combines the scores. The options of a choice are read in both directions, because an option sees only those before
 * it, and are sorted first, so that the order in which a client sends them changes nothing at all; the levels of a score
 * are read in both directions; a noul is read as it is. Every question has plans of its own that read the record.
 *
 * Each way of asking is `profile`'s fast one. Its own consistent mode puts the question before the record too; the
 * model card has the measurements by which that and other ways are left out. Fast mode is `profile`'s own.
 */
export function withSteadyReading(profile: PromptProfile): PromptProfile {
  return {
    name: `${profile.name}+steady-v3`,

    async plan(input: DecisionInput, context_tokens: number): Promise<DecisionPlan> {
      if (input.mode === 'fast') return await profile.plan(input, context_tokens);
      const request = worded(input);
      const wordings = await rejectingOwners(request.owners, () =>
        profile.plan(request.input, context_tokens),
      );
      const asked = request.asked.map((_, question) => plansOf(request, question, wordings.plans));
      return {
        plans: asked.flat(),
        input_tokens: asked.reduce((sum, plans) => sum + billedTokens(plans), 0),
      };
    },

    scores(
      input: DecisionInput,
      plans: readonly RequestPlan[],
      logits: readonly PlanLogits[],
    ): readonly (readonly number[])[] {
      if (input.mode === 'fast') return profile.scores(input, plans, logits);
      const request = worded(input);
      const scores = byQuestion(request, profile.scores(request.input, plans, logits));
      return request.asked.map(({ combine }, question) => combine(scores[question] ?? []));
    },
  };
}
