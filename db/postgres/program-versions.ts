import { desc, sql } from 'drizzle-orm';
import type { Writer } from '../../src/store/database.ts';
import { firstRow } from '../records/first-row.ts';
import type { Executor } from './connection.ts';
import { programVersions } from './schema.ts';

/** Records that this version writes the database, whose schema must be this program's. */
export async function noteVersion(executor: Executor, version: string, now_ms: number): Promise<void> {
  await executor
    .insert(programVersions)
    .values({ version, first_ms: now_ms, last_ms: now_ms })
    .onConflictDoUpdate({ target: programVersions.version, set: { last_ms: sql`excluded.last_ms` } });
}

/** Resolves with the version that last wrote the database; null if none is recorded. */
export async function lastWriter(executor: Executor): Promise<Writer | null> {
  const { version, last_ms } = programVersions;
  const found = await firstRow(
    executor
      .select({ version, last_ms })
      .from(programVersions)
      .orderBy(desc(last_ms), desc(version))
      .limit(1),
  );
  return found ?? null;
}
