/**
 * The interface of `native/`: other folders, except for tests, import only this file. It loads node-llama-cpp, the
 * addon and its build only when a function below is called.
 */
import type { BuiltAddon } from './addon/build.ts';
import type { DecisionEngine, DecisionPlanner, ScoringPlanner } from './decision-engine.ts';
import type { EvaluatorChoice } from './evaluators/evaluator-names.ts';
import type { Gpu } from './gpu.ts';
import type { MachineStatus } from './machine.ts';
import type { CheckedModel } from './model-planner.ts';
import type { OpenOptions } from './open-options.ts';
import type { EvaluatorRelease } from './release.ts';

export { stopBuilds } from './build-stop.ts';
export {
  Calibration,
  calibrationPath,
  readCalibration,
} from './calibration.ts';
export type {
  DecisionEngine,
  DecisionPlanner,
  EngineFacts,
  EvaluateOptions,
  ScheduledPlan,
  SchedulePlan,
  ScoreCorrection,
  ScoringPlanner,
} from './decision-engine.ts';
export { type EngineSpeed, expectedDuration_ms } from './engine-speed.ts';
export {
  AddonUnavailable,
  DeviceUnavailable,
  EngineFailed,
  EngineOverloaded,
  EvaluationFailed,
  EvaluationTimedOut,
  PlanRejected,
  SetupError,
  WeightsError,
} from './errors.ts';
export { computingThreads, THREADS_MAX } from './evaluators/computing-threads.ts';
export { EVALUATOR_CHOICES, type EvaluatorChoice } from './evaluators/evaluator-names.ts';
export { GPUS, type Gpu } from './gpu.ts';
export type { CpuKernels, DeviceStatus, MachineStatus } from './machine.ts';
export { type MachineMemory, machineMemory } from './machine-memory.ts';
export type { OpenOptions } from './open-options.ts';
export { type HiddenStates, STATE_SIZE } from './plan/hidden-state.ts';
export { type PlanLogits, planTokens } from './plan/plan.ts';
export type { DecisionInput, DecisionPlan } from './plan/profile.ts';
export type { RequestPlan } from './plan/readings.ts';
export type { DecoderSize, EvaluatorCounts } from './plan-evaluator.ts';
export { EMBEDDED_WEIGHTS, verifyWeights, weightsBytes } from './weights.ts';

/**
 * Reads a model's vocabulary, so that requests can be planned. Rejects with `SetupError`: `WeightsError` if the files
 * are missing, truncated or corrupt, or the model cannot be served.
 */
export async function openPlanner(options: OpenOptions = {}): Promise<DecisionPlanner> {
  const { openPlanner: open } = await import('./load-engine.ts');
  return await open(options);
}

/**
 * Reads a model's vocabulary from a GGUF file, with or without tensors, for plans that a server evaluates. Rejects as
 * `openPlanner` does.
 */
export async function openScoringPlanner(options: OpenOptions): Promise<ScoringPlanner> {
  const { openScoringPlanner: open } = await import('./load-engine.ts');
  return await open(options);
}

/**
 * Checks a model's files without loading its weights: checksums, vocabulary, profile, calibration. Rejects as
 * `openPlanner` does.
 */
export async function checkModel(options: OpenOptions = {}): Promise<CheckedModel> {
  const { checkModel: check } = await import('./load-engine.ts');
  return await check(options);
}

/**
 * Loads a model for as long as the engine is open, planner and weights together. Rejects as `openPlanner` and
 * `DecisionPlanner.openEngine` do.
 */
export async function openEngine(options: OpenOptions = {}): Promise<DecisionEngine> {
  const { openEngine: open } = await import('./load-engine.ts');
  return await open(options);
}

/** Resolves with the state of the addon and the release of llama.cpp. */
export async function evaluatorRelease(): Promise<EvaluatorRelease> {
  const { readEvaluatorRelease } = await import('./release.ts');
  return await readEvaluatorRelease();
}

/**
 * Resolves with the evaluator and device of this machine, without a model. Builds the addon if it is wanted and
 * missing.
 */
export async function machineStatus(gpu: Gpu, wanted: EvaluatorChoice): Promise<MachineStatus> {
  const { inspectMachine } = await import('./machine.ts');
  return await inspectMachine(gpu, wanted);
}

/**
 * Resolves with the addon for a device and its libraries. Compiles a missing addon. Rejects with `AddonUnavailable` and
 * the missing part.
 */
export async function compiledAddon(gpu: Gpu): Promise<BuiltAddon> {
  const { buildAddon } = await import('./addon/build.ts');
  return await buildAddon(gpu);
}
