import { expect, setDefaultTimeout, test } from 'bun:test';
import { TUNING_SEED } from '../../src/console/pages/evaluate/fit-questions.ts';
import { fitTuning } from '../../src/console/pages/evaluate/fit-tuning.ts';
import { seededRandom, shuffled } from '../../src/eval/random.ts';
import { writeJson } from '../../src/json/write-json.ts';
import { roundToSumOne, softmax } from '../../src/questions/probabilities.ts';
import { classProbabilities, questionBody } from '../../src/questions/question.ts';
import { correctedScores } from '../../src/tuning/correction.ts';
import { type LabelledAnswer, labelledQuestions, tuneQuestions } from '../../src/tuning/fit-corrections.ts';
import { classScores, engineScores, identityOf } from '../../src/tuning/question-identity.ts';
import { recordWords } from '../../src/tuning/record-words.ts';
import { Tuning } from '../../src/tuning/tuning.ts';
import { readTuning } from '../../src/tuning/tuning-file.ts';
import { syntheticAnswers } from '../tuning/support.ts';

setDefaultTimeout(120_000);

const TEMPERATURE = 2;
const of_options = [{ most_options: 255, temperature: TEMPERATURE }];
const temperatures = { noul: TEMPERATURE, choice: of_options, score: of_options };
const header = {
  weights_sha256: 'a'.repeat(64),
  profile: 'profile',
  model: 'decision-1',
  hash_key: [1, 2],
  fitted_on: { cases_sha256: 'b'.repeat(64), records: 120, seed: TUNING_SEED },
} as const;

/** The labels as the page has them: probabilities of whole millionths. */
function fromResponses(answers: readonly LabelledAnswer[]) {
  const { weights_sha256, profile, model, hash_key, fitted_on } = header;
  const [{ question } = { question: undefined }] = answers;
  if (question === undefined) throw new Error('there are no answers');
  const { places } = identityOf(question);
  return fitTuning(
    {
      base: { weights_sha256, profile, temperatures: { fast: temperatures, consistent: temperatures } },
      ...{ model, mode: 'fast', hash_key },
      cases_sha256: fitted_on.cases_sha256,
      records: fitted_on.records,
      questions: [
        {
          name: 'topic',
          body: writeJson(questionBody(question)),
          answers: answers.map(({ state, scores, answer, target }) => {
            const shares = roundToSumOne(softmax([...scores]));
            return {
              record: writeJson(state),
              probabilities: places.map((place) => shares[place] ?? 0),
              answer: places.indexOf(answer),
              target: places.map((place) => target[place] ?? 0),
            };
          }),
        },
      ],
    },
    () => undefined,
  );
}

test('a fit on responses is that of tds tune on scores, and its file corrects uncalibrated scores alike', async () => {
  const answers = syntheticAnswers({
    count: 120,
    random: seededRandom(3),
    shift: [0, 1.5, -1],
    word_weight: 2,
  }).map((one) => ({ ...one, record: writeJson(one.state) }));
  const { questions, text } = await fromResponses(answers);
  const random = seededRandom(TUNING_SEED);
  const tuned = await tuneQuestions(labelledQuestions(answers, header.hash_key), {
    order: (indexes) => shuffled(indexes, random),
    onFit: () => undefined,
  });
  const fitted = tuned[0]?.fitted;
  if (fitted === undefined || typeof fitted === 'string') throw new Error('nothing was fitted');
  const [shown] = questions;
  if (shown === undefined || typeof shown.fitted === 'string') throw new Error('nothing is shown');
  expect(shown.name).toBe('topic');
  expect(shown.fitted.before.accuracy).toBe(fitted.before.accuracy);
  expect(shown.fitted.after.loss).toBeCloseTo(fitted.after.loss, 3);
  expect(shown.fitted.after.loss).toBeLessThan(shown.fitted.before.loss);

  expect(readTuning(text ?? '').header).toEqual(header);
  const { correction } = fitted;
  if (correction === null) throw new Error('nothing was better');
  const tuning = Tuning.read(text ?? '');
  for (const { question, state, scores } of answers) {
    const uncalibrated = scores.map((score) => score * TEMPERATURE);
    const correction_by_file = tuning.correctionOf({ state, questions: [question], mode: 'fast' });
    const by_file = correction_by_file?.correct(0, uncalibrated);
    const identity = identityOf(question);
    const corrected = correctedScores(correction, {
      scores: classScores(question, identity, scores),
      words: recordWords(state, header.hash_key),
      states: null,
    });
    const expected = classProbabilities(question, engineScores(question, identity, corrected));
    for (const [at, share] of classProbabilities(question, by_file ?? []).entries())
      expect(share).toBeCloseTo(expected[at] ?? Number.NaN, 2);
  }
});

test('few labels and one class are told, and there is no file', async () => {
  const answers = syntheticAnswers({ count: 7, random: seededRandom(3) });
  expect(await fromResponses(answers)).toMatchObject({
    questions: [{ labels: 7, fitted: 'too_few_labels' }],
    text: null,
  });
  const same = syntheticAnswers({ count: 20, random: seededRandom(3) }).map((one) => ({
    ...one,
    answer: 1,
    target: [0, 1, 0],
  }));
  expect(await fromResponses(same)).toMatchObject({
    questions: [{ labels: 20, fitted: 'one_class' }],
    text: null,
  });
});
