import type { DecisionEngine, DecisionInput, EngineFacts } from '../../native/engine.ts';

/** What is known of a model that is measured. */
export interface MeasuredFacts extends Omit<EngineFacts, 'evaluator'> {
  /** Of the weights, or what stands for them where servers answer. */
  readonly weights_sha256: string;
  /** An evaluator of this program, or the protocol by which servers are asked. */
  readonly evaluator: string;
}

/** A model with its own scores: calibration is applied to them afterwards, so that both can be shown. */
export interface MeasuredModel {
  readonly facts: MeasuredFacts;
  /** Scores as of `DecisionEngine.evaluate`, and what was read. Rejects as it and `DecisionEngine.plan` do. */
  answer(
    input: DecisionInput,
  ): Promise<{ readonly scores: readonly (readonly number[])[]; readonly input_tokens: number }>;
  close(): Promise<void>;
}

/** An engine of this process, opened without calibration. */
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
