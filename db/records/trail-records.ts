import { and, asc, desc, eq, getTableColumns, gt, inArray, isNull, lt, sql } from 'drizzle-orm';
import { readDetail } from '../../src/trail/detail.ts';
import type {
  NewTrailEntry,
  RolledUpEntries,
  StoredTrailEntry,
  TrailRecords,
} from '../../src/trail/trail-records.ts';
import { apiKeys, invitations, organizations, projects, trailEntries, users } from '../tables.ts';
import type { Executor } from './executor.ts';

/** The name of an entry's object, from the table of its kind. Other kinds have only their ids. */
const OBJECT_NAME = sql<string | null>`CASE ${trailEntries.object_kind}
  WHEN 'organization' THEN (SELECT ${organizations.name} FROM ${organizations} WHERE ${organizations.id} = ${trailEntries.object_id})
  WHEN 'project' THEN (SELECT ${projects.name} FROM ${projects} WHERE ${projects.id} = ${trailEntries.object_id})
  WHEN 'key' THEN (SELECT ${apiKeys.name} FROM ${apiKeys} WHERE ${apiKeys.id} = ${trailEntries.object_id})
  WHEN 'user' THEN (SELECT named.name FROM ${users} AS named WHERE named.id = ${trailEntries.object_id})
  WHEN 'invitation' THEN (SELECT ${invitations.email} FROM ${invitations} WHERE ${invitations.id} = ${trailEntries.object_id})
END`;

/** The audit log. */
export class SqlTrailRecords implements TrailRecords {
  readonly #executor: Executor;

  constructor(executor: Executor) {
    this.#executor = executor;
  }

  async insertEntry({ detail, ...entry }: NewTrailEntry): Promise<void> {
    await this.#executor.insert(trailEntries).values({ ...entry, detail: JSON.stringify(detail) });
  }

  async timeOfEntry_ms(organization_id: string, newer: number): Promise<number | undefined> {
    const [row] = await this.#executor
      .select({ created_at_ms: trailEntries.created_at_ms })
      .from(trailEntries)
      .where(eq(trailEntries.organization_id, organization_id))
      .orderBy(desc(trailEntries.id))
      .limit(1)
      .offset(newer);
    return row?.created_at_ms;
  }

  async entriesAfter(after_id: number, limit: number): Promise<(NewTrailEntry & { readonly id: number })[]> {
    const rows = await this.#executor
      .select()
      .from(trailEntries)
      .where(gt(trailEntries.id, after_id))
      .orderBy(asc(trailEntries.id))
      .limit(limit);
    return rows.map((row) => ({ ...row, detail: readDetail(row.detail) }));
  }

  async rollUpEntries({ kept, removed }: RolledUpEntries): Promise<void> {
    for (const { id, object_id, detail } of kept) {
      await this.#executor
        .update(trailEntries)
        .set({ object_id, detail: JSON.stringify(detail) })
        .where(eq(trailEntries.id, id));
    }
    await this.#executor.delete(trailEntries).where(inArray(trailEntries.id, [...removed]));
  }

  async listEntries({
    organization_id,
    before_id,
    action,
    limit,
  }: Parameters<TrailRecords['listEntries']>[0]): Promise<StoredTrailEntry[]> {
    const rows = await this.#executor
      .select({
        ...getTableColumns(trailEntries),
        user_name: users.name,
        user_email: users.email,
        object_name: OBJECT_NAME,
      })
      .from(trailEntries)
      .leftJoin(users, eq(users.id, trailEntries.user_id))
      .where(
        and(
          organization_id === null
            ? isNull(trailEntries.organization_id)
            : eq(trailEntries.organization_id, organization_id),
          before_id === null ? undefined : lt(trailEntries.id, before_id),
          action === null ? undefined : eq(trailEntries.action, action),
        ),
      )
      .orderBy(desc(trailEntries.id))
      .limit(limit);
    return rows.map((row) => ({ ...row, detail: readDetail(row.detail) }));
  }
}
