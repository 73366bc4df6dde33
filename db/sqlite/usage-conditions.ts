import type { UsageScope } from '../../src/store/usage-records.ts';

/** The parameters of a statement over usage. */
export type UsageValues = Record<string, string | number>;

/** Returns the conditions on the scope's columns only, so that SQLite chooses their index. */
export function conditionsOf(scope: UsageScope): string {
  const columns = Object.keys(valuesOf(scope));
  return columns.length === 0 ? 'TRUE' : columns.map((column) => `${column} = $${column}`).join(' AND ');
}

/** Returns the scope's columns and their values; `usage_records` and `usage_days` both have them. */
export function valuesOf(scope: UsageScope): UsageValues {
  const { organization_id, project_id, api_key_id, model, mode, endpoint, status } = scope;
  return {
    ...(organization_id === null ? {} : { organization_id }),
    ...(project_id === undefined ? {} : { project_id }),
    ...(api_key_id === undefined ? {} : { api_key_id }),
    ...(model === undefined ? {} : { model }),
    ...(mode === undefined ? {} : { mode }),
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(status === undefined ? {} : { status }),
  };
}
