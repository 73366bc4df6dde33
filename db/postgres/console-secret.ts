import { randomBytes } from 'node:crypto';
import { eq } from 'drizzle-orm';
import type { Executor } from './connection.ts';
import { serviceSecrets } from './schema.ts';

const NAME = 'console';
const SECRET_BYTES = 32;

/**
 * The secret that signs session cookies and makes CSRF tokens: 32 random bytes, in hexadecimal. All nodes have it from
 * here. The first call stores one: that of a data directory where it is given, or a new one. It gives nothing to
 * whoever reads the database, because tokens of sessions are stored as hashes. Whoever deletes its row ends all
 * sessions.
 */
export async function consoleSecret(
  executor: Executor,
  made = randomBytes(SECRET_BYTES).toString('hex'),
): Promise<string> {
  // Another node may have been faster: then its secret counts.
  await executor.insert(serviceSecrets).values({ name: NAME, secret: made }).onConflictDoNothing();
  const [found] = await executor
    .select({ secret: serviceSecrets.secret })
    .from(serviceSecrets)
    .where(eq(serviceSecrets.name, NAME));
  return found?.secret ?? made;
}
