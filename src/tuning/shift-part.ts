import { type FittedPart, keptNumber } from './fitted-part.ts';
import type { LabelledExample } from './labelled-example.ts';

/** A shift of each class's score, and a temperature for all of them. */
export interface ShiftPart {
  /** The factor of the scores: the inverse of a temperature. */
  readonly scale: number;
  /** The shift by class. */
  readonly shift: readonly number[];
}

/** Without labels, the shift is about one unit of a score, and the scale within a half of 1. */
const SHIFT_PENALTY = 1;
const SCALE_PENALTY = 4;
/** A correction may weaken the model's scores, but not turn their order around. */
const SCALE_MIN = 0.05;
/** The first parameter of the least scale. */
export const LEAST_DISTANCE = SCALE_MIN - 1;

/** Returns the scores by class after the shift. */
export function shiftedScores({ scale, shift }: ShiftPart, scores: readonly number[]): Float64Array {
  return Float64Array.from(scores, (score, at) => scale * score + (shift[at] ?? 0));
}

/**
 * Returns the part for fitting. The first parameter is the scale's distance from 1; the others are the shift. With
 * `keeps_scale`, the first one stays what it is.
 */
export function fittedShift(
  examples: readonly LabelledExample[],
  classes: number,
  keeps_scale = false,
): FittedPart<ShiftPart> {
  const own = Float64Array.from(examples.flatMap(({ scores }) => scores));
  const scale_penalty = keeps_scale ? 0 : SCALE_PENALTY;
  return {
    penalties: Float64Array.from({ length: 1 + classes }, (_, at) =>
      at === 0 ? scale_penalty : SHIFT_PENALTY,
    ),
    addScores(parameters, scores) {
      const distance = parameters[0] ?? 0;
      for (let at = 0; at < scores.length; at += 1) {
        scores[at] = (scores[at] ?? 0) + distance * (own[at] ?? 0) + (parameters[1 + (at % classes)] ?? 0);
      }
    },
    addGradient(errors, gradient) {
      for (let at = 0; at < errors.length; at += 1) {
        const error = errors[at] ?? 0;
        const place = 1 + (at % classes);
        if (!keeps_scale) gradient[0] = (gradient[0] ?? 0) + error * (own[at] ?? 0);
        gradient[place] = (gradient[place] ?? 0) + error;
      }
    },
    part: (parameters) => ({
      scale: keptNumber(1 + (parameters[0] ?? 0)),
      shift: Array.from(parameters.subarray(1), keptNumber),
    }),
  };
}
