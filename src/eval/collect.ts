import { applyTemperature, type TypeTemperatures } from '../../native/engine.ts';
import { classesOf, classProbabilities, type Question } from '../questions/question.ts';
import type { EvaluationCase } from './cases.ts';
import type { Prediction } from './predictions.ts';
import { PROBES, type Probe, probed } from './probes.ts';
import type { ScoreFile } from './score-file.ts';
import type { AnswerPair } from './stability.ts';

/** A question with its scores, before they become probabilities. */
export interface ScoredQuestion {
  readonly source: string;
  readonly record: string;
  readonly question: Question;
  readonly answer: number;
  readonly target: readonly number[];
  /** Uncalibrated. */
  readonly scores: readonly number[];
}

/** The questions of the cases that the file has scores of. */
export function scoredQuestions(
  cases: readonly EvaluationCase[],
  file: ScoreFile,
): readonly ScoredQuestion[] {
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

/** What the model says to a question, calibrated where there are temperatures. */
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

/** The answers to every question that was asked again with a change, before and after it. */
export function answerPairs(
  cases: readonly EvaluationCase[],
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
