import type { CatalogRecords } from '../store/catalog-records.ts';
import { DAY_MS } from '../time/clock.ts';
import { dayOf } from '../time/days.ts';
import { type AnswerDistribution, stabilityIndex } from '../tuning/stability-index.ts';
import type { TuningEntry } from '../tuning/tuning-file.ts';

/** The days that are compared with the tuning: today and the six before. */
const DAYS = 7;
/** A question with fewer answers is not compared. */
const ANSWERS_MIN = 100;

/** A tuned question, whose answers of the last seven days are compared with those at its tuning. */
export interface AnswerDrift {
  readonly entry: TuningEntry;
  readonly at_tuning: AnswerDistribution;
  readonly now: AnswerDistribution;
  /** As `stabilityIndex` returns it. */
  readonly index: number;
}

/**
 * Returns the questions of a tuned model with enough written answers in the last seven days, in the order of its tuning.
 * The tuning is read where there are any answers. Rejects as the store and `readEntries` do.
 */
export async function answerDrifts(
  catalog: Pick<CatalogRecords, 'answerCounts'>,
  model_id: string,
  readEntries: () => readonly TuningEntry[] | Promise<readonly TuningEntry[]>,
  now_ms: number,
): Promise<readonly AnswerDrift[]> {
  const counts = await catalog.answerCounts(model_id, firstComparedDay(now_ms));
  if (counts.length === 0) return [];
  const by_question = Map.groupBy(counts, ({ question }) => question);
  return (await readEntries()).flatMap((entry, question) => {
    const by_class = new Map(by_question.get(question)?.map((count) => [count.class, count.answers]));
    const answers = by_class.values().reduce((sum, count) => sum + count, 0);
    if (answers < ANSWERS_MIN) return [];
    const at_tuning = { shares: entry.answer_shares, answers: entry.labels };
    const now = { shares: entry.answer_shares.map((_, at) => (by_class.get(at) ?? 0) / answers), answers };
    return [{ entry, at_tuning, now, index: stabilityIndex(at_tuning, now) }];
  });
}

/** Returns the largest index; null where no question is compared. */
export function largestIndex(drifts: readonly AnswerDrift[]): number | null {
  return drifts.length === 0 ? null : Math.max(...drifts.map(({ index }) => index));
}

/** Returns the UTC day from which on answers are compared; the counts of earlier ones can be deleted. */
export function firstComparedDay(now_ms: number): string {
  return dayOf(now_ms - (DAYS - 1) * DAY_MS);
}
