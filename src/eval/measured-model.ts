import type { DecisionEngine, DecisionInput, EngineFacts } from '../../native/engine.ts';

/** The facts about a measured model. */
export interface MeasuredFacts extends Omit<EngineFacts, 'evaluator'> {
  /** The checksum of the weights, or the fingerprint of servers. */
  readonly weights_sha256: string;
  /** An evaluator of this program, or the protocol of the servers. */
  readonly evaluator: string;
}

/** A model with uncalibrated scores: calibration is applied afterwards, so that both can be shown. */
export interface MeasuredModel {
  readonly facts: MeasuredFacts;
  /**
   * Returns scores as `DecisionEngine.evaluate` does, and the tokens that were read. Rejects as it and
   * `DecisionEngine.plan` do.
   */
  answer(
    input: DecisionInput,
  ): Promise<{ readonly scores: readonly (readonly number[])[]; readonly input_tokens: number }>;
  close(): Promise<void>;
}

/** Returns an engine of this process, opened without calibration, as a measured model. */
export function measuredEngine(engine: DecisionEngine): MeasuredModel {
  return {
    facts: engine.facts,
    async answer(input) {
      const plan = await engine.plan(input);
      const scores = await engine.evaluate(plan, { scope: 'eval' });
      return { scores, input_tokens: plan.input_tokens };
    },
    close: () => engine.close(),
  };
}
