import type { DecisionModelEntry, ServedModelEntry } from '../catalog/catalog.ts';
import type { TuningHeader } from '../tuning/tuning-file.ts';
import type { Models } from './models.ts';

/**
 * Returns the model whose weights and profile a tuning was fitted on: the tuned one where it has them, and any other one
 * else. Loads a model only where its weights follow the program. Rejects with `ModelUnavailable`, `ModelWarmingUp`.
 */
export async function findTuningBase(
  models: Pick<Models, 'lifecycle'>,
  candidates: readonly ServedModelEntry[],
  fitted_on: Pick<TuningHeader, 'model' | 'weights_sha256' | 'profile'>,
): Promise<DecisionModelEntry | undefined> {
  const own = candidates.filter((model) => 'weights' in model);
  const named = own.filter(({ id }) => id === fitted_on.model);
  for (const model of [...named, ...own]) {
    const { weights_sha256, profile } = await factsOf(models, model);
    if (weights_sha256 === fitted_on.weights_sha256 && profile === fitted_on.profile) return model;
  }
  return undefined;
}

async function factsOf(models: Pick<Models, 'lifecycle'>, model: DecisionModelEntry) {
  const { id, weights_sha256, profile } = model;
  if (weights_sha256 !== null && profile !== null) return { weights_sha256, profile };
  const facts = await models.lifecycle(id)?.use('fast', (engine) => Promise.resolve(engine.facts));
  return facts ?? model;
}
