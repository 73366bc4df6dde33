import { defineConfig } from 'drizzle-kit';

/** Used by `drizzle-kit generate --config db/drizzle.config.ts` to write a migration after a change of the schema. */
export default defineConfig({
  dialect: 'sqlite',
  schema: './db/schema.ts',
  out: './db/migrations',
});
