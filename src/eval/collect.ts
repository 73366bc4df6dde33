import { applyTemperature, type TypeTemperatures } from '../../native/engine.ts';
import { classesOf, classProbabilities, type Question } from '../questions/question.ts';
import type { EvalCase } from './cases.ts';
import type { Prediction } from './predictions.ts';
import { PROBES, type Probe, probed } from './probes.ts';
import type { ScoreFile } from './score-file.ts';
import type { AnswerPair } from './stability.ts';

/** A question with its scores, which are not probabilities yet. */
export interface ScoredQuestion {
  readonly source: string;
  readonly record: string;
  readonly question: Question;
  readonly answer: number;
  readonly target: readonly number[];
  /** The uncalibrated scores. */
  readonly scores: readonly number[];
}

/** Returns the questions of the cases whose scores the file has. */
export function scoredQuestions(cases: readonly EvalCase[], file: ScoreFile): readonly ScoredQuestion[] {
  return cases.flatMap((subject) => {
    const scores = file.get(subject.digest, 'original')?.scores;
    if (!scores) return [];
    return subject.questions.map(({ question, answer, target }, index) => ({
      source: subject.source,
      record: subject.digest,
      question,
      answer,
      target,
      scores: scores[index] ?? [],
    }));
  });
}

/** Returns the model's answer to a question, calibrated where there are temperatures. */
export function predictionOf(scored: ScoredQuestion, temperatures: TypeTemperatures | undefined): Prediction {
  const { question, scores } = scored;
  return {
    source: scored.source,
    record: scored.record,
    type: question.type,
    classes: classesOf(question),
    probabilities: probabilitiesOf(question, scores, temperatures),
    answer: scored.answer,
    target: scored.target,
  };
}

function probabilitiesOf(
  question: Question,
  scores: readonly number[],
  temperatures: TypeTemperatures | undefined,
): readonly number[] {
  return classProbabilities(
    question,
    temperatures === undefined ? scores : applyTemperature(scores, question, temperatures),
  );
}

/** Returns the answers to every question that was repeated with a change, before and after it. */
export function answerPairs(
  cases: readonly EvalCase[],
  file: ScoreFile,
  temperatures: TypeTemperatures | undefined,
): ReadonlyMap<Probe, readonly AnswerPair[]> {
  const pairs = new Map<Probe, AnswerPair[]>(PROBES.map((probe) => [probe, []]));
  for (const subject of cases) {
    const originals = scoredQuestions([subject], file);
    for (const probe of PROBES) {
      const scores = file.get(subject.digest, probe)?.scores;
      const request = scores ? probed(probe, subject) : undefined;
      request?.asked.forEach((asked, index) => {
        const original = originals[asked];
        const question = request.questions[index];
        if (original === undefined || question === undefined) return;
        pairs.get(probe)?.push({
          before: predictionOf(original, temperatures),
          after: {
            classes: classesOf(question),
            probabilities: probabilitiesOf(question, scores?.[index] ?? [], temperatures),
          },
        });
      });
    }
  }
  return pairs;
}
