import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { parseCase } from '../../src/eval/cases.ts';
import { PROBES, probed } from '../../src/eval/probes.ts';
import { flipped, steadiness, totalVariation } from '../../src/eval/stability.ts';
import { choicePrediction, noulPrediction } from './support.ts';

const CASE = parseCase(
  JSON.stringify({
    src: 's',
    state: { text: 'It is late.' },
    questions: [
      { type: 'noul', instructions: 'Is it late?', answer: true },
      {
        type: 'choice',
        instructions: 'When?',
        criteria: { day: 'by light', night: 'by dark', dusk: null },
        answer: 'night',
      },
      { type: 'score', instructions: 'How late?', criteria: ['not', 'very'], answer: 1 },
    ],
  }),
  1,
);

describe('a probe', () => {
  test('asks about questions of the case, and changes what its name says', () => {
    const originals = CASE.questions.map(({ question }) => question);
    const backward = probed('options_reversed', CASE);
    expect(backward?.asked).toEqual([1]);
    expect(backward?.questions).toEqual([
      {
        type: 'choice',
        instructions: 'When?',
        options: [
          { id: 'dusk', description: null },
          { id: 'night', description: 'by dark' },
          { id: 'day', description: 'by light' },
        ],
      },
    ]);
    const added = probed('option_added', CASE);
    expect(added?.asked).toEqual([1]);
    expect(added?.questions[0]).toMatchObject({ options: { length: 4 } });
    const reworded = probed('question_reworded', CASE);
    expect(reworded?.asked).toEqual([0, 1, 2]);
    reworded?.questions.forEach(({ instructions }, index) => {
      const before = originals[index]?.instructions;
      expect(instructions).not.toBe(before);
      expect(String(instructions)).toContain(String(before));
    });
    const more = probed('questions_added', CASE);
    expect(more?.questions.slice(0, 3)).toEqual(originals);
    expect(more?.questions.length).toBeGreaterThan(3);
    const text = probed('text_added', CASE);
    expect(text?.questions).toEqual(originals);
    expect(text?.state).toMatchObject({
      names: ['text', 'footer'],
      values: ['It is late.', expect.any(String)],
    });
    expect(text?.state).not.toEqual(CASE.state);
  });

  test('of options does not apply where there is no choice', () => {
    const noul = parseCase(
      JSON.stringify({ src: 's', state: 'x', questions: [{ type: 'noul', answer: true }] }),
      1,
    );
    expect(PROBES.filter((probe) => probed(probe, noul) === undefined)).toEqual([
      'options_reversed',
      'option_added',
      'question_reworded',
    ]);
  });
});

describe('steadiness', () => {
  test('looks at options by name, not by place', () => {
    const before = choicePrediction([0.7, 0.2, 0.1], 0);
    const same = { classes: ['c', 'b', 'a'], probabilities: [0.1, 0.2, 0.7] };
    expect(flipped({ before, after: same })).toBe(false);
    expect(totalVariation({ before, after: same })).toBeCloseTo(0, 12);
    const moved = { classes: ['c', 'b', 'a'], probabilities: [0.7, 0.2, 0.1] };
    expect(flipped({ before, after: moved })).toBe(true);
    expect(totalVariation({ before, after: moved })).toBeCloseTo(0.6, 12);
  });

  test('counts what went to an added option', () => {
    const before = choicePrediction([0.7, 0.3], 0);
    const after = { classes: ['a', 'b', 'new'], probabilities: [0.3, 0.3, 0.4] };
    expect(flipped({ before, after })).toBe(true);
    expect(totalVariation({ before, after })).toBeCloseTo(0.4, 12);
  });

  test('of a noul is about the side of one half that it is on', () => {
    const before = noulPrediction(0.6, true);
    const after = (yes: number) => ({ classes: ['no', 'yes'], probabilities: [1 - yes, yes] });
    expect(flipped({ before, after: after(0.5) })).toBe(false);
    expect(flipped({ before, after: after(0.49) })).toBe(true);
    expect(steadiness([0.5, 0.4].map((yes) => ({ before, after: after(yes) })))).toMatchObject({
      questions: 2,
      flip_rate: 0.5,
      mean_change: expect.closeTo(0.15, 12),
    });
  });

  test('the distance is from 0 to 1, and the same both ways', () => {
    const shares = fc
      .array(fc.double({ min: 0.001, max: 1, noNaN: true }), { minLength: 3, maxLength: 3 })
      .map((values) => values.map((value) => value / values.reduce((sum, one) => sum + one, 0)));
    fc.assert(
      fc.property(shares, shares, (one, two) => {
        const left = choicePrediction(one, 0);
        const right = choicePrediction(two, 0);
        const distance = totalVariation({ before: left, after: right });
        expect(distance).toBeWithin(0, 1 + 1e-9);
        expect(totalVariation({ before: right, after: left })).toBeCloseTo(distance, 12);
      }),
      { verbose: 1 },
    );
  });
});
