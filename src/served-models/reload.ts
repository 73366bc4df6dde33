import { EvaluationFailed, SetupError } from '../../native/engine.ts';
import type { Actor } from '../access/actor.ts';
import { asDecisionModel, type DecisionModelEntry, isInitialModel } from '../catalog/catalog.ts';
import { CatalogChangeRefused, setModelWeights } from '../catalog/changes.ts';
import { errorMessage } from '../errors/error-message.ts';
import { BYTES_PER_MEGABYTE } from '../files/bytes.ts';
import type { Log } from '../log/log.ts';
import { inBackground, type Problems } from '../problems/problems.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../time/clock.ts';
import { ModelUnavailable } from './model-answerer.ts';
import type { Models } from './models.ts';
import { warnOfUnfitTunings } from './unfit-tunings.ts';

/** The refusal of a reload; the old weights stay. The message is one sentence or more for the operator. */
export class ReloadRefused extends Error {
  override readonly name = 'ReloadRefused';
}

/** A model to reload, and the operator who asks for it. */
export interface ReloadRequest {
  readonly actor: Actor;
  readonly id: string;
  /** The absolute path of other weights than those of its row; null for the same path. */
  readonly weights: string | null;
}

/** The memory that a second set of weights takes, and the free memory. */
export interface ReloadMemory {
  readonly needed_bytes: number;
  readonly free_bytes: number;
}

export interface ReloadParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly models: Pick<Models, 'reload' | 'lifecycle'>;
  /** Null where that cannot be known. Rejects with `SetupError`. */
  readonly memoryFor: (model: DecisionModelEntry) => Promise<ReloadMemory | null>;
  /**
   * Tries the weights in another process, which they cannot harm. Resolves with the reason why they cannot be
   * served, or null.
   */
  readonly tryWeights: (model: DecisionModelEntry) => Promise<string | null>;
}

/**
 * Swaps an open model's weights while requests go on, as `Models.reload`; its row follows, with price and
 * aliases unchanged. Rejects with `ReloadRefused`, or with another error, such as that of the row's write;
 * then nothing changes.
 */
export async function reloadModel(
  { store, clock, models, memoryFor, tryWeights }: ReloadParts,
  { actor, id, weights }: ReloadRequest,
): Promise<void> {
  requireOwnWeights(id, weights);
  try {
    await models.reload(async () => {
      const row = await store.catalog.findModel(id);
      const before = row === undefined ? null : asDecisionModel(row);
      if (before === null) throw new ReloadRefused(`${id} is not open.`);
      if ('base' in before) throw new ReloadRefused(`${id} is a tuning of ${before.base.id}: reload that.`);
      if ('upstreams' in before) throw new ReloadRefused(`${id} has upstreams and no weights.`);
      const model = { ...before, weights: weights ?? before.weights };
      requireMemory(id, await memoryFor(model));
      const unservable = await tryWeights(model);
      if (unservable !== null) throw new ReloadRefused(unservable);
      return { model, write: (loaded) => setModelWeights({ store, clock }, actor, before, loaded) };
    });
  } catch (error) {
    throw refused(id, error);
  }
}

/**
 * Returns `reloadModel` with its lines in the log. A failure that is no refusal is reported; a service that is
 * being stopped refuses.
 */
export function openReloading(
  parts: ReloadParts & {
    readonly log: Pick<Log, 'info' | 'warn' | 'error'>;
    readonly problems: Pick<Problems, 'report'>;
    readonly draining: Pick<AbortController, 'signal'>;
  },
): (request: ReloadRequest) => Promise<void> {
  const { store, log, problems, draining, models } = parts;
  return async (request) => {
    const { id: model } = request;
    log.info('loading a model anew', { model });
    try {
      if (draining.signal.aborted) throw new ReloadRefused('The service is being stopped.');
      await reloadModel(parts, request);
      log.info('a model is answered for by its new weights', { model });
      const facts = models.lifecycle(model)?.engineIfLoaded()?.facts;
      if (facts?.warning !== undefined) log.warn(facts.warning, { model });
      if (facts !== undefined) {
        // The reload is done by now: no failure of this look may count as one of it.
        await warnOfUnfitTunings(store, model, facts, log).catch((error: unknown) =>
          problems.report(inBackground('model_reload', error, model)),
        );
      }
    } catch (error) {
      const is_refused = error instanceof ReloadRefused;
      if (!is_refused) {
        problems.report(inBackground('model_reload', error, model));
      }
      // Another message may quote a value; the line of the problem has the cause.
      const reason = is_refused ? error.message : 'unexpected failure';
      log.error('a model was not loaded anew: the weights before stay', { model, reason });
      throw error;
    }
  };
}

/** Throws `ReloadRefused` for other weights of a model that follows the program. */
export function requireOwnWeights(id: string, weights: string | null): void {
  if (weights === null || !isInitialModel(id)) return;
  throw new ReloadRefused(
    `${id} comes with the program: start the service with "--model ${weights}" to give it other weights.`,
  );
}

function requireMemory(id: string, memory: ReloadMemory | null): void {
  if (memory === null || memory.needed_bytes <= memory.free_bytes) return;
  const [needed, free] = [memory.needed_bytes, memory.free_bytes].map((bytes) =>
    Math.ceil(bytes / BYTES_PER_MEGABYTE),
  );
  throw new ReloadRefused(
    `Both sets of weights must be in memory for a moment, and ${id} needs ${needed} MB of which ${free} MB are free: make room, or restart the service instead.`,
  );
}

/** Returns the operator's message for unusable weights or a changed row; any other failure unchanged. */
function refused(id: string, error: unknown): unknown {
  if (error instanceof SetupError || error instanceof CatalogChangeRefused) {
    return new ReloadRefused(error.message, { cause: error });
  }
  const is_of_weights = error instanceof ModelUnavailable || error instanceof EvaluationFailed;
  if (!is_of_weights) return error;
  const { cause = error } = error;
  if (cause instanceof SetupError) return new ReloadRefused(cause.message, { cause: error });
  return new ReloadRefused(`The new weights of ${id} cannot be used: ${errorMessage(cause)}`, {
    cause: error,
  });
}
