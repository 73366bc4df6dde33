import type { RunProgress } from './run.ts';

const BAR_WIDTH = 30;
/** The shortest intervals of updates, on a terminal and in a log. */
const TERMINAL_INTERVAL_MS = 100;
const LOG_INTERVAL_MS = 30_000;

/**
 * Returns a run's progress as one line; the time left is estimated from the work of this process in
 * `elapsed_ms`.
 */
function progressLine({ done, total, done_now }: RunProgress, elapsed_ms: number): string {
  const share = total === 0 ? 1 : done / total;
  const filled = Math.round(share * BAR_WIDTH);
  const bar = '█'.repeat(filled) + '░'.repeat(BAR_WIDTH - filled);
  const left = done_now === 0 ? null : ((total - done) * elapsed_ms) / done_now;
  return `${bar} ${done}/${total} ${(100 * share).toFixed(0)}%${left === null ? '' : `, ${duration(left)} left`}`;
}

/** Returns a duration for people: the two largest units. */
function duration(milliseconds: number): string {
  const seconds = Math.ceil(milliseconds / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Shows progress on a stream: one line that is rewritten on a terminal, a line at intervals elsewhere. */
export class ProgressBar {
  readonly #started_ms: number;
  #shown_ms = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly stream: { readonly isTTY?: boolean; write(text: string): unknown },
    private readonly now_ms: () => number,
  ) {
    this.#started_ms = now_ms();
  }

  show(progress: RunProgress): void {
    const now_ms = this.now_ms();
    const last = progress.done === progress.total;
    const interval_ms = this.stream.isTTY ? TERMINAL_INTERVAL_MS : LOG_INTERVAL_MS;
    if (!last && now_ms - this.#shown_ms < interval_ms) return;
    this.#shown_ms = now_ms;
    const line = progressLine(progress, now_ms - this.#started_ms);
    this.stream.write(this.stream.isTTY ? `\r\u001b[K${line}${last ? '\n' : ''}` : `${line}\n`);
  }
}
