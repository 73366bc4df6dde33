import { expect, test } from 'bun:test';
import { Value } from '@sinclair/typebox/value';
import fc from 'fast-check';
import { JsonObject, jsonValueOf } from '../../src/json/json-value.ts';
import { writeJson } from '../../src/json/write-json.ts';
import {
  AnswerSchema,
  answerFrom,
  classesOf,
  classProbabilities,
  parseQuestion,
  QUESTION_TYPES,
  QuestionSchema,
  questionTypeOf,
  scoreCount,
} from '../../src/questions/question.ts';
import { ofAnyType } from '../support/questions.ts';

const instructions = fc.string();
const option = fc.record({ id: fc.string(), description: fc.option(fc.string()) });
const question = ofAnyType({
  noul: fc.record({ type: fc.constant('noul'), instructions, yes: fc.string(), no: fc.constant(undefined) }),
  choice: fc.record({
    type: fc.constant('choice'),
    instructions,
    options: fc.uniqueArray(option, { minLength: 2, maxLength: 20, selector: ({ id }) => id }),
  }),
  score: fc.record({
    type: fc.constant('score'),
    instructions,
    levels: fc.array(fc.option(fc.string()), { minLength: 2, maxLength: 20 }),
  }),
});
const score = fc.double({ min: -60, max: 60, noNaN: true });

test('as many scores as a question yields give a probability for each class, and an answer of its type', () => {
  fc.assert(
    fc.property(
      question,
      fc.option(fc.double({ min: 0, max: 1, noNaN: true })),
      fc.infiniteStream(score),
      (asked, threshold, stream) => {
        const scores = [...stream.take(scoreCount(asked))];
        const probabilities = classProbabilities(asked, scores);
        expect(probabilities).toHaveLength(classesOf(asked).length);
        expect(Math.abs(probabilities.reduce((sum, value) => sum + value, 0) - 1)).toBeLessThan(1e-9);
        const answer: unknown = JSON.parse(writeJson(answerFrom({ question: asked, threshold }, scores)));
        expect(Value.Check(AnswerSchema, answer)).toBe(true);
        expect(answer).toHaveProperty('type', asked.type);
      },
    ),
    { verbose: 1 },
  );
});

test('the score of a noul is the log-odds of yes', () => {
  const noul = { type: 'noul', instructions: 'Is it late?', yes: undefined, no: undefined } as const;
  expect(classesOf(noul)).toEqual(['no', 'yes']);
  expect(classProbabilities(noul, [Math.log(3)])[1]).toBeCloseTo(0.75, 9);
  expect(answerFrom({ question: noul, threshold: 0.5 }, [Math.log(3)])).toMatchObject({ decision: true });
});

test('a score too few, one too many, or one that is NaN is no answer', () => {
  fc.assert(
    fc.property(question, fc.infiniteStream(score), (asked, stream) => {
      const few = [...stream.take(scoreCount(asked) - 1)];
      for (const scores of [few, [...few, 0, 0], [...few, Number.NaN]]) {
        expect(() => answerFrom({ question: asked, threshold: null }, scores)).toThrow(RangeError);
      }
    }),
    { verbose: 1 },
  );
});

test('the types that are read are those of the schema', () => {
  const documented = QuestionSchema.anyOf.map(({ properties }) => properties.type.const);
  expect([...QUESTION_TYPES]).toEqual(documented);
  for (const type of documented) {
    expect(questionTypeOf(new JsonObject(['type'], [type]))).toBe(type);
  }
});

test.each(['', 'NOUL', 'toString', '__proto__', null, 1])('%p is no type', (type) => {
  const body = new JsonObject(['type', 'criteria'], [type, null]);
  expect(questionTypeOf(body)).toBeNull();
  expect(parseQuestion(body)).toBeNull();
});

test('criteria of a noul are those of true and false, also where yes and no are beside them', () => {
  const body = new JsonObject(
    ['type', 'criteria'],
    ['noul', jsonValueOf({ yes: 'yes', no: 'no', true: 'true', false: 'false' })],
  );
  expect(parseQuestion(body)).toMatchObject({ question: { yes: 'true', no: 'false' } });
});
