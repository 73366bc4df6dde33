import type { DecisionEngine } from '../../native/engine.ts';
import { scoreCount } from '../../src/questions/question.ts';

/**
 * The engine with all that it does on the event loop, and without the model: a request is planned and submitted, taken
 * back at once, and answered with scores that are made up. A model would read a megabyte for minutes.
 */
export function dismissedEngine(engine: DecisionEngine): DecisionEngine {
  return {
    facts: engine.facts,
    plan: (input) => engine.plan(input),
    async evaluate(plan, { scope }) {
      for (const one of plan.plans) {
        const dismissal = new AbortController();
        const evaluation = engine.evaluate({ ...plan, plans: [one] }, { scope, signal: dismissal.signal });
        await Promise.resolve();
        dismissal.abort(new Error('dismissed'));
        await evaluation.catch(() => {});
      }
      return plan.input.questions.map((question) =>
        Array.from({ length: scoreCount(question) }, (_, index) => Math.sin(index)),
      );
    },
    close: () => Promise.resolve(),
  };
}
