import { api, call } from '../client.ts';
import type { TuningBase } from './setup.ts';

/** Reads the facts of a loaded model; null for one that cannot be tuned, and while it is not loaded. */
export async function tuningBase(organization_id: string, model: string): Promise<TuningBase | null> {
  const { base } = await call(
    api.organizations({ organization_id }).models['tuning-base'].get({ query: { model } }),
  );
  return base;
}
