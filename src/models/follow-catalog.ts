import type { Catalog } from '../catalog/catalog.ts';
import type { Problems } from '../problems/problems.ts';
import type { Models } from './models.ts';

/** A model that was removed or closed keeps its memory for at most so long after its last request. */
const INTERVAL_MS = 10_000;

interface Followed {
  readonly catalog: Pick<Catalog, 'listDecisionModels'>;
  readonly models: Pick<Models, 'follow'>;
  readonly problems: Pick<Problems, 'report'>;
}

/** Tells the models what the catalog has opened now. Never rejects: a catalog that cannot be read is reported. */
export async function followCatalog({ catalog, models, problems }: Followed): Promise<void> {
  try {
    models.follow(await catalog.listDecisionModels());
  } catch (error) {
    problems.report({ request_id: null, step: 'catalog', code: null, error });
  }
}

/**
 * Follows the catalog now and then, because other processes change it and nobody asks for a model that is gone. Returns
 * its stop.
 */
export function startFollowingCatalog(followed: Followed): () => void {
  const timer = setInterval(() => void followCatalog(followed), INTERVAL_MS);
  timer.unref();
  return () => clearInterval(timer);
}
