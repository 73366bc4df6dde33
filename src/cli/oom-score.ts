import { writeFileSync } from 'node:fs';

/** The highest score that a Linux process can give itself: it is ended first when memory runs out. */
const ENDED_FIRST = '1000';

/**
 * Lets the system end this process before any other when memory runs out. Has no effect once core dumps are
 * forbidden.
 */
export function beEndedFirst(): void {
  try {
    writeFileSync('/proc/self/oom_score_adj', ENDED_FIRST);
  } catch {
    // Nothing is lost: another system makes its own choice.
  }
}
