import type { JsonValue } from '../json/json-value.ts';
import { type Mode, type Question, scoreCount } from '../questions/question.ts';
import { applyTemperature, type TypeTemperatures } from '../questions/temperatures.ts';
import type { Tuning } from '../tuning/tuning.ts';
import type { ScoreEntry } from './score-file.ts';
import { readStates } from './stored-states.ts';

/**
 * Turns the scores of the weights, a list for each question of a request, into those that a service answers by. Throws
 * `RangeError` where the hidden states that a correction needs are missing.
 */
export type ServedScores = (
  request: { readonly state: JsonValue; readonly questions: readonly Question[] },
  scores: readonly (readonly number[])[],
  states: ScoreEntry['states'],
) => readonly (readonly number[])[];

/**
 * Returns how a model's scores become those of its answers: corrected for tuned questions, calibrated for all others.
 * Undefined for a model with neither.
 */
export function servedScores({
  mode,
  temperatures,
  tuning,
}: {
  readonly mode: Mode;
  readonly temperatures: TypeTemperatures | undefined;
  readonly tuning: Tuning | null;
}): ServedScores | undefined {
  if (temperatures === undefined && tuning === null) return undefined;
  return (request, scores, states) => {
    const correction = tuning?.correctionOf({ ...request, mode });
    return request.questions.map((question, index) => {
      const own = scores[index] ?? [];
      const calibrated = temperatures === undefined ? own : applyTemperature(own, question, temperatures);
      const stored = states?.[index] ?? null;
      const own_states =
        stored === null ? undefined : (readStates(stored, scoreCount(question)) ?? undefined);
      return correction?.correct(index, own, own_states) ?? calibrated;
    });
  };
}
