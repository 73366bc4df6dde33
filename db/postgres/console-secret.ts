import { randomBytes } from 'node:crypto';
import { eq } from 'drizzle-orm';
import type { Executor } from './connection.ts';
import { serviceSecrets } from './schema.ts';

const NAME = 'console';
const SECRET_BYTES = 32;

/**
 * Resolves with the secret of session cookies and CSRF tokens: 32 random bytes in hexadecimal, the same for all nodes.
 * The first call stores one: that of a data directory if given, or a new one. A reader of the database cannot sign in with
 * it, because session tokens are stored as hashes, but can read the secrets of second factors. Deleting its row ends
 * all sessions and makes second factors unusable.
 */
export async function consoleSecret(
  executor: Executor,
  made = randomBytes(SECRET_BYTES).toString('hex'),
): Promise<string> {
  // If another node was faster, its secret is used.
  await executor.insert(serviceSecrets).values({ name: NAME, secret: made }).onConflictDoNothing();
  return (await storedConsoleSecret(executor)) ?? made;
}

/** Resolves with the stored secret; null where no node has served the console yet. */
export async function storedConsoleSecret(executor: Executor): Promise<string | null> {
  const [found] = await executor
    .select({ secret: serviceSecrets.secret })
    .from(serviceSecrets)
    .where(eq(serviceSecrets.name, NAME));
  return found?.secret ?? null;
}
