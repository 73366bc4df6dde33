import { EMBEDDED_WEIGHTS, type OpenOptions, SetupError, weightsBytes } from '../../native/engine.ts';
import { DEFAULT_MODEL, type DecisionModelEntry } from '../catalog/catalog.ts';
import { openOptions } from '../config/open-options.ts';
import type { ModelConfig, ServeConfig } from '../config/settings.ts';
import type { Service } from '../service.ts';
import { type CatalogModel, EMBEDDED, type ModelWeights } from '../store/catalog-records.ts';
import { checkWeights } from './check-weights.ts';
import { CommandFailed } from './command-failed.ts';
import type { ServedModelState } from './reload-socket.ts';
import type { Stop } from './stop-signal.ts';

/**
 * Returns the options for opening a model of the catalog that has weights; `--model` replaces those of the default one.
 */
export function openOptionsOf(
  model: Pick<CatalogModel, 'id' | 'context_tokens'> & ModelWeights,
  options: ModelConfig,
): OpenOptions {
  const { id, context_tokens, weights } = model;
  const common = { ...openOptions(options), context_tokens: context_tokens ?? undefined };
  if (id === DEFAULT_MODEL && options.model !== undefined) return common;
  return { ...common, model_path: weights === EMBEDDED ? undefined : weights, expected: model };
}

/** Returns the tokens of context that a model has by itself; undefined for one that has those of the program's weights. */
export function ownContext({
  weights_sha256,
  context_tokens,
}: Pick<CatalogModel, 'weights_sha256' | 'context_tokens'>): number | undefined {
  return weights_sha256 === null ? undefined : (context_tokens ?? undefined);
}

/** Returns the reason why the weights cannot be served, or null. */
export async function tryWeights(model: DecisionModelEntry, options: ServeConfig): Promise<string | null> {
  const { model_path = EMBEDDED } = openOptionsOf(model, options);
  try {
    await checkWeights(model_path, options, { context_tokens: ownContext(model), is_silent: true });
    return null;
  } catch (error) {
    if (error instanceof CommandFailed) return error.message;
    throw error;
  }
}

/** Returns the states of the service's models. Rejects when the catalog or the weights cannot be read. */
export async function modelStates(
  { services: { catalog, models } }: Service,
  options: ServeConfig,
): Promise<ServedModelState[]> {
  const rows = new Map((await catalog.listDecisionModels()).map((row) => [row.id, row]));
  return await Promise.all(
    models.observed().map(async ({ id, status, counts }) => {
      const { state, load_error = null } = status();
      const counted = state === 'cold' || state === 'loading' ? undefined : counts();
      const row = rows.get(id);
      // A tuned model shares its base's memory.
      if (counted === undefined || row === undefined || 'upstreams' in row || 'base' in row) {
        return { id, state, load_error, memory_bytes: null };
      }
      const { model_path = EMBEDDED_WEIGHTS } = openOptionsOf(row, options);
      const { kept_prefix_bytes, kv_cache_bytes = 0 } = counted;
      const memory_bytes = (await weightsBytes(model_path)) + kv_cache_bytes + kept_prefix_bytes;
      return { id, state, load_error, memory_bytes };
    }),
  );
}

/** Loads the default model before the first request, so that unusable weights stop the start. */
async function load(service: Service): Promise<void> {
  try {
    await service.loadModels();
  } catch (error) {
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    if (cause instanceof SetupError) throw new CommandFailed(cause.message, { cause });
    throw error;
  }
}

/** Loads as `load` does. Returns false when a stop comes first; the service's close then handles the load. */
export async function loadUnlessStopped(service: Service, stop: Stop): Promise<boolean> {
  if (stop.is_asked) return false;
  const loading = load(service);
  // Nothing is lost: before a stop the race below rejects too, and after it nobody needs the model.
  loading.catch(() => {});
  await Promise.race([loading, stop.asked]);
  return !stop.is_asked;
}
