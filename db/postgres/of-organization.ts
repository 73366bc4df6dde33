import { between, type SQL } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';

/**
 * Returns the condition for a few of one organization's rows in order, sorted by the organization first. Then
 * PostgreSQL must use an index that begins with the organization. With `=`, it may read an index of time alone, past
 * all other organizations' rows. Among a million rows that took 0.5 s instead of 0.1 ms.
 */
export function ofOrganization(column: PgColumn, organization_id: string): SQL {
  return between(column, organization_id, organization_id);
}
