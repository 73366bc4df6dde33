/** Keeps copies of the database for the day on which it is lost. */
export interface Backups {
  /** The time of the newest backup that is not from the future; null without one. Throws what the store throws. */
  newest_ms(now_ms: number): number | null;
  /** Writes a checked backup beside the requests, then removes what is too many. Rejects with why there is none. */
  make(now_ms: number): Promise<void>;
  /** Gives up the backup that is being written, and leaves nothing of it. */
  stop(): void;
}
