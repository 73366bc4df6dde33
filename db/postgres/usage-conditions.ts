import { eq, type SQL } from 'drizzle-orm';
import type { UsageScope } from '../../src/store/usage-records.ts';
import type { usageDays, usageRecords } from './schema.ts';

/** Returns the scope's conditions on either table. */
export function conditionsOf(table: typeof usageRecords | typeof usageDays, scope: UsageScope): SQL[] {
  const { organization_id, project_id, api_key_id, model, mode, endpoint, status } = scope;
  return [
    organization_id === null ? undefined : eq(table.organization_id, organization_id),
    project_id === undefined ? undefined : eq(table.project_id, project_id),
    api_key_id === undefined ? undefined : eq(table.api_key_id, api_key_id),
    model === undefined ? undefined : eq(table.model, model),
    mode === undefined ? undefined : eq(table.mode, mode),
    endpoint === undefined ? undefined : eq(table.endpoint, endpoint),
    status === undefined ? undefined : eq(table.status, status),
  ].filter((condition) => condition !== undefined);
}
