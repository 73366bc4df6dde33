import type { DecisionEngine, DecisionInput } from '../../native/engine.ts';
import type { Mode } from '../questions/question.ts';

/** Returns one small question about a record of our own. */
export function smallInput(mode: Mode): DecisionInput {
  const question = { type: 'noul', instructions: 'Is it on?', yes: undefined, no: undefined } as const;
  return { state: 'The light is on.', questions: [question], mode };
}

/**
 * Sends the engine a health probe in the mode, which also warms it up. Rejects as `DecisionEngine.plan` and
 * `DecisionEngine.evaluate` do.
 */
export async function askSmallQuestion(engine: DecisionEngine, mode: Mode): Promise<void> {
  await engine.evaluate(await engine.plan(smallInput(mode)), { scope: 'warm-up' });
}
