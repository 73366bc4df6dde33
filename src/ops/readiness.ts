import { BYTES_PER_MEGABYTE } from '../bytes.ts';
import type { Clock } from '../clock.ts';
import { inTime } from '../in-time.ts';
import type { LifecycleStatus } from '../models/lifecycle.ts';
import type { Problems } from '../problems/problems.ts';

/** What a service needs to answer. */
export const READINESS_CHECKS = ['draining', 'model', 'database', 'disk'] as const;
export type ReadinessCheck = (typeof READINESS_CHECKS)[number];

/** Free bytes below which the database may soon not be written any more, unless configured. */
export const DISK_FLOOR_BYTES = 256 * BYTES_PER_MEGABYTE;

/** For so long a result is given again: whoever asks without end costs one look a second at most. */
const RESULT_MS = 1_000;
/** A look that takes longer has failed. */
const LOOK_MS = 2_000;
/** How often a model that could not be loaded is tried again: a balancer that sends nothing would never load it. */
const RELOAD_MS = 30_000;

/** A model, as far as its readiness goes. */
export interface ReadinessModel {
  readonly status: () => LifecycleStatus;
  /** Loads it. Rejects where that fails; the failure is reported elsewhere. */
  readonly load: () => Promise<unknown>;
}

export interface ReadinessParts {
  /** Those that the catalog has opened now. */
  readonly models: () => readonly ReadinessModel[];
  /** Makes a durable write. Rejects when the database cannot be written. */
  readonly write: () => Promise<void>;
  /** Free bytes where the database is; null where that is another machine, whose disk is looked at there. */
  readonly freeBytes: (() => Promise<number>) | null;
  readonly disk_floor_bytes?: number | undefined;
  readonly clock: Pick<Clock, 'monotonic_ms'>;
  /** Gets the cause when a look begins to fail, and again after it was well in between. */
  readonly problems: Pick<Problems, 'report'>;
}

/**
 * Whether this service should be sent requests. It looks at most once a second however often it is asked, and never
 * waits for more than two seconds.
 */
export class Readiness {
  #is_draining = false;
  #looked_at_ms = Number.NEGATIVE_INFINITY;
  #failing: Promise<readonly ReadinessCheck[]> = Promise.resolve([]);
  #reloaded_at_ms = Number.NEGATIVE_INFINITY;
  #disk_floor_bytes: number;
  /** Looks that failed the last time: their cause is reported, and not once a second. */
  readonly #broken = new Set<ReadinessCheck>();

  constructor(private readonly parts: ReadinessParts) {
    this.#disk_floor_bytes = parts.disk_floor_bytes ?? DISK_FLOOR_BYTES;
  }

  /** From the next look on, so many bytes must be free. */
  setDiskFloor(bytes: number): void {
    this.#disk_floor_bytes = bytes;
  }

  /** From now on the service is not ready, because it stops. Nothing is looked at any more. */
  drain(): void {
    this.#is_draining = true;
  }

  /** What the service lacks; nothing when it is ready. Never rejects. */
  async failing(): Promise<readonly ReadinessCheck[]> {
    if (this.#is_draining) return ['draining'];
    const now_ms = this.parts.clock.monotonic_ms();
    if (now_ms - this.#looked_at_ms >= RESULT_MS) {
      this.#looked_at_ms = now_ms;
      this.#failing = this.#look();
    }
    const failing = await this.#failing;
    // A stop may have begun meanwhile.
    return this.#is_draining ? ['draining'] : failing;
  }

  async #look(): Promise<readonly ReadinessCheck[]> {
    const { write, freeBytes } = this.parts;
    const model = this.#canAnswer();
    const [database, disk] = await Promise.all([
      this.#isWell('database', () => write().then(() => true)),
      this.#isWell('disk', async () => freeBytes === null || (await freeBytes()) >= this.#disk_floor_bytes),
    ]);
    const is_well: Record<ReadinessCheck, boolean> = { draining: true, model, database, disk };
    return READINESS_CHECKS.filter((check) => !is_well[check]);
  }

  /** What the look finds; false when it fails or takes too long. */
  async #isWell(check: ReadinessCheck, look: () => Promise<boolean>): Promise<boolean> {
    try {
      const is_well = await inTime(look(), LOOK_MS, 'The look took too long.');
      this.#broken.delete(check);
      return is_well;
    } catch (error) {
      if (!this.#broken.has(check)) {
        this.parts.problems.report({ request_id: null, step: 'readiness', code: null, error });
      }
      this.#broken.add(check);
      return false;
    }
  }

  /** Whether a model is loaded, or nothing speaks against loading one. */
  #canAnswer(): boolean {
    const { clock } = this.parts;
    const models = this.parts.models();
    if (models.some(({ status }) => isAble(status()))) return true;
    const now_ms = clock.monotonic_ms();
    if (now_ms - this.#reloaded_at_ms >= RELOAD_MS) {
      this.#reloaded_at_ms = now_ms;
      // Nothing is lost: the model reports why it was not loaded, and its status says so.
      for (const { load } of models) load().catch(() => {});
    }
    return false;
  }
}

function isAble({ state, load_error }: LifecycleStatus): boolean {
  return state === 'fast_ready' || state === 'ready' || load_error === undefined;
}
