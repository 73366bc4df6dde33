import { Database } from 'bun:sqlite';
import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { asc } from 'drizzle-orm';
import { openDatabase } from '../../db/sqlite/connection.ts';
import { bringUpToDate, knownMigrations } from '../../db/sqlite/migrate.ts';
import { models } from '../../db/sqlite/schema.ts';
import { temporaryDirectory } from '../accounts/support.ts';

test('the catalog of an earlier version: decision-1 keeps the embedded weights, its price and its status; others have none', () => {
  const directory = temporaryDirectory();
  const path = join(directory.path, 'tds.sqlite');
  const earlier = new Database(path, { create: true, readwrite: true, strict: true });
  bringUpToDate(earlier, knownMigrations().slice(0, 5));
  earlier.run(
    `INSERT INTO models (id, kind, status, description, context_tokens, input_price_micros_per_million_tokens,
      released_at_ms) VALUES ('decision-1', 'decision', 'coming_soon', 'd', 16384, 250000, 5),
      ('decision-2', 'decision', 'coming_soon', 'd', NULL, NULL, NULL)`,
  );
  bringUpToDate(earlier);
  earlier.close();
  const db = openDatabase(path);
  const none = { weights_sha256: null, profile: null };
  expect(db.select().from(models).orderBy(asc(models.id)).all()).toMatchObject([
    {
      id: 'decision-1',
      status: 'coming_soon',
      input_price_micros_per_million_tokens: 250_000,
      released_at_ms: 5,
      weights: 'embedded',
      ...none,
    },
    { id: 'decision-2', weights: null, ...none },
  ]);
  db.$client.close();
  directory.remove();
});
