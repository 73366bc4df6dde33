import { Database } from 'bun:sqlite';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { BackupFile, Backups } from '../../src/store/backups.ts';
import { backupName, backupNames, backupTime_ms, removeOldBackups } from './backup.ts';
import { BackupThread } from './backup-thread.ts';
import { schemaVersion } from './migrate.ts';

/** Backups of a database file in one directory, with their times in their names. At most `kept` remain. */
export class SqliteBackups implements Backups {
  #running: BackupThread | undefined;

  constructor(
    private readonly database: string,
    readonly directory: string,
    private readonly kept: number,
  ) {}

  newest(now_ms: number): BackupFile | null {
    return newestBackup(this.directory, now_ms);
  }

  async make(now_ms: number): Promise<string> {
    const file = join(this.directory, backupName(now_ms, this.#schemaVersion(), 'compressed'));
    this.#running = new BackupThread({ database: this.database, file });
    try {
      await this.#running.written();
    } finally {
      this.#running = undefined;
    }
    removeOldBackups(this.directory, this.kept, 'compressed');
    return file;
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

/** Returns the directory's newest compressed backup up to now; null for none. */
export function newestBackup(directory: string, now_ms: number): BackupFile | null {
  for (const name of backupNames(directory, 'compressed').toReversed()) {
    const at_ms = backupTime_ms(name);
    if (at_ms !== null && at_ms <= now_ms) return { at_ms, bytes: statSync(join(directory, name)).size };
  }
  return null;
}
