import type { DecisionEngine } from '../../native/engine.ts';
import { scoreCount } from '../../src/questions/question.ts';

/** The engine with everything but the model's work: plans are made, and every score is 0. */
export function instantEngine(engine: DecisionEngine): DecisionEngine {
  return {
    facts: engine.facts,
    plan: (input) => engine.plan(input),
    evaluate: ({ input }) =>
      Promise.resolve(input.questions.map((question) => Array(scoreCount(question)).fill(0))),
    close: () => engine.close(),
  };
}
