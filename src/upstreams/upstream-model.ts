import {
  type DecisionInput,
  type DecisionPlan,
  type EvaluateOptions,
  EvaluationFailed,
  openScoringPlanner,
  PlanRejected,
  type SchedulePlan,
  type ScoreCorrection,
  type ScoringPlanner,
} from '../../native/engine.ts';
import type { UpstreamModelEntry } from '../catalog/catalog.ts';
import type { Mode } from '../questions/question.ts';
import { applyTemperature, type TypeTemperatures } from '../questions/temperatures.ts';
import { QueueFull } from '../scheduling/model-scheduler.ts';
import {
  type LifecycleStatus,
  type ModelAnswer,
  ModelWarmingUp,
  modelClosed,
  type ObservedUpstream,
  type UpstreamAnswerer,
} from '../served-models/model-answerer.ts';
import type { UpstreamCalibration, UpstreamPool, UpstreamVocabulary } from '../store/catalog-records.ts';
import { CLIENT_TIMEOUT_MS } from '../time/client-timeout.ts';
import { scheduleByTimer } from '../time/schedule.ts';
import type { Asking, PoolAccess, Source, SourcedAnswer } from './asking.ts';
import { DecisionAsking } from './decision-asking.ts';
import { LLAMA_SERVER } from './llama-server.ts';
import { OPENAI } from './openai.ts';
import { Pool, type PoolOptions } from './pool.ts';
import { fingerprintOf } from './server-facts.ts';
import { TokenAsking } from './token-asking.ts';
import { UpstreamFailed } from './upstream-failed.ts';

/** Half of a client's timeout, so that a second member can still answer in time. */
const ANSWER_MS = CLIENT_TIMEOUT_MS / 2;
const TRIAL_MS = 30_000;
/** The most fingerprints that are reported, because a server may report new ones without end. */
const REPORTED_MAX = 16;

/** The options of a pool, whose bounds have defaults. */
export type UpstreamOptions = Pick<PoolOptions, 'now_ms' | 'onProblem'> &
  Partial<Pick<PoolOptions, 'schedule' | 'answer_ms' | 'trial_ms'>> & {
    /** Reads a vocabulary; on the CPU by default. */
    readonly openPlanner?: (
      vocabulary: UpstreamVocabulary,
      context_tokens: number,
    ) => Promise<ScoringPlanner>;
  };

const OTHER_MODEL =
  'An upstream has another model than the one that the calibration was fitted on: its answers are not calibrated. Fit it again by "tds calibrate".';
const UNKNOWN_MODEL =
  'Upstreams do not say which model they have, or answered one request with several: such answers are not calibrated.';

const TOKEN_PROTOCOLS = { 'llama-server': LLAMA_SERVER, openai: OPENAI } as const;

const atOnce: SchedulePlan = (_, work) => work();

/** An answer with the fingerprint of the weights that gave it. */
export interface FingerprintedAnswer extends ModelAnswer {
  /** As `fingerprintOf`; null where several weights contributed, or a server does not identify them. */
  readonly fingerprint: string | null;
}

/** A model of the catalog with a pool of upstreams. */
export class UpstreamModel implements UpstreamAnswerer {
  readonly #onProblem: UpstreamOptions['onProblem'];
  readonly #pool: Pool;
  readonly #asking: Asking;
  readonly #closed = new AbortController();
  /** The reported fingerprints that the calibration does not fit. */
  readonly #reported = new Set<string | null>();
  readonly #settings: UpstreamPool;
  #calibration: UpstreamCalibration | undefined;

  /** Opens nothing before the first use. */
  constructor(row: UpstreamModelEntry, options: UpstreamOptions) {
    this.#settings = row.upstreams;
    this.#calibration = row.upstreams.calibration;
    this.#onProblem = options.onProblem;
    this.#asking = askingOf(row, options);
    this.#pool = new Pool(row.upstreams, () => this.#asking.trial(), {
      schedule: scheduleByTimer,
      answer_ms: ANSWER_MS,
      trial_ms: TRIAL_MS,
      ...options,
    });
  }

  /** As `Asking.profile`. */
  get profile(): string {
    return this.#asking.profile;
  }

  readyToPlan(signal?: AbortSignal): Promise<void> {
    return this.#asking.readyToPlan(signal);
  }

  plan(input: DecisionInput, signal?: AbortSignal): Promise<DecisionPlan> {
    return this.#asking.plan(input, signal);
  }

  async answer(plan: DecisionPlan, options: EvaluateOptions): Promise<ModelAnswer> {
    const { fingerprint, ...answer } = await this.measure(plan, options);
    const { correction } = options;
    this.#requireFits(correction, fingerprint);
    const temperatures = this.#temperatures(plan.input.mode, fingerprint);
    const scores = plan.input.questions.map((question, index) => {
      const own = answer.scores[index] ?? [];
      const corrected = correction?.correct(index, own, undefined);
      if (corrected !== undefined || temperatures === undefined) return corrected ?? own;
      return applyTemperature(own, question, temperatures);
    });
    return { ...answer, scores };
  }

  status(): LifecycleStatus {
    return this.#pool.status();
  }

  counts(): undefined {
    return undefined;
  }

  load(): Promise<void> {
    return this.#pool.ready();
  }

  setDraining(addresses: readonly string[]): void {
    this.#pool.setDraining(addresses);
  }

  setCalibration(calibration: UpstreamCalibration | undefined): void {
    if (calibration?.fingerprint !== this.#calibration?.fingerprint) this.#reported.clear();
    this.#calibration = calibration;
  }

  members(): readonly ObservedUpstream[] {
    return this.#pool.members();
  }

  async close(): Promise<void> {
    this.#closed.abort(modelClosed());
    this.#pool.close();
    await this.#asking.close();
  }

  /**
   * Returns the answer without calibration, for measuring and fitting. Rejects as `answer` does.
   */
  async measure(
    plan: DecisionPlan,
    { scope, signal: client, schedulePlan = atOnce }: EvaluateOptions,
  ): Promise<FingerprintedAnswer> {
    await this.#pool.ready(client);
    // A request that has lost one call has no answer, so its other calls are aborted.
    const failure = new AbortController();
    const signals = [failure.signal, this.#closed.signal];
    const signal = AbortSignal.any(client === undefined ? signals : [...signals, client]);
    const running: Promise<unknown>[] = [];
    const pool: PoolAccess = {
      scope,
      ask: (call, preferred) => this.#pool.ask(call, signal, preferred),
      schedule: (tokens, work) => {
        const scheduled = { tokens, decoder: 'small', decoder_tokens: this.#pool.capacity_tokens } as const;
        const done = schedulePlan(scheduled, work, signal).catch((error: unknown) => {
          failure.abort(error);
          throw error;
        });
        running.push(done);
        return done;
      },
    };
    try {
      const answer = await this.#asking.answer(plan, pool);
      const { sources, ...given } = answer;
      return { ...given, fingerprint: this.#fingerprintOf(sources) };
    } catch (error) {
      await Promise.allSettled(running);
      throw told(error);
    }
  }

  #fingerprintOf(sources: SourcedAnswer['sources']): string | null {
    const [first, ...others] = new Set(sources.map((source) => this.#fingerprintOfSource(source)));
    return others.length === 0 ? (first ?? null) : null;
  }

  #fingerprintOfSource({ facts, of_answer }: Source): string | null {
    return facts === null ? null : fingerprintOf(this.#settings, facts, of_answer);
  }

  /** Returns the temperatures of the calibration, if it is for these weights. */
  #temperatures(mode: Mode, fingerprint: string | null): TypeTemperatures | undefined {
    const calibration = this.#calibration;
    if (calibration === undefined || !this.#isFor(calibration.fingerprint, fingerprint)) return undefined;
    return calibration.temperatures[mode];
  }

  /** Throws `EvaluationFailed` for corrections that were fitted on other weights. */
  #requireFits(correction: ScoreCorrection | undefined, fingerprint: string | null): void {
    if (correction === undefined) return;
    if (correction.weights_sha256 === fingerprint && correction.profile === this.profile) return;
    throw new EvaluationFailed(
      'The tuning was fitted on another model than the upstreams have, or they do not say which they have: tune again.',
    );
  }

  /**
   * Returns true if the calibration is for these weights. Reports a mismatch once, and answers go on without
   * it.
   */
  #isFor(fitted: string, fingerprint: string | null): boolean {
    if (fitted === fingerprint) return true;
    if (!this.#reported.has(fingerprint) && this.#reported.size < REPORTED_MAX) {
      this.#reported.add(fingerprint);
      this.#onProblem(new UpstreamFailed('bad_answer', fingerprint === null ? UNKNOWN_MODEL : OTHER_MODEL));
    }
    return false;
  }
}

function askingOf({ upstreams, context_tokens }: UpstreamModelEntry, options: UpstreamOptions): Asking {
  const { protocol, model, vocabulary } = upstreams;
  const { onProblem, now_ms, schedule = scheduleByTimer, openPlanner = openOnCpu } = options;
  if (protocol === 'systemone') return new DecisionAsking({ model, context_tokens, onProblem });
  return new TokenAsking({
    protocol: TOKEN_PROTOCOLS[protocol],
    model,
    profile: vocabulary?.profile ?? '',
    openPlanner: async () => {
      if (vocabulary === undefined) throw new Error('The model has no vocabulary.');
      return await openPlanner(vocabulary, context_tokens);
    },
    now_ms,
    schedule,
    onProblem,
  });
}

function openOnCpu(
  { path, sha256, profile }: UpstreamVocabulary,
  context_tokens: number,
): Promise<ScoringPlanner> {
  return openScoringPlanner({
    model_path: path,
    expected: { weights_sha256: sha256, profile },
    context_tokens,
    gpu: false,
  });
}

/** Returns the failure as a model has it, which decides the client's error. */
function told(error: unknown): unknown {
  if (!(error instanceof UpstreamFailed)) return error;
  const { failure, retry_after_s } = error;
  switch (failure) {
    case 'rejected':
      return new PlanRejected(
        'The model does not take this request: it may be too long, or have too many questions or options.',
        null,
      );
    case 'busy':
      return new QueueFull(retry_after_s ?? 1);
    case 'loading':
      return new ModelWarmingUp(retry_after_s ?? 1);
    default:
      return error;
  }
}
