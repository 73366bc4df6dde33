import type { DecisionEngine } from '../../native/engine.ts';
import { writeJson } from '../../src/json/write-json.ts';
import type { Question } from '../../src/questions/question.ts';

/** How sure the engine is of an answer. */
const SCORE = 2;

/**
 * The engine with everything but the model's work: yes, and the first option or level, are likely for a record with the
 * word `money`, and no and the second one for all others. A number in the record makes the answer a little less sure.
 * A tuned model's corrections are made as the engine makes them.
 */
export function keywordEngine(engine: DecisionEngine): DecisionEngine {
  return {
    facts: engine.facts,
    plan: (input) => engine.plan(input),
    evaluate: ({ input }, { correction }) => {
      const text = writeJson(input.state);
      const score = SCORE - Number(/\d+/.exec(text)?.[0] ?? 0) / 100;
      return Promise.resolve(
        input.questions.map((question, index) => {
          const scores = scoresOf(question, text.includes('money'), score);
          return [...(correction?.correct(index, scores, undefined) ?? scores)];
        }),
      );
    },
    close: () => engine.close(),
  };
}

function scoresOf(question: Question, is_money: boolean, score: number): number[] {
  const likely = is_money ? 0 : 1;
  switch (question.type) {
    case 'noul':
      return [is_money ? score : -score];
    case 'choice':
      return question.options.map((_, at) => (at === likely ? score : 0));
    case 'score':
      return question.levels.map((_, at) => (at === likely ? score : 0));
  }
}
