import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { NOT_TUNED } from '../../src/catalog/catalog.ts';
import type { Question } from '../../src/questions/question.ts';
import { AnswerCounts } from '../../src/served-models/answer-counts.ts';
import { answerDrifts } from '../../src/served-models/answer-drifts.ts';
import type { Store } from '../../src/store/store.ts';
import { DAY_MS } from '../../src/time/clock.ts';
import { DATABASES, type OpenDatabase } from '../store/databases.ts';
import { MovableClock } from '../support/clock.ts';
import { REFUND, shiftEntry } from '../tuning/strong-tuning.ts';
import { choiceOf } from '../tuning/support.ts';

const TUNED = { id: 'support-1', tuning_sha256: 'a'.repeat(64) };
/** Six questions with so many options that their counts are more than one write takes. */
const LARGE: readonly Question[] = Array.from({ length: 6 }, (_, at) => ({
  ...choiceOf(Array.from({ length: 200 }, (_, option) => `option ${option}`)),
  instructions: `Which one of ${at}?`,
}));
const ENTRIES = [REFUND, ...LARGE].map((question) =>
  shiftEntry(question, question.type === 'choice' ? question.options.map(() => 0) : [0, 0]),
);

describe.each(DATABASES)('counts of answers in $name', ({ open }) => {
  let database: OpenDatabase;
  let clock: MovableClock;
  let reported: unknown[];
  beforeEach(async () => {
    database = await open();
    clock = MovableClock.stopped();
    reported = [];
    await addModel();
  });
  afterEach(() => database.close());

  const countsOn = (store: Store) =>
    new AnswerCounts({ store, clock, problems: { report: (problem) => reported.push(problem) } });

  async function addModel(tuning_sha256 = TUNED.tuning_sha256): Promise<void> {
    await database.store.catalog.insertModel({
      ...{ id: TUNED.id, kind: 'decision', status: 'live', description: '', context_tokens: 1 },
      ...{ input_price_micros_per_million_tokens: 1, released_at_ms: 1 },
      ...{ weights: null, weights_sha256: null, profile: null, upstreams: null },
      ...{ ...NOT_TUNED, tuning_sha256 },
    });
  }

  function note(counts: AnswerCounts, answers: number, { question = 0, answer_class = 0 } = {}): void {
    for (let at = 0; at < answers; at += 1) counts.note(TUNED, ENTRIES, question, answer_class);
  }

  const drifts = () => answerDrifts(database.store.catalog, TUNED.id, () => ENTRIES, clock.now_ms());

  test('of several nodes add up, and move away from the tuning', async () => {
    const [one, other] = [countsOn(database.store), countsOn(await database.another())];
    note(one, 60);
    note(other, 39);
    await Promise.all([one.flush(), other.flush()]);
    await one.flush();
    expect([one.drifts(), await drifts()]).toEqual([[], []]);
    note(other, 1);
    await Promise.all([other.flush(), other.flush()]);
    await one.flush();
    const [drift] = await drifts();
    expect(drift).toMatchObject({ now: { answers: 100, shares: [1, 0] }, at_tuning: { shares: [0.5, 0.5] } });
    expect(drift?.index).toBeGreaterThan(1);
    expect(one.drifts()).toEqual([{ model: TUNED.id, index: drift?.index ?? 0 }]);
    expect(reported).toEqual([]);
  });

  test('are compared after a restart before the model answers again, and go on from there', async () => {
    const before = countsOn(database.store);
    note(before, 100);
    await before.flush();
    const after = countsOn(database.store);
    const read: string[] = [];
    const readEntries = ({ id }: { readonly id: string }) => {
      read.push(id);
      return Promise.resolve(ENTRIES);
    };
    const silent = { id: 'silent-1', tuning_sha256: 'c'.repeat(64) };
    await after.resume(() => Promise.resolve([silent, TUNED]), readEntries);
    expect([after.drifts(), read]).toEqual([before.drifts(), [TUNED.id]]);
    expect(after.drifts()).toHaveLength(1);
    note(after, 100, { answer_class: 1 });
    await after.flush();
    expect(after.drifts()).toEqual([{ model: TUNED.id, index: 0 }]);
    await after.resume(
      () => Promise.reject(new Error('away')),
      () => Promise.reject(new Error('unread')),
    );
    await countsOn(database.store).resume(
      () => Promise.resolve([TUNED]),
      () => Promise.reject(new Error('unread')),
    );
    expect(reported).toEqual([
      expect.objectContaining({ step: 'answer_counts', error: new Error('away') }),
      expect.objectContaining({ step: 'answer_counts', model: TUNED.id, error: new Error('unread') }),
    ]);
  });

  test('that are as at the tuning have an index of 0', async () => {
    const counts = countsOn(database.store);
    note(counts, 50);
    note(counts, 50, { answer_class: 1 });
    await counts.flush();
    expect(counts.drifts()).toEqual([{ model: TUNED.id, index: 0 }]);
  });

  test('are compared for seven days', async () => {
    const counts = countsOn(database.store);
    note(counts, 100);
    await counts.flush();
    clock.advance(6 * DAY_MS);
    await counts.flush();
    expect(counts.drifts()).toHaveLength(1);
    clock.advance(DAY_MS);
    await counts.flush();
    expect(counts.drifts()).toEqual([]);
  });

  test('are written in several steps, each answer once, also where a step fails', async () => {
    const counts = countsOn(database.store);
    LARGE.forEach((_, question) => {
      for (let answer_class = 0; answer_class < 200; answer_class += 1) {
        note(counts, 2, { question: question + 1, answer_class });
      }
    });
    await database.run('ALTER TABLE answer_counts RENAME TO away');
    await counts.flush();
    expect(reported).toEqual([
      expect.objectContaining({ step: 'answer_counts', request_id: null, model: TUNED.id }),
    ]);
    await database.run('ALTER TABLE away RENAME TO answer_counts');
    note(counts, 1, { question: 6, answer_class: 199 });
    await counts.flush();
    await counts.flush();
    const stored = await database.store.catalog.answerCounts(TUNED.id, '');
    expect(stored).toHaveLength(LARGE.length * 200);
    expect(stored.filter(({ answers }) => answers !== 2)).toEqual([{ question: 6, class: 199, answers: 3 }]);
  });

  test('of a model that is removed are dropped, also where another has its id now', async () => {
    const counts = countsOn(database.store);
    note(counts, 100);
    await counts.flush();
    note(counts, 100);
    await database.store.catalog.deleteModel(TUNED.id);
    await addModel('b'.repeat(64));
    await counts.flush();
    expect(await database.count('answer_counts')).toBe(0);
    expect(counts.drifts()).toEqual([]);
    expect(reported).toEqual([]);
  });
});
