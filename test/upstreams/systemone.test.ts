import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { JsonObject } from '../../src/json/json-value.ts';
import { readJson } from '../../src/json/read-json.ts';
import { writeJson } from '../../src/json/write-json.ts';
import { answerFrom, type Question, scoreCount, type WrittenAnswer } from '../../src/questions/question.ts';
import { readAnswer, requestBody } from '../../src/upstreams/systemone.ts';
import { WrongAnswer } from '../../src/upstreams/wrong-answer.ts';
import { ofAnyType } from '../support/questions.ts';

const text = fc.string({ maxLength: 12, unit: 'binary' });
const description = fc.oneof(text, fc.constant(null));
const question: fc.Arbitrary<Question> = ofAnyType({
  noul: fc.record({
    type: fc.constant('noul'),
    instructions: fc.option(text, { nil: undefined }),
    yes: fc.option(text, { nil: undefined }),
    no: fc.option(text, { nil: undefined }),
  }),
  choice: fc.record({
    type: fc.constant('choice'),
    instructions: fc.option(text, { nil: undefined }),
    options: fc.uniqueArray(fc.record({ id: text, description }), {
      selector: ({ id }) => id,
      minLength: 2,
      maxLength: 12,
    }),
  }),
  score: fc.record({
    type: fc.constant('score'),
    instructions: fc.option(text, { nil: undefined }),
    levels: fc.array(description, { minLength: 2, maxLength: 12 }),
  }),
});

/** A question with scores that a model might give. */
const scored = question.chain((asked) =>
  fc.tuple(
    fc.constant(asked),
    fc.array(fc.double({ min: -40, max: 40, noNaN: true }), {
      minLength: scoreCount(asked),
      maxLength: scoreCount(asked),
    }),
  ),
);

const VLLM_ASKED: readonly Question[] = [
  { type: 'noul', instructions: 'Is a refund wanted?', yes: undefined, no: undefined },
  {
    type: 'choice',
    instructions: 'Who?',
    options: [
      { id: 'a', description: 'x' },
      { id: 'b', description: null },
    ],
  },
  { type: 'score', instructions: 'How?', levels: ['not', 'soon', 'now'] },
];
/** The unchanged answer of vLLM 0.32.0 on a CPU for a Qwen3 with random weights. */
const VLLM_ANSWER =
  '{"id":"decision-857494d30f84ed7d","object":"structured_decision","created":1795403248,"model":"tiny","answers":{"q1":{"type":"noul","noul":0.4460419988256638,"probabilities":{"yes":0.4460419988256638,"no":0.5539580011743361},"confidence":2.4130468679012827e-05},"q2":{"type":"choice","choice":"b","probabilities":{"a":0.4527568477125384,"b":0.5472431522874617},"confidence":2.0906793554274825e-05},"q3":{"type":"score","score":0.9763510044531414,"legend":{"0":"not","1":"soon","2":"now"},"probabilities":{"0":0.3613600228351805,"1":0.30092894987649765,"2":0.33771102728832186},"confidence":2.2183543659718448e-05}},"usage":{"input_tokens":174,"output_tokens":3},"diagnostics":{"q1":{"label_mass":4.3560104967991476e-05,"argmax_is_label":false},"q2":{"label_mass":3.8203846803536946e-05,"argmax_is_label":false},"q3":{"label_mass":6.138903657817334e-05,"argmax_is_label":false}}}';

const NOUL = { type: 'noul', instructions: 'on?', yes: undefined, no: undefined } as const;
const ask = (asked: Question) => ({ question: asked, threshold: null });
const idOf = (index: number) => `q${index + 1}`;

/** The body of a server of this program. */
function bodyOf(answers: readonly WrittenAnswer[], tokens: unknown = 12): string {
  const ids = answers.map((_, index) => idOf(index));
  const usage = JSON.stringify({ input_tokens: tokens });
  return `{"object":"decision","answers":${writeJson(new JsonObject(ids, answers))},"usage":${usage}}`;
}

describe('an answer', () => {
  test('of another service of this program is the same answer here, to the last digit', () => {
    fc.assert(
      fc.property(fc.array(scored, { minLength: 1, maxLength: 5 }), (all) => {
        const answers = all.map(([asked, scores]) => answerFrom(ask(asked), scores));
        const questions = all.map(([asked]) => asked);
        const read = readAnswer(bodyOf(answers), questions);
        const again = questions.map((asked, index) => answerFrom(ask(asked), read.scores[index] ?? []));
        expect(writeJson(again)).toBe(writeJson(answers));
        expect(read.input_tokens).toBe(12);
      }),
      { numRuns: 300 },
    );
  });

  test('with a plain probability of yes is committed as our own answers are', () => {
    const noul = (probability: number) => {
      const body = { answers: { q1: { type: 'noul', noul: probability } } };
      return answerFrom(ask(NOUL), readAnswer(JSON.stringify(body), [NOUL]).scores[0] ?? []);
    };
    expect(noul(0)).toEqual({ type: 'noul', noul: 0 });
    expect(noul(0.25)).toEqual({ type: 'noul', noul: 0.0995 });
    expect(noul(0.5)).toEqual({ type: 'noul', noul: 0.801 });
    expect(noul(1)).toEqual({ type: 'noul', noul: 1 });
  });

  test('that is certain has finite scores, which say the same', () => {
    const ids = Array.from({ length: 255 }, (_, index) => `o${index}`);
    const options = ids.map((id) => ({ id, description: null }));
    const asked = { type: 'choice', instructions: 'Which?', options } as const;
    const probabilities = Object.fromEntries(ids.map((id, index) => [id, index === 0 ? 1 : 0]));
    const body = { answers: { q1: { type: 'choice', choice: 'o0', probabilities } } };
    const [scores = []] = readAnswer(JSON.stringify(body), [asked]).scores;
    expect(scores.every(Number.isFinite)).toBe(true);
    expect(JSON.parse(writeJson(answerFrom(ask(asked), scores)))).toMatchObject({
      choice: 'o0',
      probabilities,
    });
    const sure = { answers: { q1: { type: 'noul', noul: 1 } } };
    expect(readAnswer(JSON.stringify(sure), [NOUL]).scores.flat().every(Number.isFinite)).toBe(true);
  });

  test('of vLLM has the probabilities that it says', () => {
    const { scores, input_tokens } = readAnswer(VLLM_ANSWER, VLLM_ASKED);
    const [refund = [], who = [], urgent = []] = scores;
    expect(refund).toEqual([expect.closeTo(Math.log(0.4460419988256638 / 0.5539580011743361), 9)]);
    expect(who.map(Math.exp)).toEqual([
      expect.closeTo(0.4527568477125384, 9),
      expect.closeTo(0.5472431522874617, 9),
    ]);
    expect(urgent.map(Math.exp)).toEqual([
      expect.closeTo(0.3613600228351805, 9),
      expect.closeTo(0.30092894987649765, 9),
      expect.closeTo(0.33771102728832186, 9),
    ]);
    // Of three prompts: it has read the record for each question.
    expect(input_tokens).toBe(174);
  });

  const CHOICE = {
    type: 'choice',
    instructions: undefined,
    options: [
      { id: 'a', description: null },
      { id: 'b', description: null },
    ],
  } as const;
  const SCORE = { type: 'score', instructions: undefined, levels: ['low', 'high'] } as const;
  const good = { type: 'choice', choice: 'a', probabilities: { a: 0.75, b: 0.25 } };
  const level = { type: 'score', score: 0.25, probabilities: { 0: 0.75, 1: 0.25 } };

  test('that is right is taken, in whatever order its fields come', () => {
    expect(readAnswer(JSON.stringify({ answers: { q2: level, q1: good } }), [CHOICE, SCORE]).scores).toEqual([
      [Math.log(0.75), Math.log(0.25)],
      [Math.log(0.75), Math.log(0.25)],
    ]);
  });

  for (const [name, asked, answers] of [
    ['no answer', CHOICE, {}],
    ['an answer too many', CHOICE, { q1: good, q2: good }],
    ['another id', CHOICE, { q2: good }],
    ['another type', CHOICE, { q1: level }],
    ['no object', CHOICE, { q1: 'a' }],
    ['a choice that is no option', CHOICE, { q1: { ...good, choice: 'c' } }],
    ['a choice that is not the most likely option', CHOICE, { q1: { ...good, choice: 'b' } }],
    ['no choice', CHOICE, { q1: { ...good, choice: undefined } }],
    ['an option too few', CHOICE, { q1: { ...good, probabilities: { a: 1 } } }],
    ['an option too many', CHOICE, { q1: { ...good, probabilities: { a: 0.75, b: 0.25, c: 0 } } }],
    ['another option', CHOICE, { q1: { ...good, probabilities: { a: 0.75, c: 0.25 } } }],
    ['a sum below 1', CHOICE, { q1: { ...good, probabilities: { a: 0.75, b: 0.24 } } }],
    ['a sum above 1', CHOICE, { q1: { ...good, probabilities: { a: 0.75, b: 0.26 } } }],
    ['a negative probability', CHOICE, { q1: { ...good, probabilities: { a: 1.25, b: -0.25 } } }],
    ['a probability as text', CHOICE, { q1: { ...good, probabilities: { a: '0.75', b: 0.25 } } }],
    ['no probability', CHOICE, { q1: { ...good, probabilities: { a: null, b: 1 } } }],
    ['a score that is not the mean', SCORE, { q1: { ...level, score: 0.26 } }],
    ['no score', SCORE, { q1: { ...level, score: null } }],
    ['levels by another name', SCORE, { q1: { ...level, probabilities: { low: 0.75, high: 0.25 } } }],
    ['a noul above 1', NOUL, { q1: { type: 'noul', noul: 1.5 } }],
    ['no noul', NOUL, { q1: { type: 'noul' } }],
  ] as const) {
    test(`with ${name} is refused`, () => {
      expect(() => readAnswer(JSON.stringify({ answers }), [asked])).toThrow(WrongAnswer);
    });
  }

  test.each(['', 'null', '[]', '{"answers":[]}', '{"answers":{"q1":', '<html>'])('%j is refused', (body) => {
    expect(() => readAnswer(body, [NOUL])).toThrow(WrongAnswer);
  });

  test('that was changed anywhere is refused or still an answer: never something else', () => {
    fc.assert(
      fc.property(scored, fc.nat(), fc.nat(), ([asked, scores], at, character) => {
        const body = bodyOf([answerFrom(ask(asked), scores)]);
        const place = at % body.length;
        const changed =
          body.slice(0, place) + String.fromCharCode(32 + (character % 95)) + body.slice(place + 1);
        let read: ReturnType<typeof readAnswer>;
        try {
          read = readAnswer(changed, [asked]);
        } catch (error) {
          expect(error).toBeInstanceOf(WrongAnswer);
          return;
        }
        // Throws for anything that is no probability.
        answerFrom(ask(asked), read.scores[0] ?? []);
      }),
      { numRuns: 500 },
    );
  });

  test.each([0, -1, 1.5, '12', null, 2 ** 60])('bills no %j tokens', (tokens) => {
    const body = bodyOf([answerFrom(ask(NOUL), [0])], tokens);
    expect(readAnswer(body, [NOUL]).input_tokens).toBeNull();
  });
});

describe('a request', () => {
  test('carries the record and the questions as they are, under ids of our own', () => {
    fc.assert(
      fc.property(fc.array(question, { minLength: 1, maxLength: 3 }), fc.jsonValue(), (questions, state) => {
        const body = JSON.parse(requestBody(JSON.stringify(state), questions, 'kev'));
        expect(JSON.stringify(body.state)).toBe(JSON.stringify(JSON.parse(JSON.stringify(state))));
        expect(body.model).toBe('kev');
        expect(Object.keys(body.questions)).toEqual(questions.map((_, index) => idOf(index)));
        expect(Object.values<{ type: string }>(body.questions).map(({ type }) => type)).toEqual(
          questions.map(({ type }) => type),
        );
      }),
    );
  });

  test('keeps the order of options, and names no model where the servers need none', () => {
    const options = ['10', '9', 'b', 'a'].map((id) => ({ id, description: `${id}!` }));
    const body = readJson(requestBody('"on"', [{ type: 'choice', instructions: 'which?', options }], null));
    expect(writeJson(body)).toBe(
      '{"state":"on","questions":{"q1":{"type":"choice","instructions":"which?","criteria":{"10":"10!","9":"9!","b":"b!","a":"a!"}}}}',
    );
  });
});
