import { defineConfig } from 'drizzle-kit';

/**
 * Used by `drizzle-kit generate --config db/sqlite/drizzle.config.ts` to write a migration after a change of the
 * schema.
 */
export default defineConfig({
  dialect: 'sqlite',
  schema: './db/sqlite/schema.ts',
  out: './db/sqlite/migrations',
});
