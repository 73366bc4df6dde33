import type { TunedModelEntry } from '../catalog/catalog.ts';
import { inBackground, type Problems } from '../problems/problems.ts';
import type { AnswerCount } from '../store/catalog-records.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../time/clock.ts';
import { dayOf } from '../time/days.ts';
import type { TuningEntry } from '../tuning/tuning-file.ts';
import { answerDrifts, largestIndex } from './answer-drifts.ts';

/** A write of so many rows takes SQLite a few milliseconds. */
const ROWS_MAX = 1_000;

export interface AnswerCountsParts {
  readonly store: Store;
  readonly clock: Pick<Clock, 'now_ms'>;
  readonly problems: Pick<Problems, 'report'>;
}

/** A row of a tuned model. */
type TunedRow = Pick<TunedModelEntry, 'id' | 'tuning_sha256'>;

/** A tuned model that has answered. */
interface CountedModel {
  readonly tuning_sha256: string;
  readonly entries: readonly TuningEntry[];
  /** Counts that are not written yet, by the question's place in the tuning and that of the answer's class. */
  readonly waiting: Map<number, number[]>;
  /** The largest stability index of its questions; null where none has enough answers. */
  index: number | null;
}

/** The largest stability index of a tuned model's questions. */
export interface ModelDrift {
  readonly model: string;
  readonly index: number;
}

/**
 * Counts the answers of tuned models to their tuned questions: numbers only, in memory until `flush`. A crash loses those
 * since the last one.
 */
export class AnswerCounts {
  readonly #models = new Map<string, CountedModel>();
  #flushed: Promise<void> = Promise.resolve();

  constructor(private readonly parts: AnswerCountsParts) {}

  /** Counts an answer, by the question's place in the tuning and its class among those of `identityOf`. */
  note(
    { id, tuning_sha256 }: TunedRow,
    entries: readonly TuningEntry[],
    question: number,
    answer_class: number,
  ): void {
    let model = this.#models.get(id);
    if (model?.tuning_sha256 !== tuning_sha256) {
      model = { tuning_sha256, entries, waiting: new Map(), index: null };
      this.#models.set(id, model);
    }
    add(model, { question, class: answer_class, answers: 1 });
  }

  /**
   * Compares what was written before the start, so that a restart hides no drift. Reads the tunings of models with answers
   * in the last seven days. Never rejects: a failure is reported, and a model's next answers bring its comparison.
   */
  resume(
    listTuned: () => Promise<readonly TunedRow[]>,
    readEntries: (model: TunedRow) => Promise<readonly TuningEntry[]>,
  ): Promise<void> {
    this.#flushed = this.#flushed.then(async () => {
      const models = await listTuned().catch((error: unknown) => {
        this.#report(error);
        return [];
      });
      for (const model of models) {
        await this.#resume(model, readEntries).catch((error: unknown) => this.#report(error, model.id));
      }
    });
    return this.#flushed;
  }

  /**
   * Writes the counts, after those of an earlier flush, and compares the written ones with the tuning. Forgets models that
   * are removed. Never rejects: a failure is reported, and the next flush writes the counts then.
   */
  flush(): Promise<void> {
    this.#flushed = this.#flushed.then(async () => {
      for (const [id, model] of this.#models) {
        await this.#flush(id, model).catch((error: unknown) => this.#report(error, id));
      }
    });
    return this.#flushed;
  }

  /** Returns the largest index of each model, as of the last flush, where one of its questions has enough answers. */
  drifts(): readonly ModelDrift[] {
    return [...this.#models].flatMap(([model, { index }]) => (index === null ? [] : [{ model, index }]));
  }

  async #resume(
    { id, tuning_sha256 }: TunedRow,
    readEntries: (model: TunedRow) => Promise<readonly TuningEntry[]>,
  ): Promise<void> {
    const { store, clock } = this.parts;
    let entries: readonly TuningEntry[] = [];
    const read = async () => {
      entries = await readEntries({ id, tuning_sha256 });
      return entries;
    };
    const index = largestIndex(await answerDrifts(store.catalog, id, read, clock.now_ms()));
    if (index === null || this.#models.has(id)) return;
    this.#models.set(id, { tuning_sha256, entries, waiting: new Map(), index });
  }

  #report(error: unknown, model?: string): void {
    this.parts.problems.report(inBackground('answer_counts', error, model));
  }

  async #flush(id: string, model: CountedModel): Promise<void> {
    const { store, clock } = this.parts;
    const now_ms = clock.now_ms();
    const counts = waitingOf(model);
    let written = 0;
    do {
      const batch = counts.slice(written, written + ROWS_MAX);
      const is_there = await store.transaction(async ({ catalog }) => {
        const stored = await catalog.findModel(id);
        if (stored?.tuning_sha256 !== model.tuning_sha256) return false;
        await catalog.addAnswerCounts(id, dayOf(now_ms), batch);
        return true;
      });
      if (!is_there) {
        if (this.#models.get(id) === model) this.#models.delete(id);
        return;
      }
      for (const count of batch) add(model, { ...count, answers: -count.answers });
      written += batch.length;
    } while (written < counts.length);
    model.index = largestIndex(await answerDrifts(store.catalog, id, () => model.entries, now_ms));
  }
}

function add({ waiting }: CountedModel, { question, class: at, answers }: AnswerCount): void {
  const by_class = waiting.get(question) ?? [];
  by_class[at] = (by_class[at] ?? 0) + answers;
  waiting.set(question, by_class);
}

function waitingOf({ waiting }: CountedModel): readonly AnswerCount[] {
  return [...waiting].flatMap(([question, by_class]) =>
    by_class.flatMap((answers, at) => (answers > 0 ? [{ question, class: at, answers }] : [])),
  );
}
