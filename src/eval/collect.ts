import { classesOf, classProbabilities, type Question } from '../questions/question.ts';
import type { EvalCase } from './cases.ts';
import type { Prediction } from './predictions.ts';
import { PROBES, type Probe, probed } from './probes.ts';
import type { ScoreFile } from './score-file.ts';
import type { ServedScores } from './served-scores.ts';
import type { AnswerPair } from './stability.ts';

/** A question with its scores, which are not probabilities yet. */
export interface ScoredQuestion {
  readonly source: string;
  readonly record: string;
  readonly question: Question;
  readonly answer: number;
  readonly target: readonly number[];
  /** The model's own scores. */
  readonly scores: readonly number[];
}

/** Returns the questions of the cases whose scores the file has; with their served scores where `served` is given. */
export function scoredQuestions(
  cases: readonly EvalCase[],
  file: ScoreFile,
  served?: ServedScores,
): readonly ScoredQuestion[] {
  return cases.flatMap((subject) => {
    const entry = file.get(subject.digest, 'original');
    const own = entry?.scores;
    if (!own) return [];
    const request = { state: subject.state, questions: subject.questions.map(({ question }) => question) };
    const scores = served?.(request, own, entry.states) ?? own;
    return subject.questions.map(({ question, answer, target }, index) => ({
      source: subject.source,
      record: subject.record,
      question,
      answer,
      target,
      scores: scores[index] ?? [],
    }));
  });
}

/** Returns the answer to a question under scores of any kind. */
export function predictionOf(scored: ScoredQuestion): Prediction {
  const { question, scores } = scored;
  return {
    source: scored.source,
    record: scored.record,
    type: question.type,
    classes: classesOf(question),
    probabilities: classProbabilities(question, scores),
    answer: scored.answer,
    target: scored.target,
  };
}

/** Returns the answers to every question that was repeated with a change, before and after it. */
export function answerPairs(
  cases: readonly EvalCase[],
  file: ScoreFile,
  served: ServedScores | undefined,
): ReadonlyMap<Probe, readonly AnswerPair[]> {
  const pairs = new Map<Probe, AnswerPair[]>(PROBES.map((probe) => [probe, []]));
  for (const subject of cases) {
    const originals = scoredQuestions([subject], file, served);
    for (const probe of PROBES) {
      const entry = file.get(subject.digest, probe);
      const own = entry?.scores;
      const request = own ? probed(probe, subject) : undefined;
      if (!own || request === undefined) continue;
      const scores = served?.(request, own, entry?.states) ?? own;
      request.asked.forEach((asked, index) => {
        const original = originals[asked];
        const question = request.questions[index];
        if (original === undefined || question === undefined) return;
        pairs.get(probe)?.push({
          before: predictionOf(original),
          after: {
            classes: classesOf(question),
            probabilities: classProbabilities(question, scores[index] ?? []),
          },
        });
      });
    }
  }
  return pairs;
}
