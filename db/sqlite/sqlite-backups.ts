import { Database } from 'bun:sqlite';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { systemErrorCode } from '../../src/errors/system-error-code.ts';
import { OWNER_ONLY_FILE } from '../../src/files/file-permissions.ts';
import type { BackupFile, Backups } from '../../src/store/backups.ts';
import {
  backupName,
  backupNames,
  backupTime_ms,
  isOfPast,
  removeOldBackups,
  removeUnfinishedBackups,
} from './backup.ts';
import { BackupThread } from './backup-thread.ts';
import { fileGuard } from './file-watch.ts';
import { schemaVersion } from './migrate.ts';

/** The file beside the backups that has the name of the last one that was copied off the machine. */
const COPIED_FILE = 'copied-off';

/** The newest copy of books that are not right. It counts as no backup, and pushes none out. */
const UNSOUND_FILE = 'unsound.sqlite.zst';

/** Backups of a database file in one directory, with their times in their names. At most `kept` remain. */
export class SqliteBackups implements Backups {
  readonly #requireSameFile: () => void;
  #running: BackupThread | undefined;

  constructor(
    private readonly database: string,
    readonly directory: string,
    private readonly kept: number,
  ) {
    this.#requireSameFile = fileGuard(database);
  }

  newest(now_ms: number): BackupFile | null {
    return newestBackup(this.directory, now_ms);
  }

  async make(now_ms: number): Promise<void> {
    // Copies of another file would push out those of the books.
    this.#requireSameFile();
    removeUnfinishedBackups(this.directory, 'compressed');
    const file = join(this.directory, backupName(now_ms, this.#schemaVersion(), 'compressed'));
    this.#running = new BackupThread({
      database: this.database,
      file,
      unsound: join(this.directory, UNSOUND_FILE),
    });
    try {
      await this.#running.written();
    } finally {
      this.#running = undefined;
    }
    removeOldBackups(this.directory, now_ms, { kept: this.kept, kind: 'compressed' });
  }

  uncopied(now_ms: number): string | null {
    const name = newestName(this.directory, now_ms);
    // Names are compared, not times: after a clock that went back, an older time is a newer backup.
    return name === null || name === this.#copied() ? null : join(this.directory, name);
  }

  noteCopied(path: string): void {
    writeFileSync(join(this.directory, COPIED_FILE), basename(path), { mode: OWNER_ONLY_FILE });
  }

  stop(): void {
    // No other process writes into this directory.
    this.#running?.stop();
  }

  #copied(): string | null {
    try {
      return readFileSync(join(this.directory, COPIED_FILE), 'utf8');
    } catch (error) {
      if (systemErrorCode(error) === 'ENOENT') return null;
      throw error;
    }
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
  const name = newestName(directory, now_ms);
  const at_ms = name === null ? null : backupTime_ms(name);
  return name === null || at_ms === null ? null : { at_ms, bytes: statSync(join(directory, name)).size };
}

function newestName(directory: string, now_ms: number): string | null {
  return backupNames(directory, 'compressed').findLast((name) => isOfPast(name, now_ms)) ?? null;
}
