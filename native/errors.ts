/**
 * A model cannot be opened as configured: its weights, a device or a compiler is missing or unfit. The message tells
 * the operator what to do.
 */
export class SetupError extends Error {
  override readonly name: string = 'SetupError';
}

/** The weights cannot be used. */
export class WeightsError extends SetupError {
  override readonly name = 'WeightsError';
}

/** The requested device is missing or cannot be used. */
export class DeviceUnavailable extends SetupError {
  override readonly name = 'DeviceUnavailable';
}

/** The addon cannot be built or loaded here. The evaluator through node-llama-cpp serves instead. */
export class AddonUnavailable extends SetupError {
  override readonly name = 'AddonUnavailable';
}

/** The model refuses a request that passed the service's checks (contract: `invalid_request`). */
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

/** The model gave no answer to a plan: the plan does not fit, or its logits are NaN. Other plans may be answered. */
export class EvaluationFailed extends Error {
  override readonly name: string = 'EvaluationFailed';
}

/** The evaluator is unusable: it was closed, or a decode failed. */
export class EngineFailed extends EvaluationFailed {
  override readonly name = 'EngineFailed';
}

/** A request was started and not answered within its time limit. */
export class EvaluationTimedOut extends Error {
  override readonly name = 'EvaluationTimedOut';
}

/** The evaluator's queue is full. The caller may try again later. */
export class EngineOverloaded extends Error {
  override readonly name = 'EngineOverloaded';
}
