import { describe, expect, test } from 'bun:test';
import { codesV1 } from '../../../native/plan/codes-v1.ts';
import { withConsistentReadings } from '../../../native/plan/consistent-readings.ts';
import { markersV1 } from '../../../native/plan/markers-v1.ts';
import type { PromptProfile, Tokenizer } from '../../../native/plan/profile.ts';
import { RECORD_CHARACTERS_MAX } from '../../../native/plan/record.ts';
import { type JsonValue, jsonValueOf } from '../../../src/json/json-value.ts';
import type { Mode, Question } from '../../../src/questions/question.ts';
import { rejection } from './rejection.ts';
import { NO_WORDS, tokenizerOf, wordTokens } from './words.ts';

const CONTEXT_TOKENS = 1024;
/** The largest body, all of it in one value. */
const MEGABYTE = 1_000_000;
/** The most characters that may be tokenized of a text that cannot fit. */
const BOUND = 10 * CONTEXT_TOKENS;

/** A tokenizer that writes down all that it is given. */
function listening(): { readonly tokenizer: Tokenizer; readonly heard: string[] } {
  const heard: string[] = [];
  return {
    heard,
    tokenizer: tokenizerOf((text) => {
      heard.push(text);
      return wordTokens(text);
    }),
  };
}

function codes(tokenizer: Tokenizer): Promise<PromptProfile> {
  return codesV1({ tokenizer, vocabulary: NO_WORDS, chat_template: undefined });
}

const PROFILES: readonly (readonly [
  string,
  Mode,
  (tokenizer: Tokenizer) => PromptProfile | Promise<PromptProfile>,
])[] = [
  ['markers-v1', 'fast', markersV1],
  ['markers-v1', 'consistent', markersV1],
  ['steady', 'consistent', (tokenizer) => withConsistentReadings(markersV1(tokenizer))],
  ['codes-v1', 'fast', codes],
  ['codes-v1', 'consistent', codes],
];

const NOUL: Question = { type: 'noul', instructions: 'Is it late?', yes: undefined, no: undefined };

/** Values of at most a megabyte of JSON that cannot fit as a question, or only just. */
function nested(levels: number, value: JsonValue): JsonValue {
  return levels === 0 ? value : [nested(levels - 1, value)];
}
const LONG: readonly (readonly [string, JsonValue])[] = [
  ['numbers of 309 digits', Array.from({ length: 140_000 }, () => 1e308)],
  ['numbers of 309 digits in one line', jsonValueOf({ a: Array.from({ length: 140_000 }, () => 1e308) })],
  [
    'deep indentation',
    nested(
      60,
      Array.from({ length: 300_000 }, () => 1),
    ),
  ],
  ['one word', 'a'.repeat(MEGABYTE)],
  ['white space', `a${' '.repeat(MEGABYTE)}b`],
  ['words', 'late '.repeat(MEGABYTE / 5)],
];

describe.each(PROFILES)('%s, %s', (_, mode, profileOf) => {
  test.each(LONG)(
    'a question of a megabyte of %s is rejected before it is tokenized',
    async (_name, value) => {
      const { tokenizer, heard } = listening();
      const profile = await profileOf(tokenizer);
      const places: readonly Question[] = [
        { ...NOUL, instructions: value },
        { ...NOUL, no: value },
        { type: 'score', instructions: '', levels: ['low', value] },
        {
          type: 'choice',
          instructions: '',
          options: [
            { id: 'a', description: null },
            { id: 'b', description: value },
          ],
        },
      ];
      for (const question of places) {
        heard.length = 0;
        const input = { state: 'short', questions: [NOUL, question], mode };
        const error = await rejection(profile.plan(input, CONTEXT_TOKENS));
        expect(error.question).toBe(1);
        expect(error.message).toContain(`${CONTEXT_TOKENS}`);
        expect(heard.join('').length).toBeLessThan(BOUND);
      }
    },
  );

  test('many options that are too long together are rejected once they do not fit', async () => {
    const { tokenizer, heard } = listening();
    const profile = await profileOf(tokenizer);
    heard.length = 0;
    const levels = Array.from({ length: 25 }, (_level, index) => `${index} ${'late '.repeat(8000)}`);
    const question: Question = { type: 'score', instructions: '', levels };
    const input = { state: '', questions: [NOUL, question], mode };
    const error = await rejection(profile.plan(input, CONTEXT_TOKENS));
    expect(error.question).toBe(1);
    expect(heard.join('').length).toBeLessThan(BOUND);
  });

  test.each(LONG.slice(3))(
    'of a record of a megabyte of %s only the ends are tokenized',
    async (_name, state) => {
      const { tokenizer, heard } = listening();
      const profile = await profileOf(tokenizer);
      heard.length = 0;
      await profile.plan({ state, questions: [NOUL], mode }, CONTEXT_TOKENS);
      expect(heard.join('').length).toBeLessThan(BOUND);
    },
  );

  test.each(LONG.slice(0, 3))(
    'a record that becomes many times its size by %s is rejected',
    async (_name, state) => {
      const { tokenizer, heard } = listening();
      const profile = await profileOf(tokenizer);
      heard.length = 0;
      const error = await rejection(profile.plan({ state, questions: [NOUL], mode }, CONTEXT_TOKENS));
      expect(error.question).toBeNull();
      expect(error.message).toContain(`${RECORD_CHARACTERS_MAX}`);
      expect(heard.join('').length).toBeLessThan(BOUND);
    },
  );

  test('no text is tokenized twice', async () => {
    const { tokenizer, heard } = listening();
    const profile = await profileOf(tokenizer);
    heard.length = 0;
    const choice: Question = {
      type: 'choice',
      instructions: jsonValueOf({ which: 'one' }),
      options: [
        { id: 'b', description: 'the second' },
        { id: 'a', description: ['the first'] },
      ],
    };
    const noul: Question = { ...NOUL, yes: 'after noon', no: 'before' };
    await profile.plan({ state: 'a record', questions: [choice, noul, noul, choice], mode }, CONTEXT_TOKENS);
    const asked = heard.filter((text) => text.length > 0 && !text.endsWith('Record:\n'));
    expect(asked.length).toBe(new Set(asked).size);
  });
});

test('questions that fit one by one are rejected together when they are rendered to more than a body can hold', async () => {
  const { tokenizer } = listening();
  // Each is 100,000 characters from 650 bytes, and of its own digits, so that no two are the same text.
  const questions = Array.from({ length: 64 }, (_, index): Question => {
    const numbers = Array.from({ length: 300 }, (_number, place) => (1 + index / 100 + place / 1e6) * 1e307);
    return { ...NOUL, instructions: numbers };
  });
  const profile = markersV1(tokenizer);
  const plan = (asked: readonly Question[]) =>
    profile.plan({ state: '', questions: asked, mode: 'fast' }, 16_384);
  await plan(questions.slice(0, 11));
  expect((await rejection(plan(questions))).question).toBe(11);
});

test('as many questions as a body can hold are planned', async () => {
  const { tokenizer } = listening();
  const questions = Array.from(
    { length: 64 },
    (_, index): Question => ({ ...NOUL, instructions: `${index} ${'late '.repeat(3000)}` }),
  );
  for (const profile of [markersV1(tokenizer), withConsistentReadings(markersV1(tokenizer))]) {
    await profile.plan({ state: '', questions, mode: 'consistent' }, 16_384);
  }
});
