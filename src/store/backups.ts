/** A finished backup. */
export interface BackupFile {
  readonly at_ms: number;
  readonly bytes: number;
}

/** The backup failed; the message names its destination. */
export class BackupFailed extends Error {
  override readonly name = 'BackupFailed';
}

/** Keeps copies of the database against its loss. */
export interface Backups {
  /** The directory of the copies, for messages. */
  readonly directory: string;
  /** Returns the newest backup that is not from the future, or null. Throws as the store does. */
  newest(now_ms: number): BackupFile | null;
  /**
   * Writes a checked backup while requests are served, then removes the oldest beyond the number to keep.
   * Rejects with the reason for a failure.
   */
  make(now_ms: number): Promise<void>;
  /**
   * Returns the path of the newest backup, or null if that is the one last noted as copied off the machine. Throws as
   * `newest` does.
   */
  uncopied(now_ms: number): string | null;
  /** Notes, also for the next process, that this backup was copied off the machine. Throws as the store does. */
  noteCopied(path: string): void;
  /** Cancels the backup in progress, and removes its files. */
  stop(): void;
}
