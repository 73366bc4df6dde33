import type { GroupCommit } from './group-commit.ts';

/**
 * A durable write that changes nothing: the version that SQLite keeps for a program, which this one does not use, is
 * written as it is. It goes the way of all writes of requests, and rejects as they do.
 */
export function writeProbe(commits: GroupCommit): () => Promise<void> {
  const { $client } = commits.db;
  return () =>
    commits.run(() => {
      const [version] = $client.query<{ user_version: number }, []>('PRAGMA user_version').all();
      $client.run(`PRAGMA user_version = ${version?.user_version ?? 0}`);
    });
}
