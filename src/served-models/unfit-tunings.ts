import type { EngineFacts } from '../../native/engine.ts';
import type { Log } from '../log/log.ts';
import type { CatalogModel } from '../store/catalog-records.ts';
import type { Records } from '../store/store.ts';
import { readTuningHeader, TuningUnusable } from '../tuning/tuning-file.ts';

/**
 * Warns of each open tuned model whose tuning does not fit the weights of its base. An update of the program, or a reload,
 * may bring others, and then its tuned questions get 502, of which its owners would hear first.
 */
export async function warnOfUnfitTunings(
  { catalog }: Pick<Records, 'catalog'>,
  base: string,
  facts: Pick<EngineFacts, 'weights_sha256' | 'profile'>,
  log: Pick<Log, 'warn'>,
): Promise<void> {
  for (const { id, organization_id } of await unfitTunings({ catalog }, base, facts)) {
    log.warn('a tuned model does not fit the weights: its tuned questions get 502 until it is tuned again', {
      model: id,
      organization_id,
    });
  }
}

/** Returns the open tuned models of a base whose tuning does not fit these weights. */
export async function unfitTunings(
  { catalog }: Pick<Records, 'catalog'>,
  base: string,
  facts: Pick<EngineFacts, 'weights_sha256' | 'profile'>,
): Promise<readonly CatalogModel[]> {
  const unfit: CatalogModel[] = [];
  for (const model of await catalog.allModels()) {
    if (model.status !== 'live' || model.base_id !== base) continue;
    if (!fits(await catalog.findTuning(model.id), facts)) unfit.push(model);
  }
  return unfit;
}

/** Returns true for a tuning that was fitted on these weights; and for none, because the model was removed meanwhile. */
function fits(text: string | undefined, facts: Pick<EngineFacts, 'weights_sha256' | 'profile'>): boolean {
  if (text === undefined) return true;
  try {
    const { weights_sha256, profile } = readTuningHeader(text);
    return weights_sha256 === facts.weights_sha256 && profile === facts.profile;
  } catch (error) {
    if (error instanceof TuningUnusable) return false;
    throw error;
  }
}
