import { type Catalog, DEFAULT_MODEL } from '../catalog/catalog.ts';
import { inBackground, type Problems } from '../problems/problems.ts';
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
    problems.report(inBackground('catalog', error));
  }
}

/**
 * Loads the default model, and then starts loading the others one after the other, because each needs the disk
 * and the cores. Rejects with `ModelUnavailable` for the default one; failures of the others are reported, and
 * a request tries again.
 */
export async function loadCatalog({
  catalog,
  models,
}: Pick<Followed, 'catalog'> & { readonly models: Models }): Promise<void> {
  const live = await catalog.listDecisionModels();
  // Models may have been added since the service was made.
  models.follow(live);
  const first = live.find(({ id }) => id === DEFAULT_MODEL);
  // The caller reports why the service does not start.
  if (first !== undefined) await models.load(first, { failure: 'thrown' });
  void loadOneByOne(
    models,
    live.map(({ id }) => id),
  );
}

async function loadOneByOne(models: Models, ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    await models
      .observed()
      .find((observed) => observed.id === id)
      ?.load()
      .catch(() => undefined);
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
