import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import type { Question } from '../../src/questions/question.ts';
import { Tuning } from '../../src/tuning/tuning.ts';
import {
  readTuning,
  type TuningContent,
  type TuningEntry,
  TuningUnusable,
  writeTuning,
} from '../../src/tuning/tuning-file.ts';
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
    expect(refusalOf(TEXT.replace('"version":1', '"version":2'))).toContain('another version');
    expect(refusalOf('{"calibration":1}\n')).toBe('is not a tuning file');
    expect(refusalOf('')).toBe('is not a tuning file');
    expect(refusalOf(TEXT.replace('"shift":[-0.25,0.75,1.75]', '"shift":[-0.25,0.75]'))).toContain(
      'line 3 has other numbers than its question has options',
    );
    expect(refusalOf(TEXT.replace('[3,70000]', '[70000,3]'))).toContain('line 3');
    expect(refusalOf(TEXT.replace('"scale":0.5', '"scale":0'))).toContain('its line 2 is no correction');
  });
});

describe('a tuning', () => {
  const tuning = Tuning.read(TEXT);
  const OTHER: Question = { ...NOUL, instructions: 'Is it a complaint?' };

  test('corrects the questions that were tuned, with their options in any order, and no others', () => {
    const turned = { ...CHOICE, options: CHOICE.options.toReversed() };
    const questions = [OTHER, NOUL, CHOICE, turned];
    const correct = tuning.correctionOf({ state: 'nothing known', questions, mode: 'fast' });
    expect(correct?.(0, [1])).toBeUndefined();
    // Half of 3, and the difference of the shifts of yes and no.
    expect(correct?.(1, [3])).toEqual([2.5]);
    const scores = [1, 2, 3];
    const corrected = correct?.(2, scores) ?? [];
    expect(correct?.(3, scores.toReversed())).toEqual(corrected.toReversed());
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
    expect(among?.(2, [0.1, 0.2, 0.3])).toEqual(alone?.(0, [0.1, 0.2, 0.3]) ?? []);
  });
});
