import { type Static, type TSchema, Type } from '@sinclair/typebox';
import { type Question, type QuestionType, scoreCount } from './question.ts';

const Temperature = Type.Number({ exclusiveMinimum: 0, maximum: 1000 });

/** Temperatures by number of options: each bucket reaches up to `most_options`, the last one to any number. */
const OptionTemperatures = Type.Array(
  Type.Object(
    { most_options: Type.Integer({ minimum: 2 }), temperature: Temperature },
    { additionalProperties: false },
  ),
  { minItems: 1 },
);

/** The temperatures of one mode, by question type. */
export const TypeTemperatures = Type.Object(
  { noul: Temperature, choice: OptionTemperatures, score: OptionTemperatures } satisfies Record<
    QuestionType,
    TSchema
  >,
  { additionalProperties: false },
);
export type TypeTemperatures = Static<typeof TypeTemperatures>;

/** Returns a question's scores divided by its temperature. Probabilities change, and their order does not. */
export function applyTemperature(
  scores: readonly number[],
  question: Question,
  temperatures: TypeTemperatures,
): readonly number[] {
  const temperature = temperatureFor(question, temperatures);
  return scores.map((score) => score / temperature);
}

/** Returns a question's temperature: of its type, and of the first bucket that its number of options fits. */
export function temperatureFor(question: Question, temperatures: TypeTemperatures): number {
  const of_type = temperatures[question.type];
  if (typeof of_type === 'number') return of_type;
  const count = scoreCount(question);
  const bucket = of_type.find(({ most_options }) => count <= most_options) ?? of_type.at(-1);
  return bucket?.temperature ?? 1;
}
