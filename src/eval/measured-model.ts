import type {
  DecisionEngine,
  DecisionInput,
  EngineFacts,
  HiddenStates,
  ScoreCorrection,
} from '../../native/engine.ts';

/** The facts about a measured model. */
export interface MeasuredFacts extends Omit<EngineFacts, 'evaluator'> {
  /** The checksum of the weights, or the fingerprint of servers. */
  readonly weights_sha256: string;
  /** An evaluator of this program, or the protocol of the servers. */
  readonly evaluator: string;
}

/** A model's answer to the questions of one record. */
export interface MeasuredAnswer {
  readonly scores: readonly (readonly number[])[];
  /** By question; null where none were needed or the model has none. Absent for a model without any. */
  readonly states?: readonly (HiddenStates | null)[];
  readonly input_tokens: number;
}

/** A model with uncalibrated scores: calibration is applied afterwards, so that both can be shown. */
export interface MeasuredModel {
  readonly facts: MeasuredFacts;
  /**
   * Returns scores as `DecisionEngine.evaluate` does, the tokens that were read, and the hidden states of the questions
   * that need them. Rejects as it and `DecisionEngine.plan` do.
   */
  answer(input: DecisionInput, needsStates?: (question: number) => boolean): Promise<MeasuredAnswer>;
  close(): Promise<void>;
}

/** Returns an engine of this process, opened without calibration, as a measured model. */
export function measuredEngine(engine: DecisionEngine): MeasuredModel {
  return {
    facts: engine.facts,
    async answer(input, needsStates = () => false) {
      const plan = await engine.plan(input);
      const { weights_sha256, profile } = engine.facts;
      const states: (HiddenStates | null)[] = input.questions.map(() => null);
      const correction: ScoreCorrection = {
        ...{ weights_sha256, profile, needsStates },
        correct(index, _scores, read) {
          states[index] = read ?? null;
          return undefined;
        },
      };
      const scores = await engine.evaluate(plan, { scope: 'eval', correction });
      return { scores, states, input_tokens: plan.input_tokens };
    },
    close: () => engine.close(),
  };
}
