import { between, type SQL } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';

/**
 * What selects one organization's rows in a read of a few of them in order, with the organization first in that order.
 * Then only an index that begins with the organization serves. After `=`, the planner may read an index of time alone,
 * past everybody else's rows. That took half a second instead of 0.1 ms among a million rows, for an organization that
 * was busy once.
 */
export function ofOrganization(column: PgColumn, organization_id: string): SQL {
  return between(column, organization_id, organization_id);
}
