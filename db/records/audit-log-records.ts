import { and, asc, desc, eq, getTableColumns, gt, inArray, isNull, lt, sql } from 'drizzle-orm';
import { readDetail } from '../../src/audit-log/detail.ts';
import type {
  AuditLogRecords,
  NewAuditLogEntry,
  RolledUpEntries,
  StoredAuditLogEntry,
} from '../../src/store/audit-log-records.ts';
import { apiKeys, auditLogEntries, invitations, organizations, projects, users } from '../tables.ts';
import type { Executor } from './executor.ts';

/** The name of an entry's object, from the table of its kind. Other kinds have only their ids. */
const OBJECT_NAME = sql<string | null>`CASE ${auditLogEntries.object_kind}
  WHEN 'organization' THEN (SELECT ${organizations.name} FROM ${organizations} WHERE ${organizations.id} = ${auditLogEntries.object_id})
  WHEN 'project' THEN (SELECT ${projects.name} FROM ${projects} WHERE ${projects.id} = ${auditLogEntries.object_id})
  WHEN 'key' THEN (SELECT ${apiKeys.name} FROM ${apiKeys} WHERE ${apiKeys.id} = ${auditLogEntries.object_id})
  WHEN 'user' THEN (SELECT named.name FROM ${users} AS named WHERE named.id = ${auditLogEntries.object_id})
  WHEN 'invitation' THEN (SELECT ${invitations.email} FROM ${invitations} WHERE ${invitations.id} = ${auditLogEntries.object_id})
END`;

/** The audit log. */
export class SqlAuditLogRecords implements AuditLogRecords {
  constructor(private readonly executor: Executor) {}

  async insertEntry({ detail, ...entry }: NewAuditLogEntry): Promise<void> {
    await this.executor.insert(auditLogEntries).values({ ...entry, detail: JSON.stringify(detail) });
  }

  async timeOfEntry_ms(organization_id: string, newer: number): Promise<number | undefined> {
    const [row] = await this.executor
      .select({ created_at_ms: auditLogEntries.created_at_ms })
      .from(auditLogEntries)
      .where(eq(auditLogEntries.organization_id, organization_id))
      .orderBy(desc(auditLogEntries.id))
      .limit(1)
      .offset(newer);
    return row?.created_at_ms;
  }

  async entriesAfter(
    after_id: number,
    limit: number,
  ): Promise<(NewAuditLogEntry & { readonly id: number })[]> {
    const rows = await this.executor
      .select()
      .from(auditLogEntries)
      .where(gt(auditLogEntries.id, after_id))
      .orderBy(asc(auditLogEntries.id))
      .limit(limit);
    return rows.map((row) => ({ ...row, detail: readDetail(row.detail) }));
  }

  async rollUpEntries({ kept, removed }: RolledUpEntries): Promise<void> {
    for (const { id, object_id, detail } of kept) {
      await this.executor
        .update(auditLogEntries)
        .set({ object_id, detail: JSON.stringify(detail) })
        .where(eq(auditLogEntries.id, id));
    }
    await this.executor.delete(auditLogEntries).where(inArray(auditLogEntries.id, [...removed]));
  }

  async listEntries({
    organization_id,
    before_id,
    action,
    limit,
  }: Parameters<AuditLogRecords['listEntries']>[0]): Promise<StoredAuditLogEntry[]> {
    const rows = await this.executor
      .select({
        ...getTableColumns(auditLogEntries),
        user_name: users.name,
        user_email: users.email,
        object_name: OBJECT_NAME,
      })
      .from(auditLogEntries)
      .leftJoin(users, eq(users.id, auditLogEntries.user_id))
      .where(
        and(
          organization_id === null
            ? isNull(auditLogEntries.organization_id)
            : eq(auditLogEntries.organization_id, organization_id),
          before_id === null ? undefined : lt(auditLogEntries.id, before_id),
          action === null ? undefined : eq(auditLogEntries.action, action),
        ),
      )
      .orderBy(desc(auditLogEntries.id))
      .limit(limit);
    return rows.map((row) => ({ ...row, detail: readDetail(row.detail) }));
  }
}
