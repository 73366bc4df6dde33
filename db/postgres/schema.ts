import { sql } from 'drizzle-orm';
import { check, pgTable, primaryKey, timestamp } from 'drizzle-orm/pg-core';
import { integer, text } from '../tables.ts';

export * from '../tables.ts';

/**
 * The processes that serve from this database. A node is dead when its advisory lock is free and its lease has expired.
 * Both times are from the database's clock, because nodes' clocks differ.
 */
export const nodes = pgTable('nodes', {
  id: text().primaryKey(),
  /** The key of the session advisory lock that the node holds while it lives. */
  lock_key: integer().notNull().unique(),
  started_at: timestamp({ withTimezone: true }).notNull().defaultNow(),
  renewed_at: timestamp({ withTimezone: true }).notNull().defaultNow(),
  /** The version of the node's program. */
  version: text().notNull(),
});

/** The last beginning of work that one node does for all, by the database's clock. */
export const scheduledRuns = pgTable('scheduled_runs', {
  name: text().primaryKey(),
  started_at: timestamp({ withTimezone: true }).notNull(),
});

/** The secrets that all nodes share: the console's. With SQLite it is a file of the data directory. */
export const serviceSecrets = pgTable('service_secrets', {
  name: text().primaryKey(),
  secret: text().notNull(),
});

/**
 * The state of an organization's rate windows: the sums of its `rate_window_entries`. Times are microseconds of the
 * database's clock. Neither table references `organizations`, because the check would wait for transactions that move
 * its credit.
 */
export const rateWindows = pgTable('rate_windows', {
  organization_id: text().primaryKey(),
  requests: integer().notNull().default(0),
  tokens: integer().notNull().default(0),
  /** The time of the oldest entry; meaningless without entries. */
  oldest_us: integer().notNull().default(0),
  /** A time before which no entry has tokens. */
  oldest_tokens_us: integer().notNull().default(0),
  /** The time of the newest entry. */
  latest_us: integer().notNull().default(0),
  /** The lead of the windows' time over the clock after the clock was set back. */
  ahead_us: integer().notNull().default(0),
});

/** The requests and tokens of an organization at one time, kept for 60 seconds. */
export const rateWindowEntries = pgTable(
  'rate_window_entries',
  {
    organization_id: text().notNull(),
    at_us: integer().notNull(),
    requests: integer().notNull(),
    /** The estimated tokens; once settled, the billed ones. */
    tokens: integer().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.organization_id, table.at_us] }),
    check('rate_window_entries_amounts', sql`${table.requests} > 0 AND ${table.tokens} >= 0`),
  ],
);
