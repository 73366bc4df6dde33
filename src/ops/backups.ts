/** A backup that was made. */
export interface BackupFile {
  readonly at_ms: number;
  readonly bytes: number;
}

/** No backup was made; the message names where it was to be. */
export class BackupFailed extends Error {
  override readonly name = 'BackupFailed';
}

/** Keeps copies of the database for the day on which it is lost. */
export interface Backups {
  /** Where they are, for messages. */
  readonly directory: string;
  /** The newest backup that is not from the future; null without one. Throws what the store throws. */
  newest(now_ms: number): BackupFile | null;
  /**
   * Writes a checked backup beside the requests, then removes what is too many. Resolves with its path. Rejects with
   * why there is none.
   */
  make(now_ms: number): Promise<string>;
  /** Gives up the backup that is being written, and leaves nothing of it. */
  stop(): void;
}
