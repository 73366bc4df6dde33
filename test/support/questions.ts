import fc from 'fast-check';
import type { Question, QuestionType } from '../../src/questions/question.ts';

/** A question of any type, from one generator for each: a new type without one does not compile. */
export function ofAnyType(
  generators: {
    readonly [Type in QuestionType]: fc.Arbitrary<Extract<Question, { readonly type: Type }>>;
  },
): fc.Arbitrary<Question> {
  return fc.oneof(...Object.values<fc.Arbitrary<Question>>(generators));
}
