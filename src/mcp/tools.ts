import { type Static, type TSchema, Type } from '@sinclair/typebox';
import { ModeSchema } from '../decisions/schemas.ts';
import { QuestionSchema, type QuestionType } from '../questions/question.ts';
import { AnyKey } from '../questions/question-fields.ts';

/** The tools for agents over the Model Context Protocol. Models read their descriptions. */

const DecideArguments = Type.Object({
  record: Type.Union([Type.String(), Type.Record(AnyKey, Type.Unknown()), Type.Array(Type.Unknown())], {
    description:
      'What the questions are about: a text, or JSON such as a ticket, an order or a conversation. Send all that is needed to answer, and nothing else.',
  }),
  questions: Type.Record(AnyKey, QuestionSchema, {
    minProperties: 1,
    description:
      'From a name of your choice to a question: {"refund": {"type": "noul", "instructions": "Does the customer ask for money back?"}}.',
  }),
  model: Type.Optional(Type.String({ description: 'An id of list_models; decision-1 by default.' })),
  mode: Type.Optional(ModeSchema),
});

/** The types of questions, as a model reads of them. */
const TYPES = {
  noul: '"noul" for yes or no ("Is the customer angry?")',
  choice: '"choice" for exactly one of 2 to 255 options, an object from option to short description',
  score: '"score" for a level on an ordered scale, a list of level descriptions from lowest to highest',
} as const satisfies Record<QuestionType, string>;

/** The questions that show a model where the options of each type go. */
const EXAMPLE: Static<typeof DecideArguments>['questions'] = {
  team: {
    type: 'choice',
    instructions: 'Which team should handle this?',
    criteria: { billing: 'payments and refunds', technical: 'bugs and outages', other: 'anything else' },
  },
  urgency: { type: 'score', instructions: 'How urgent is it?', criteria: ['can wait', 'this week', 'today'] },
};

/** The days of the tool `usage`, today included. */
export const USAGE_DAYS = { default: 30, maximum: 90 } as const;

const UsageArguments = Type.Object({
  days: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: USAGE_DAYS.maximum,
      description: `How many days (UTC), today included, ${USAGE_DAYS.default} by default.`,
    }),
  ),
});
export type UsageArguments = Static<typeof UsageArguments>;

/** A tool as clients list it. */
export interface Tool {
  readonly title: string;
  readonly description: string;
  readonly arguments: TSchema;
}

/** Every tool by its name. None of them changes anything; `decide` costs credit. */
export const TOOLS = {
  decide: {
    title: 'Decide questions about a record',
    description: [
      'Answers closed questions about one record with calibrated probabilities, from a small local model. It never writes text. Ask several questions in one call: the record is read once.',
      `Types: ${Object.values(TYPES).join('; ')}.`,
      `A choice and a score have these in "criteria": ${JSON.stringify(EXAMPLE)}.`,
      'Each question must be answerable from the record alone, about one thing, in plain English. Add an option such as "other" where none may fit. Do not ask for facts that the record does not have, for arithmetic or for text.',
      'Answers: "noul" is the probability of yes; "choice" and "score" come with a probability for each option or level, and "confidence". A noul is at most .199 for no and at least .801 for yes: the nearer to these two, the less sure. Hand an answer with little confidence to a person.',
    ].join('\n'),
    arguments: DecideArguments,
  },
  list_models: {
    title: 'List models',
    description: 'Lists the models that decide can ask now, with a description of each.',
    arguments: Type.Object({}),
  },
  usage: {
    title: 'Show usage',
    description:
      'Shows what the project of this API key has used by now: requests, questions, input tokens and cost in dollars, in all and by day (UTC).',
    arguments: UsageArguments,
  },
} as const satisfies Record<string, Tool>;

export type ToolName = keyof typeof TOOLS;

/** Returns true if there is a tool of this name. */
export function isToolName(name: string): name is ToolName {
  return Object.hasOwn(TOOLS, name);
}
