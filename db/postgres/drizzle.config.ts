import { defineConfig } from 'drizzle-kit';

/**
 * Used by `drizzle-kit generate --config db/postgres/drizzle.config.ts` to write a migration after a change of the
 * schema.
 */
export default defineConfig({
  dialect: 'postgresql',
  schema: './db/postgres/schema.ts',
  out: './db/postgres/migrations',
});
