/**
 * A model cannot be opened on this machine as it was asked for: its weights, a device or a compiler is missing or
 * unfit. The message is one sentence or more for whoever runs the service, and says what to do.
 */
export class SetupError extends Error {
  override readonly name: string = 'SetupError';
}

/** The weights cannot be used. */
export class WeightsError extends SetupError {
  override readonly name = 'WeightsError';
}

/** The device that was asked for is not there or cannot be used. */
export class DeviceUnavailable extends SetupError {
  override readonly name = 'DeviceUnavailable';
}

/** The addon cannot be built or loaded here; the evaluator through node-llama-cpp serves instead. */
export class AddonUnavailable extends SetupError {
  override readonly name = 'AddonUnavailable';
}

/** The model's own reason for refusing a request that passed the service's checks (contract: `invalid_request`). */
export class PlanRejected extends Error {
  override readonly name = 'PlanRejected';
  /** `question` is the index of the question at fault, or null when no single one is. */
  constructor(
    message: string,
    readonly question: number | null,
  ) {
    super(message);
  }
}

/** The model gave no answer to a plan: the plan does not fit, or its logits are NaN. Others may be answered. */
export class EvaluationFailed extends Error {
  override readonly name: string = 'EvaluationFailed';
}

/** The evaluator is of no more use: it was closed, or a decode failed. */
export class EngineFailed extends EvaluationFailed {
  override readonly name = 'EngineFailed';
}

/** A request had its turn and was not answered in the time that it may take. */
export class EvaluationTimedOut extends Error {
  override readonly name = 'EvaluationTimedOut';
}

/** The evaluator's bounded queue is full; the caller may try again later. */
export class EngineOverloaded extends Error {
  override readonly name = 'EngineOverloaded';
}
