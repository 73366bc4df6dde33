import type { DecisionEngine, DecisionInput } from '../../native/engine.ts';
import type { Mode } from '../questions/question.ts';

/** Returns a health probe: a question about a record of our own. */
export function healthProbeInput(mode: Mode): DecisionInput {
  const question = { type: 'noul', instructions: 'Is it on?', yes: undefined, no: undefined } as const;
  return { state: 'The light is on.', questions: [question], mode };
}

/**
 * Sends the engine a health probe in the mode, which also warms it up. Rejects as `DecisionEngine.plan` and
 * `DecisionEngine.evaluate` do.
 */
export async function sendHealthProbe(engine: DecisionEngine, mode: Mode): Promise<void> {
  await engine.evaluate(await engine.plan(healthProbeInput(mode)), { scope: 'warm-up' });
}
