import type { Clock } from '../time/clock.ts';
import { type Cause, causesOf } from './causes.ts';
import {
  noProblems,
  type Problem,
  type ProblemLine,
  type ProblemStep,
  type Problems,
  type RecentProblem,
  type RecentProblems,
} from './problems.ts';

/** The time after a problem's stack was written in which problems of its kind are written without one. */
const WINDOW_MS = 60_000;
/**
 * The most kinds: more than the places in the code that can fail together. Beyond it the oldest is forgotten.
 */
const KINDS_MAX = 256;
/** The most problems that are remembered for the operator, a few hundred bytes each. */
export const RECENT_PROBLEMS_MAX = 500;

/** Problems of one step, with the same error classes from the same place. */
interface Kind {
  readonly step: ProblemStep;
  readonly code: Problem['code'];
  readonly model: Problem['model'];
  readonly error: string;
  readonly until_ms: number;
  /** The request whose line has the stack; null for background work. */
  readonly first_request_id: string | null;
  /**
   * The repetitions of background work. Those of requests are not counted, because every request has a line.
   */
  repeated: number;
}

/**
 * Writes problems to the log. The first of a kind has the causes with their stacks. In its window, each
 * further request has a short line that refers to the first one. Repetitions of background work are summed up
 * in one line. Every request is therefore found by its id, and a lasting fault adds no more lines than there
 * are requests.
 */
export class ProblemLog implements Problems, RecentProblems {
  readonly #counts = noProblems();
  /** Oldest first: a `Map` keeps the order of insertion. */
  readonly #kinds = new Map<string, Kind>();
  /** A ring: the oldest problem is at `#next_recent` once it is full. */
  readonly #recent: RecentProblem[] = [];
  #next_recent = 0;

  constructor(
    private readonly log: { problem(line: ProblemLine): void },
    private readonly clock: Pick<Clock, 'monotonic_ms' | 'now_ms'>,
  ) {}

  report({ request_id, step, code, model, error: thrown }: Problem): void {
    this.#counts[step] += 1;
    const causes = causesOf(thrown);
    const error = causes.map(inWords).join(' < ');
    // Errors of Bun's PostgreSQL client have no stack, so the place is that of the nearest cause with one.
    const place = causes.findLast(({ at }) => at.length > 0)?.at[0] ?? '';
    const at_ms = this.#now_ms();
    this.#remember({ at_ms, request_id, step, code, model: model ?? null, error, place });
    const id = [request_id === null ? 'background' : 'request', step, code, model, error, place].join('\n');
    const now_ms = this.clock.monotonic_ms();
    const known = this.#kinds.get(id);
    if (known !== undefined && now_ms < known.until_ms) {
      if (request_id === null) known.repeated += 1;
      else this.log.problem({ request_id, step, code, model, error, same_as: known.first_request_id });
      return;
    }
    if (known !== undefined) this.#forget(id, known);
    const [oldest] = this.#kinds;
    if (this.#kinds.size >= KINDS_MAX && oldest !== undefined) this.#forget(...oldest);
    const until_ms = now_ms + WINDOW_MS;
    this.#kinds.set(id, { step, code, model, error, until_ms, first_request_id: request_id, repeated: 0 });
    this.log.problem({ request_id, step, code, model, error, causes });
  }

  counts(): Readonly<Record<ProblemStep, number>> {
    return { ...this.#counts };
  }

  recent({
    request_id,
    limit = RECENT_PROBLEMS_MAX,
  }: {
    readonly request_id?: string | undefined;
    readonly limit?: number;
  } = {}): RecentProblem[] {
    const oldest_first = [
      ...this.#recent.slice(this.#next_recent),
      ...this.#recent.slice(0, this.#next_recent),
    ];
    return oldest_first
      .reverse()
      .filter((problem) => request_id === undefined || problem.request_id === request_id)
      .slice(0, limit);
  }

  /** Writes the repetitions of background work, for windows that have ended. To be called at intervals. */
  sumUp(): void {
    const now_ms = this.clock.monotonic_ms();
    for (const [id, kind] of this.#kinds) if (now_ms >= kind.until_ms) this.#forget(id, kind);
  }

  /** Does the same for all windows, at the end of the service. */
  close(): void {
    for (const [id, kind] of this.#kinds) this.#forget(id, kind);
  }

  /** Returns null when the clock fails, because a report must never throw. */
  #now_ms(): number | null {
    try {
      return this.clock.now_ms();
    } catch {
      return null;
    }
  }

  #remember(problem: RecentProblem): void {
    this.#recent[this.#next_recent] = problem;
    this.#next_recent = (this.#next_recent + 1) % RECENT_PROBLEMS_MAX;
  }

  #forget(id: string, { step, code, model, error, repeated }: Kind): void {
    this.#kinds.delete(id);
    if (repeated > 0) this.log.problem({ request_id: null, step, code, model, error, repeated });
  }
}

function inWords({ error, code }: Cause): string {
  return code === undefined ? error : `${error} ${code}`;
}
