import { Database } from 'bun:sqlite';
import { join } from 'node:path';
import type { Backups } from '../../src/ops/backups.ts';
import { backupName, backupNames, backupTime_ms, removeOldBackups } from './backup.ts';
import { BackupThread } from './backup-thread.ts';
import { schemaVersion } from './migrate.ts';

/** Backups of a database file in one directory, whose names tell their times; at most `kept` of them. */
export class SqliteBackups implements Backups {
  #running: BackupThread | undefined;

  constructor(
    private readonly database: string,
    private readonly directory: string,
    private readonly kept: number,
  ) {}

  newest_ms(now_ms: number): number | null {
    return newestBackup_ms(this.directory, now_ms);
  }

  async make(now_ms: number): Promise<void> {
    const file = join(this.directory, backupName(now_ms, this.#schemaVersion(), 'compressed'));
    this.#running = new BackupThread({ database: this.database, file });
    try {
      await this.#running.written();
    } finally {
      this.#running = undefined;
    }
    removeOldBackups(this.directory, this.kept, 'compressed');
  }

  stop(): void {
    this.#running?.stop();
  }

  #schemaVersion(): number {
    const client = new Database(this.database, { readonly: true, strict: true });
    try {
      return schemaVersion(client);
    } finally {
      client.close();
    }
  }
}

/** The time of the directory's newest compressed backup up to now; null for none. */
export function newestBackup_ms(directory: string, now_ms: number): number | null {
  const times = backupNames(directory, 'compressed')
    .map(backupTime_ms)
    .filter((time_ms) => time_ms !== null && time_ms <= now_ms);
  return times.at(-1) ?? null;
}
