import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type { DecisionPlan, ScoreCorrection } from '../../native/engine.ts';
import type { TunedModelEntry } from '../catalog/catalog.ts';
import { type OnCorrected, Tuning } from '../tuning/tuning.ts';

/** The model was removed between the read of its row and that of its tuning. */
export class ModelRemoved extends Error {
  override readonly name = 'ModelRemoved';
}

/** The tunings that requests have needed so far, each read once for its text. */
export class Tunings {
  readonly #known = new Map<string, { readonly sha256: string; readonly tuning: Promise<Tuning> }>();

  /** `read` returns the text of a model's tuning. */
  constructor(private readonly read: (model_id: string) => Promise<string | undefined>) {}

  /** Returns the tuning of a row that was just read. Rejects with `ModelRemoved`, and when it cannot be read; the next call tries again. */
  of({ id, tuning_sha256: sha256 }: Pick<TunedModelEntry, 'id' | 'tuning_sha256'>): Promise<Tuning> {
    const known = this.#known.get(id);
    if (known?.sha256 === sha256) return known.tuning;
    const entry = { sha256, tuning: this.#load(id, sha256) };
    this.#known.set(id, entry);
    entry.tuning.catch(() => {
      if (this.#known.get(id) === entry) this.#known.delete(id);
    });
    return entry.tuning;
  }

  /** Forgets the tunings of all other models. */
  keepOnly(ids: ReadonlySet<string>): void {
    for (const id of this.#known.keys()) if (!ids.has(id)) this.#known.delete(id);
  }

  async #load(id: string, sha256: string): Promise<Tuning> {
    const text = await this.read(id);
    if (text === undefined) throw new ModelRemoved(`${id} has no tuning.`);
    if (tuningSha256(text) !== sha256) throw new Error(`The tuning of ${id} is not the one that was added.`);
    return await Tuning.readInSlices(text, () => setImmediate());
  }
}

/** Returns the SHA-256 of a tuning's text, in hex. */
export function tuningSha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** Returns the correction of a plan's tuned questions; undefined without any: all answers are the base's then. */
export function correctionOf(
  tuning: Tuning,
  { input }: DecisionPlan,
  onCorrected: OnCorrected,
): ScoreCorrection | undefined {
  const correction = tuning.correctionOf(input, onCorrected);
  const { weights_sha256, profile } = tuning;
  return correction === null ? undefined : { weights_sha256, profile, ...correction };
}
