import { type Static, Type } from '@sinclair/typebox';
import type { Written } from '../../json/written.ts';
import { AnyKey, OPTIONS_MAX, OPTIONS_MIN, Probability } from '../../questions/question-fields.ts';

/**
 * OpenAI's request for decisions and its response, as in `client.decisions` of the `openai` packages. They
 * are the single source of the types in the code and of the OpenAPI document. An addition to the
 * specification.
 */

const Part = Type.Union(
  [
    Type.Object({ type: Type.Literal('input_text'), text: Type.String() }, { title: 'OpenAiTextPart' }),
    Type.Object(
      {
        type: Type.Literal('input_json'),
        data: Type.Union([Type.Record(AnyKey, Type.Unknown()), Type.Array(Type.Unknown())]),
      },
      { title: 'OpenAiJsonPart' },
    ),
    Type.Object(
      { type: Type.Literal('output_text'), text: Type.String() },
      { title: 'OpenAiOutputTextPart' },
    ),
    Type.Object({ type: Type.Literal('refusal'), refusal: Type.String() }, { title: 'OpenAiRefusalPart' }),
  ],
  { title: 'OpenAiPart' },
);

/** The parts that OpenAI has in one place only are taken in each. */
const Content = [Type.String(), Type.Array(Part)];

const INSTRUCTIONS = { description: 'The question, in plain English, answerable from the input alone.' };
const Instructions = Type.Union(Content, INSTRUCTIONS);
/** OpenAI has them in every question; those with criteria may leave them out, as in the contract. */
const OptionalInstructions = Type.Optional(Type.Union([...Content, Type.Null()], INSTRUCTIONS));

/** Null is the same as absent, for clients that send every field. */
const Name = Type.Optional(
  Type.Union([Type.String(), Type.Null()], { description: 'Repeated in the answer.' }),
);
const OptionDescription = Type.Optional(Type.Union([Type.String(), Type.Null()]));

const MessageSchema = Type.Object(
  {
    type: Type.Optional(Type.Union([Type.Literal('message'), Type.Null()])),
    role: Type.Union(['user', 'developer', 'system', 'assistant'].map((role) => Type.Literal(role))),
    content: Type.Union(Content),
  },
  { title: 'OpenAiMessage' },
);

const CallSchema = Type.Union([
  Type.Object(
    {
      type: Type.Literal('function_call'),
      call_id: Type.String(),
      name: Type.String(),
      arguments: Type.String(),
    },
    { title: 'OpenAiFunctionCall' },
  ),
  Type.Object(
    {
      type: Type.Literal('custom_tool_call'),
      call_id: Type.String(),
      name: Type.String(),
      input: Type.String(),
    },
    { title: 'OpenAiCustomToolCall' },
  ),
]);

const CallOutputSchema = Type.Object(
  {
    type: Type.Union([Type.Literal('function_call_output'), Type.Literal('custom_tool_call_output')]),
    call_id: Type.String({ description: 'The id of an earlier call.' }),
    output: Type.Union(Content),
  },
  { title: 'OpenAiCallOutput' },
);

/** The schemas of questions by type. */
export const OPENAI_QUESTION_SCHEMAS = {
  predicate: Type.Object(
    { type: Type.Literal('predicate'), name: Name, instructions: Instructions },
    { title: 'OpenAiPredicateQuestion', description: 'A yes/no question.' },
  ),
  choice: Type.Object(
    {
      type: Type.Literal('choice'),
      name: Name,
      instructions: OptionalInstructions,
      choices: Type.Array(
        Type.Object({
          value: Type.Union([Type.String(), Type.Boolean()]),
          description: OptionDescription,
        }),
        { minItems: OPTIONS_MIN, maxItems: OPTIONS_MAX },
      ),
    },
    { title: 'OpenAiChoiceQuestion', description: 'Exactly one of several options.' },
  ),
  score: Type.Object(
    {
      type: Type.Literal('score'),
      name: Name,
      instructions: OptionalInstructions,
      levels: Type.Array(Type.Object({ label: Type.String(), description: OptionDescription }), {
        minItems: OPTIONS_MIN,
        maxItems: OPTIONS_MAX,
        description: 'Lowest first.',
      }),
    },
    { title: 'OpenAiScoreQuestion', description: 'A level on an ordered scale.' },
  ),
};

/** Body of `POST /v1/decisions` in OpenAI's shape. Unknown fields are ignored. */
export const OpenAiDecisionRequestSchema = Type.Object({
  model: Type.String({ minLength: 1 }),
  input: Type.Union(
    [Type.String(), Type.Array(Type.Union([MessageSchema, CallSchema, CallOutputSchema]), { minItems: 1 })],
    { description: 'The record: a text, or messages, calls and their outputs in order.' },
  ),
  questions: Type.Array(Type.Union(Object.values(OPENAI_QUESTION_SCHEMAS), { title: 'OpenAiQuestion' }), {
    minItems: 1,
  }),
});

const AnswerName = Type.Union([Type.String(), Type.Null()], {
  description: 'Null where the question had none.',
});

export const OpenAiAnswerSchema = Type.Union(
  [
    Type.Object(
      {
        type: Type.Literal('predicate'),
        name: AnswerName,
        probability: Type.Number({
          minimum: 0,
          maximum: 1,
          description: 'Probability of yes; at most 0.199 or at least 0.801.',
        }),
      },
      { title: 'OpenAiPredicateAnswer' },
    ),
    Type.Object(
      {
        type: Type.Literal('choice'),
        name: AnswerName,
        choice: Type.Union([Type.String(), Type.Boolean()]),
        confidence: Probability,
        probabilities: Type.Array(
          Type.Object({ value: Type.Union([Type.String(), Type.Boolean()]), probability: Probability }),
        ),
      },
      { title: 'OpenAiChoiceAnswer' },
    ),
    Type.Object(
      {
        type: Type.Literal('score'),
        name: AnswerName,
        score: Type.Number({ minimum: 0, description: 'Expected level index, from 0.' }),
        confidence: Probability,
        probabilities: Type.Array(
          Type.Object({
            label: Type.String(),
            value: Type.Integer({ minimum: 0, description: 'The index of the level, from 0.' }),
            probability: Probability,
          }),
        ),
      },
      { title: 'OpenAiScoreAnswer' },
    ),
  ],
  { title: 'OpenAiAnswer' },
);
export type OpenAiAnswer = Static<typeof OpenAiAnswerSchema>;

/** The response to a request in OpenAI's shape: answers in the order of the questions. */
export const OpenAiDecisionSchema = Type.Object({
  model: Type.String(),
  answers: Type.Array(OpenAiAnswerSchema),
  usage: Type.Object({
    input_tokens: Type.Integer({ minimum: 0 }),
    input_tokens_details: Type.Object({
      cached_tokens: Type.Literal(0),
      cache_write_tokens: Type.Literal(0),
    }),
    output_tokens: Type.Literal(0, { description: 'Output is never billed.' }),
    output_tokens_details: Type.Object({ reasoning_tokens: Type.Literal(0) }),
    total_tokens: Type.Integer({ minimum: 0 }),
    cost_usd: Type.Number({ minimum: 0, description: 'Exactly what was deducted.' }),
  }),
});
export type WrittenOpenAiDecision = Written<Static<typeof OpenAiDecisionSchema>>;
