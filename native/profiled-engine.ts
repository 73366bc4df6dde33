import { applyTemperature } from '../src/questions/temperatures.ts';
import type { Calibration } from './calibration.ts';
import type {
  DecisionEngine,
  DecisionPlanner,
  EvaluateOptions,
  SchedulePlan,
  ScoreCorrection,
} from './decision-engine.ts';
import {
  type EngineSpeed,
  expectedDuration_ms,
  type MeasuredPlan,
  speedOf,
  speedProbe,
} from './engine-speed.ts';
import { EvaluationFailed } from './errors.ts';
import { type PlanLogits, planTokens } from './plan/plan.ts';
import type { DecisionInput, DecisionPlan, PromptProfile } from './plan/profile.ts';
import { shortlistsOf, withSecondReading } from './plan/shortlist.ts';
import type { EvaluatorCounts, PlanEvaluator } from './plan-evaluator.ts';
import { Slices } from './slices.ts';
import type { Weights } from './weights.ts';

const atOnce: SchedulePlan = (_, work) => work();

/** The tokens of the plans that measure the speed: so few that a slow core reads them in seconds. */
const PROBE_TOKENS = { short: 128, long: 896 };

/** A loaded model with its profile and calibration. */
export class ProfiledEngine implements DecisionEngine {
  readonly facts: DecisionEngine['facts'];
  /** Undefined until it was measured. */
  #speed: EngineSpeed | undefined;

  /** Owns `evaluator`, and closes it on close. The planner stays open. */
  constructor(
    private readonly planner: DecisionPlanner,
    private readonly evaluator: PlanEvaluator,
    private readonly profile: PromptProfile,
    private readonly calibration: Calibration | undefined,
    weights: Weights,
  ) {
    this.facts = {
      weights_sha256: weights.sha256,
      profile: profile.name,
      context_tokens: evaluator.context_tokens,
      evaluator: evaluator.kind,
      device: evaluator.device,
      missing_gpu: evaluator.missing_gpu,
      warning: profile.warning,
      temperatures: calibration?.temperatures ?? null,
      reads_states: profile.states !== null,
    };
  }

  plan(input: DecisionInput): Promise<DecisionPlan> {
    return this.planner.plan(input);
  }

  async evaluate(plan: DecisionPlan, options: EvaluateOptions): Promise<readonly (readonly number[])[]> {
    const { correction } = options;
    this.#requireFits(correction);
    const { input } = plan;
    const needsStates = (index: number) => correction?.needsStates(index) ?? false;
    const states = input.questions.some((_, index) => needsStates(index)) ? this.profile.states : null;
    const asked = states === null ? plan : { ...plan, plans: states.asked(input, plan.plans, needsStates) };
    const logits = await this.#evaluatePlans(asked, options);
    const first = this.profile.scores(input, asked.plans, logits);
    const scores = await this.#readAgain(input, first, options);
    const states_read = states?.of(input, asked.plans, logits);
    const { calibration } = this;
    return input.questions.map((question, index) => {
      const own = scores[index] ?? [];
      const corrected = correction?.correct(
        index,
        own,
        needsStates(index) ? states_read?.[index] : undefined,
      );
      if (corrected !== undefined || calibration === undefined) return corrected ?? own;
      return applyTemperature(own, question, calibration.temperatures[input.mode]);
    });
  }

  /** Returns the logits of a request's plans. */
  async #evaluatePlans(
    { plans }: Pick<DecisionPlan, 'plans'>,
    { signal: given_up, scope, schedulePlan = atOnce }: EvaluateOptions,
  ): Promise<readonly PlanLogits[]> {
    // A request without one of its plans has no answer, so its waiting plans are cancelled.
    const failure = new AbortController();
    const signal = given_up === undefined ? failure.signal : AbortSignal.any([given_up, failure.signal]);
    const { evaluator } = this;
    const evaluations: Promise<PlanLogits>[] = [];
    const slices = new Slices();
    try {
      for (const plan of plans) {
        await slices.pause();
        const evaluation = schedulePlan(
          {
            tokens: planTokens(plan),
            decoder: evaluator.decoderOf(plan),
            decoder_tokens: evaluator.decoder_tokens,
            expected_ms: this.#speed && expectedDuration_ms(this.#speed, [plan]),
          },
          () => evaluator.evaluate(plan, { scope, signal }),
          signal,
        );
        // It may reject while the next plan is submitted, which must not wait for a failed request.
        evaluation.catch((error: unknown) => failure.abort(error));
        evaluations.push(evaluation);
        signal.throwIfAborted();
      }
      return await Promise.all(evaluations);
    } catch (error) {
      failure.abort(error);
      await Promise.allSettled(evaluations);
      throw error;
    }
  }

  /** Returns the scores after a second reading of the choices with many options, which is not billed. */
  async #readAgain(
    input: DecisionInput,
    scores: readonly (readonly number[])[],
    options: EvaluateOptions,
  ): Promise<readonly (readonly number[])[]> {
    const shortlists = this.profile.reads_many_options_twice ? shortlistsOf(input, scores) : [];
    if (shortlists.length === 0) return scores;
    const questions = shortlists.map(({ question }) => question);
    const again = await this.planner.plan({ ...input, questions });
    const read = this.profile.scores(again.input, again.plans, await this.#evaluatePlans(again, options));
    const by_choice = new Map(
      shortlists.map(({ asked, places }, at) => [asked, { places, second: read[at] ?? [] }]),
    );
    return scores.map((first, asked) => {
      const choice = by_choice.get(asked);
      return choice === undefined ? first : withSecondReading(first, choice.places, choice.second);
    });
  }

  /** Throws `EvaluationFailed` for corrections that were fitted on other weights. */
  #requireFits(correction: ScoreCorrection | undefined): void {
    const { weights_sha256, profile } = this.facts;
    if (correction === undefined) return;
    if (correction.weights_sha256 === weights_sha256 && correction.profile === profile) return;
    throw new EvaluationFailed(
      `The tuning was fitted on other weights (SHA-256 ${correction.weights_sha256} by ${correction.profile}) than are loaded: tune again.`,
    );
  }

  async measureSpeed(): Promise<EngineSpeed> {
    const measure = async (tokens: number): Promise<MeasuredPlan> => {
      const plan = speedProbe(Math.min(tokens, this.evaluator.context_tokens));
      const began_ms = performance.now();
      await this.evaluator.evaluate(plan, { scope: 'speed' });
      const duration_ms = performance.now() - began_ms;
      // The speed is for limits, which hold while other work leaves fewer threads.
      return { plan, duration_ms: duration_ms * (this.evaluator.slowdown?.() ?? 1) };
    };
    this.#speed = speedOf(await measure(PROBE_TOKENS.short), await measure(PROBE_TOKENS.long));
    return this.#speed;
  }

  counts(): EvaluatorCounts {
    return this.evaluator.counts();
  }

  close(): Promise<void> {
    return this.evaluator.close();
  }
}
