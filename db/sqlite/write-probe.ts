import type { GroupCommit } from './group-commit.ts';

/**
 * Returns a durable write that changes nothing: it rewrites SQLite's unused `user_version`. It joins the group commit
 * of requests, and rejects as their writes do.
 */
export function writeProbe(commits: GroupCommit): () => Promise<void> {
  const { $client } = commits.db;
  return () =>
    commits.run(() => {
      const [version] = $client.query<{ user_version: number }, []>('PRAGMA user_version').all();
      $client.run(`PRAGMA user_version = ${version?.user_version ?? 0}`);
    });
}
