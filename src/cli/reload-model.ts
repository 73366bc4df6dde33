import { freemem } from 'node:os';
import { resolve } from 'node:path';
import { EMBEDDED_WEIGHTS, machineMemory, weightsBytes } from '../../native/engine.ts';
import { OPERATOR } from '../access/actor.ts';
import { isServed } from '../catalog/catalog.ts';
import { CatalogChangeRefused, setModelWeights } from '../catalog/changes.ts';
import type { ModelConfig } from '../config/settings.ts';
import { type ReloadMemory, requireOwnWeights } from '../served-models/reload.ts';
import { unfitTunings } from '../served-models/unfit-tunings.ts';
import type { CatalogModel } from '../store/catalog-records.ts';
import { checkWeights } from './check-weights.ts';
import type { DataContext, DataOptions } from './command.ts';
import { CommandFailed } from './command-failed.ts';
import { isServerRunning } from './data-directory.ts';
import { askForReload } from './reload-socket.ts';
import { ownContext } from './served-models.ts';

export interface ReloadOptions extends DataOptions, Omit<ModelConfig, 'model'> {
  readonly weights?: string;
}

/** The result of a reload. */
export interface Reloaded {
  readonly model: CatalogModel;
  /** True if a running server has swapped the weights; false if they were checked here, for its next load. */
  readonly is_swapped: boolean;
}

/** Returns the tuned models that the weights of their base do not fit any more. */
export async function unfitAfterReload(
  { store }: DataContext,
  { id, weights_sha256, profile }: CatalogModel,
): Promise<readonly CatalogModel[]> {
  // A model that follows the program has its own warning, at each start.
  if (weights_sha256 === null || profile === null) return [];
  return await unfitTunings(store, id, { weights_sha256, profile });
}

/**
 * Lets the running server swap a model's weights. Without one, or for a closed model, checks them here and
 * changes the row. Throws `CommandFailed` and `CatalogChangeRefused`; then nothing has changed.
 */
export async function reloadModel(
  context: DataContext,
  id: string,
  options: ReloadOptions,
): Promise<Reloaded> {
  const { store } = context;
  const find = async () => {
    const found = await store.catalog.findModel(id);
    if (found === undefined) throw new CatalogChangeRefused(`There is no model ${JSON.stringify(id)}.`);
    return found;
  };
  const model = await find();
  if (!isServed(model) || model.weights === null) throw new CommandFailed(`${id} has no weights.`);
  const weights = options.weights === undefined ? null : resolve(options.weights);
  requireOwnWeights(id, weights);
  if (model.status === 'live') {
    process.stderr.write(`Asking the service to load ${id} anew.\n`);
    if (await askForReload(options.data, { id, weights })) return { model: await find(), is_swapped: true };
    if (isServerRunning(options.data)) {
      throw new CommandFailed(
        `The service on ${options.data} listens at no socket there (its log says why): restart it instead.`,
      );
    }
    process.stderr.write(`No service runs on ${options.data}.\n`);
  }
  const checked = await checkWeights(weights ?? model.weights, options, {
    context_tokens: ownContext(model),
  });
  if (model.weights_sha256 === null) return { model, is_swapped: false };
  if (model.profile !== null && checked.weights.profile !== model.profile) {
    throw new CommandFailed(
      `${id} would be asked by ${checked.weights.profile}, and was added for ${model.profile}: remove the model and add it again.`,
    );
  }
  return { model: await setModelWeights(context, OPERATOR, model, checked.weights), is_swapped: false };
}

/** Returns the memory of a second set of weights; null where the system does not show what is free. */
export async function reloadMemory(model_path: string | undefined): Promise<ReloadMemory | null> {
  // Elsewhere the number leaves out memory that the system would give back at once.
  if (process.platform !== 'linux') return null;
  const below_limit = machineMemory().bytes - process.memoryUsage.rss();
  return {
    needed_bytes: await weightsBytes(model_path ?? EMBEDDED_WEIGHTS),
    free_bytes: Math.min(freemem(), below_limit),
  };
}
