import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { STATE_SIZE } from '../../native/engine.ts';
import type { Question } from '../../src/questions/question.ts';
import { Tunings, tuningSha256 } from '../../src/served-models/tunings.ts';
import { Tuning } from '../../src/tuning/tuning.ts';
import {
  LINES_OF_SLICE,
  readTuning,
  readTuningInSlices,
  type TuningContent,
  type TuningEntry,
  TuningUnusable,
  writeTuning,
} from '../../src/tuning/tuning-file.ts';
import { VECTOR_SIZE } from '../../src/tuning/vector-part.ts';
import { choiceOf } from './support.ts';

const NOUL: Question = { type: 'noul', instructions: 'Is it "a refund"?', yes: 'money back', no: undefined };
const CHOICE = choiceOf(['billing', '__proto__', 'other']);

function entry(question: Question, classes: number, more: Partial<TuningEntry> = {}): TuningEntry {
  return {
    question,
    mode: 'fast',
    scale: 0.5,
    shift: Array.from({ length: classes }, (_, at) => at - 0.25),
    words: null,
    vector: null,
    labels: 40,
    accuracy: { before: 0.5, after: 0.75 },
    loss: { before: 0.7, after: 0.5 },
    answer_shares: Array.from({ length: classes }, (_, at) => Number(at === 0)),
    ...more,
  };
}

const CONTENT: TuningContent = {
  header: {
    weights_sha256: 'a'.repeat(64),
    profile: 'markers-v1',
    model: 'decision-1',
    hash_key: [-1, 2 ** 31 - 1],
    fitted_on: { cases_sha256: 'b'.repeat(64), records: 40, seed: 1 },
  },
  entries: [
    entry(NOUL, 2),
    entry(CHOICE, 3, { words: { buckets: [3, 70_000], weights: [1, 0, -1, 0.5, 0, 2] } }),
  ],
};
const TEXT = writeTuning(CONTENT);

/** Why a text is refused. */
function refusalOf(text: string): string {
  try {
    readTuning(text);
  } catch (error) {
    if (error instanceof TuningUnusable) return error.message;
    throw error;
  }
  throw new Error('The text was taken.');
}

describe('a tuning file', () => {
  test('is read as it was written', () => {
    expect(readTuning(TEXT)).toEqual(CONTENT);
  });

  test('of many lines lets other work run after every few of them, in the service too', async () => {
    const entries = Array.from({ length: 5 * LINES_OF_SLICE }, () => entry(NOUL, 2));
    const content = { ...CONTENT, entries };
    const text = writeTuning(content);
    let pauses = 0;
    const pause = () => {
      pauses += 1;
      return Promise.resolve();
    };
    expect(await readTuningInSlices(text, pause)).toEqual(content);
    expect(pauses).toBe(4);
    let turns = 0;
    let is_read = false;
    const turn = () => {
      turns += 1;
      if (!is_read) setImmediate(turn);
    };
    setImmediate(turn);
    const row = { id: 'own', tuning_sha256: tuningSha256(text) };
    expect((await new Tunings(() => Promise.resolve(text)).of(row)).entries).toEqual(entries);
    is_read = true;
    expect(turns).toBeGreaterThanOrEqual(4);
  });

  test('that ends anywhere before its end is refused', () => {
    fc.assert(
      fc.property(fc.nat(TEXT.length - 1), (length) => {
        expect(() => readTuning(TEXT.slice(0, length))).toThrow(TuningUnusable);
      }),
    );
    const lines = TEXT.split('\n');
    expect(refusalOf(`${lines.slice(0, 2).join('\n')}\n`)).toBe('is not whole: copy it again, or tune again');
  });

  test('of another version, of something else, or with other numbers than options is refused with the reason', () => {
    // Version 2 had vectors of other numbers.
    for (const version of [2, 4]) {
      const other = TEXT.replace('"version":1', `"version":${version}`);
      expect(refusalOf(other)).toContain('another version');
    }
    expect(refusalOf('{"calibration":1}\n')).toBe('is not a tuning file');
    expect(refusalOf('')).toBe('is not a tuning file');
    expect(refusalOf(TEXT.replace('"shift":[-0.25,0.75,1.75]', '"shift":[-0.25,0.75]'))).toContain(
      'line 3 has other numbers than its question has options',
    );
    expect(refusalOf(TEXT.replace('[3,70000]', '[70000,3]'))).toContain('line 3');
    expect(refusalOf(TEXT.replace('"scale":0.5', '"scale":0'))).toContain('its line 2 is no correction');
  });
});

describe('a vector', () => {
  const vectorOf = (states: number, weight = 0.5) => ({
    centres: Array.from({ length: states }, () => 1),
    weights: Array.from({ length: states * VECTOR_SIZE }, () => weight),
  });
  const textOf = (noul: number, choice: number, weight?: number) =>
    writeTuning({
      ...CONTENT,
      entries: [
        entry(NOUL, 2, { vector: vectorOf(noul, weight) }),
        entry(CHOICE, 3, { vector: vectorOf(choice) }),
      ],
    });

  test('is as large as the engine’s hidden states', () => {
    expect(VECTOR_SIZE).toBe(STATE_SIZE);
  });

  test('is read as it was written, by no program that knows none; a file without any is as before', () => {
    expect(readTuning(textOf(1, 3)).entries[1]?.vector).toEqual(vectorOf(3));
    expect(JSON.parse(textOf(1, 3).split('\n')[0] ?? '')).toMatchObject({ version: 3 });
    expect(JSON.parse(TEXT.split('\n')[0] ?? '')).toMatchObject({ version: 1 });
    expect(TEXT).not.toContain('vector');
  });

  test('of another size than the question’s hidden states, or too long, is refused with the reason', () => {
    expect(refusalOf(textOf(2, 3))).toContain('line 2 has other numbers than its question has options');
    expect(refusalOf(textOf(1, 2))).toContain('line 3 has other numbers');
    expect(refusalOf(textOf(1, 3).replace('0.5,0.5,', '0.5,'))).toContain('line 2 has other numbers');
    expect(refusalOf(textOf(1, 3, 1_000))).toBe('is damaged: the vector in line 2 is too long');
  });

  test('adds to each class the product with its own hidden state, in any order of the options', () => {
    const tuning = Tuning.read(textOf(1, 3));
    const state = (value: number) => Array.from({ length: VECTOR_SIZE }, () => value);
    const turned = { ...CHOICE, options: CHOICE.options.toReversed() };
    const questions = [NOUL, CHOICE, turned];
    const correction = tuning.correctionOf({ state: 'any', questions, mode: 'fast' });
    expect(questions.map((_, index) => correction?.needsStates(index))).toEqual([true, true, true]);
    // Half of 3, the difference of the shifts, and half of the sum of the states, less the mean.
    expect(correction?.correct(0, [3], [state(2)])).toEqual([2.5 + VECTOR_SIZE - 1]);
    const states = [0, 1, 2].map(state);
    const corrected = correction?.correct(1, [1, 2, 3], states) ?? [];
    expect(correction?.correct(2, [3, 2, 1], states.toReversed())).toEqual(corrected.toReversed());
    expect(() => correction?.correct(0, [3])).toThrow(RangeError);
  });
});

describe('a tuning', () => {
  const tuning = Tuning.read(TEXT);
  const OTHER: Question = { ...NOUL, instructions: 'Is it a complaint?' };

  test('corrects the questions that were tuned, with their options in any order, and no others', () => {
    const turned = { ...CHOICE, options: CHOICE.options.toReversed() };
    const questions = [OTHER, NOUL, CHOICE, turned];
    const correction = tuning.correctionOf({ state: 'nothing known', questions, mode: 'fast' });
    expect(correction?.correct(0, [1])).toBeUndefined();
    // Half of 3, and the difference of the shifts of yes and no.
    expect(correction?.correct(1, [3])).toEqual([2.5]);
    const scores = [1, 2, 3];
    const corrected = correction?.correct(2, scores) ?? [];
    expect(correction?.correct(3, scores.toReversed())).toEqual(corrected.toReversed());
  });

  test('knows a question by all that it says, and by the mode', () => {
    const state = 'record';
    expect(tuning.correctionOf({ state, questions: [OTHER], mode: 'fast' })).toBeNull();
    expect(tuning.correctionOf({ state, questions: [NOUL], mode: 'consistent' })).toBeNull();
    expect(
      tuning.correctionOf({ state, questions: [choiceOf(['billing', 'other'])], mode: 'fast' }),
    ).toBeNull();
  });

  test('gives a question the same scores whatever else is asked', () => {
    const alone = tuning.correctionOf({ state: 'a record', questions: [CHOICE], mode: 'fast' });
    const among = tuning.correctionOf({ state: 'a record', questions: [NOUL, OTHER, CHOICE], mode: 'fast' });
    expect(among?.correct(2, [0.1, 0.2, 0.3])).toEqual(alone?.correct(0, [0.1, 0.2, 0.3]) ?? []);
  });
});
