import type { Catalog } from '../catalog/catalog.ts';
import type { Problems } from '../problems/problems.ts';
import type { Models } from './models.ts';

/** A removed or closed model keeps its memory for at most this long after its last request. */
const INTERVAL_MS = 10_000;

interface Followed {
  readonly catalog: Pick<Catalog, 'listDecisionModels'>;
  readonly models: Pick<Models, 'follow'>;
  readonly problems: Pick<Problems, 'report'>;
}

/** Applies the catalog's open models. Never rejects: an unreadable catalog is reported. */
export async function followCatalog({ catalog, models, problems }: Followed): Promise<void> {
  try {
    models.follow(await catalog.listDecisionModels());
  } catch (error) {
    problems.report({ request_id: null, step: 'catalog', code: null, error });
  }
}

/**
 * Follows the catalog at intervals, because other processes change it and no request reveals a removed model.
 * Returns a function that stops it.
 */
export function startFollowingCatalog(followed: Followed): () => void {
  const timer = setInterval(() => void followCatalog(followed), INTERVAL_MS);
  timer.unref();
  return () => clearInterval(timer);
}
