import type { EngineSpeed } from '../../native/engine.ts';
import { BYTES_PER_MEGABYTE } from '../files/bytes.ts';
import { inBackground, type Problems } from '../problems/problems.ts';
import type { LifecycleStatus } from '../served-models/model-answerer.ts';
import type { Clock } from '../time/clock.ts';
import { inTime } from '../time/in-time.ts';

/** The conditions for answering requests. */
export const READINESS_CHECKS = ['draining', 'model', 'database', 'disk'] as const;
export type ReadinessCheck = (typeof READINESS_CHECKS)[number];

/** The free bytes below which the database may soon be unwritable, unless configured. */
export const DISK_FLOOR_BYTES = 256 * BYTES_PER_MEGABYTE;

/** The time for which a result is reused, so that frequent requests cause at most one check a second. */
const RESULT_MS = 1_000;
/** The time after which a check has failed. */
const LOOK_MS = 2_000;
/**
 * The interval at which a failed load of a model is retried, because a balancer that sends no requests would
 * never cause one.
 */
const RELOAD_MS = 30_000;

/** The readiness of a model. */
export interface ReadinessModel {
  readonly id: string;
  /** Its speed on this machine; undefined while it was not measured, and for upstreams. */
  readonly speed: () => EngineSpeed | undefined;
  readonly status: () => LifecycleStatus;
  /** Loads it. Rejects where that fails; the failure is reported elsewhere. */
  readonly load: () => Promise<unknown>;
}

/** The whole milliseconds that a model should take for a record of so many tokens, alone on this machine. */
export type ReadingSpeed = {
  readonly id: string;
  readonly read_1000_tokens_ms: number;
  readonly read_16000_tokens_ms: number;
};

export interface ReadinessParts {
  /** Returns the open models of the catalog. */
  readonly models: () => readonly ReadinessModel[];
  /** Makes a durable write. Rejects when the database cannot be written. */
  readonly write: () => Promise<void>;
  /**
   * Returns the free bytes where the database is; null where that is another machine, which checks its own
   * disk.
   */
  readonly freeBytes: (() => Promise<number>) | null;
  readonly disk_floor_bytes?: number | undefined;
  readonly clock: Pick<Clock, 'monotonic_ms'>;
  /** Reports the cause when a check begins to fail. */
  readonly problems: Pick<Problems, 'report'>;
}

/**
 * Decides if this service should get requests. It checks at most once a second, and never waits for more than
 * two seconds.
 */
export class Readiness {
  #is_draining = false;
  #looked_at_ms = Number.NEGATIVE_INFINITY;
  #failing: Promise<readonly ReadinessCheck[]> = Promise.resolve([]);
  #reloaded_at_ms = Number.NEGATIVE_INFINITY;
  #disk_floor_bytes: number;
  /** The checks that failed the last time, whose cause is already reported. */
  readonly #broken = new Set<ReadinessCheck>();

  constructor(private readonly parts: ReadinessParts) {
    this.#disk_floor_bytes = parts.disk_floor_bytes ?? DISK_FLOOR_BYTES;
  }

  /** Sets the free bytes that later checks require. */
  setDiskFloor(bytes: number): void {
    this.#disk_floor_bytes = bytes;
  }

  /** Makes the service not ready, because it stops, and ends all checks. */
  drain(): void {
    this.#is_draining = true;
  }

  /** Returns the speeds of the measured models. */
  speeds(): readonly ReadingSpeed[] {
    return this.parts.models().flatMap(({ id, speed: measured }) => {
      const speed = measured();
      if (speed === undefined) return [];
      const [read_1000_tokens_ms, read_16000_tokens_ms] = [record_ms(speed, 1_000), record_ms(speed, 16_000)];
      return [{ id, read_1000_tokens_ms, read_16000_tokens_ms }];
    });
  }

  /** Returns the failing conditions; none when the service is ready. Never rejects. */
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

  /** Returns the result of the check; false when it fails or takes too long. */
  async #isWell(check: ReadinessCheck, look: () => Promise<boolean>): Promise<boolean> {
    try {
      const is_well = await inTime(look(), LOOK_MS, 'The look took too long.');
      this.#broken.delete(check);
      return is_well;
    } catch (error) {
      if (!this.#broken.has(check)) {
        this.parts.problems.report(inBackground('readiness', error));
      }
      this.#broken.add(check);
      return false;
    }
  }

  /** Returns true if a model is loaded, or nothing prevents loading one. */
  #canAnswer(): boolean {
    const { clock } = this.parts;
    const models = this.parts.models();
    if (models.some(({ status }) => isAble(status()))) return true;
    const now_ms = clock.monotonic_ms();
    if (now_ms - this.#reloaded_at_ms >= RELOAD_MS) {
      this.#reloaded_at_ms = now_ms;
      // Nothing is lost: the model reports why it was not loaded, and its status has the reason.
      for (const { load } of models) load().catch(() => {});
    }
    return false;
  }
}

function isAble({ state, load_error }: LifecycleStatus): boolean {
  return state === 'fast_ready' || state === 'ready' || load_error === undefined;
}

function record_ms({ ms_per_token, ms_per_pair }: EngineSpeed, tokens: number): number {
  return Math.ceil(tokens * ms_per_token + ((tokens * tokens) / 2) * ms_per_pair);
}
