import type { DecisionEngine } from '../../native/engine.ts';
import { scoreCount } from '../../src/questions/question.ts';
import { embeddedEngine } from './service.ts';

/** The embedded engine with real plans, and made-up scores without the model's work. */
export async function instantEngine(): Promise<DecisionEngine> {
  const engine = await embeddedEngine();
  return {
    facts: engine.facts,
    plan: (input) => engine.plan(input),
    evaluate: ({ input }) =>
      Promise.resolve(input.questions.map((question) => Array(scoreCount(question)).fill(0))),
    close: () => engine.close(),
  };
}
