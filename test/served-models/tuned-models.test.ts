import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import { Value } from '@sinclair/typebox/value';
import fc from 'fast-check';
import { openDatabase } from '../../db/sqlite/connection.ts';
import { answerCounts } from '../../db/sqlite/schema.ts';
import { OPERATOR } from '../../src/access/actor.ts';
import {
  addOpenModel,
  closeModel,
  openModel,
  removeModel,
  setModelAlias,
} from '../../src/catalog/changes.ts';
import { ModelListSchema } from '../../src/http/schemas.ts';
import { classesOf, MODES, type Mode, type Question } from '../../src/questions/question.ts';
import { correctionOf, ModelRemoved, tuningSha256 } from '../../src/served-models/tunings.ts';
import { Tuning } from '../../src/tuning/tuning.ts';
import type { TuningContent } from '../../src/tuning/tuning-file.ts';
import { expectDecision, expectError } from '../contract/expectations.ts';
import { booksOf, closeAudited } from '../support/money.ts';
import { rejection } from '../support/rejection.ts';
import { ALL_TYPES, post, SMALL_REQUEST } from '../support/requests.ts';
import {
  addAccount,
  EMBEDDED_MODEL,
  IS_ON_POSTGRES,
  MODEL_TEST_TIMEOUT_MS,
  startTestService,
  type TestAccount,
  type TestService,
} from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { REFUND, strongTuning, TOPIC, topic, tuningOf, vectorEntry } from '../tuning/strong-tuning.ts';

setDefaultTimeout(2 * MODEL_TEST_TIMEOUT_MS);

const { refund, team, urgency } = ALL_TYPES;
const UNTUNED = { team, urgency };
let service: TestService;
let own: TestAccount;
let stranger: TestAccount;
beforeAll(async () => {
  service = await startTestService({ embedded: true });
  own = await addAccount(service);
  stranger = await addAccount(service);
  await addTuned('support-1', own.organization_id);
});
afterAll(() => closeAudited(service));

async function tuningText(more: Partial<TuningContent['header']> = {}): Promise<string> {
  return strongTuning((await EMBEDDED_MODEL.engine()).facts, more);
}

async function addTuned(
  id: string,
  organization_id: string | null,
  tuning?: string,
  to = service,
): Promise<void> {
  const text = tuning ?? (await tuningText());
  await addOpenModel(
    to.accounts,
    OPERATOR,
    {
      id,
      kind: 'decision',
      description: 'Tuned.',
      context_tokens: 16_384,
      input_price_micros_per_million_tokens: 2_000_000,
    },
    { base_id: 'decision-1', tuning_sha256: tuningSha256(text), organization_id, tuning: text },
  );
}

const decide = async (model: string, questions: object, more: object = {}) =>
  await expectDecision(await post(service, own.key, { ...SMALL_REQUEST, model, questions, ...more }));

async function idsFor({ key }: TestAccount): Promise<readonly string[]> {
  const response = await service.fetch('/v1/models', { headers: { authorization: `Bearer ${key}` } });
  const body: unknown = await response.json();
  if (!Value.Check(ModelListSchema, body)) throw new Error('This is no model list.');
  return body.data.map(({ id }) => id);
}

describe('a tuned model', () => {
  test('corrects its questions, with their options in any order, at its own price', async () => {
    const tuned = await decide('support-1', { refund, topic: topic(['technical', 'sales', 'billing']) });
    expect(tuned.model).toBe('support-1');
    expect(tuned.answers.refund).toMatchObject({ noul: 0 });
    expect(tuned.answers.topic).toMatchObject({ choice: 'sales' });
    const base = await decide('decision-1', { refund, topic: topic(['technical', 'sales', 'billing']) });
    expect(base.answers.refund).not.toMatchObject({ noul: 0 });
    expect(base.answers.topic).not.toMatchObject({ choice: 'sales' });
    expect(tuned.usage.input_tokens).toBe(base.usage.input_tokens);
    expect(tuned.usage.cost_usd).toBeCloseTo((2 * tuned.usage.input_tokens) / 1_000_000, 6);
  });

  test('answers every other question as its base does, and so every question in the other mode', async () => {
    const [base, tuned] = [await decide('decision-1', UNTUNED), await decide('support-1', UNTUNED)];
    expect(tuned.answers).toEqual(base.answers);
    const beside = await decide('support-1', { ...UNTUNED, refund });
    expect(beside.answers).toMatchObject(base.answers);
    const alone = await decide('support-1', { refund });
    expect(alone.answers.refund).toEqual(beside.answers.refund);
    const questions = { refund, team };
    const consistent = { mode: 'consistent' };
    expect((await decide('support-1', questions, consistent)).answers).toEqual(
      (await decide('decision-1', questions, consistent)).answers,
    );
  });

  test('with vectors gives each question the same bits, whatever else is asked, in both modes', async () => {
    const engine = await EMBEDDED_MODEL.engine();
    const questions: readonly Question[] = [
      REFUND,
      TOPIC,
      { ...REFUND, instructions: 'Is it urgent?' },
      { ...TOPIC, instructions: 'Which team?' },
    ];
    const tuned = [REFUND, TOPIC].flatMap((question) =>
      MODES.map((mode) => vectorEntry(question, classesOf(question).length, mode)),
    );
    const tuning = Tuning.read(tuningOf(engine.facts, tuned));
    const scoresOf = async (asked: readonly Question[], mode: Mode, is_tuned: boolean) => {
      const plan = await engine.plan({ state: SMALL_REQUEST.state, questions: asked, mode });
      const correction = is_tuned ? correctionOf(tuning, plan, () => {}) : undefined;
      return await engine.evaluate(plan, { scope: 'test', correction });
    };
    for (const mode of MODES) {
      const alone = await Promise.all(
        questions.map(async (question) => (await scoresOf([question], mode, true))[0] ?? []),
      );
      const base = await scoresOf(questions, mode, false);
      expect(alone[0]).not.toEqual(base[0] ?? []);
      expect(alone[1]).not.toEqual(base[1] ?? []);
      expect(alone.slice(2)).toEqual(base.slice(2));
      await fc.assert(
        fc.asyncProperty(fc.shuffledSubarray([0, 1, 2, 3], { minLength: 2 }), async (order) => {
          const asked = order.flatMap((at) => questions[at] ?? []);
          const expected = order.map((at) => alone[at] ?? []);
          expect(await scoresOf(asked, mode, true)).toEqual(expected);
        }),
        { numRuns: 4 },
      );
    }
  });

  test('has the weights of its base: there is no second life', async () => {
    await decide('support-1', { refund });
    expect(service.service.services.models.states().map(({ id }) => id)).toEqual(['decision-1']);
  });

  test('is there for its organization only, by its id and by an alias', async () => {
    await setModelAlias(service.accounts, OPERATOR, { alias: 'support', model_id: 'support-1' });
    expect(await idsFor(own)).toContain('support-1');
    expect(await idsFor(stranger)).not.toContain('support-1');
    for (const model of ['support-1', 'support']) {
      const refused = await post(service, stranger.key, { ...SMALL_REQUEST, model });
      const { error } = await expectError(refused, 'model_not_found', 'model');
      expect(error.message).not.toContain('support');
      const shown = await service.fetch(`/v1/models/${model}`, {
        headers: { authorization: `Bearer ${stranger.key}` },
      });
      expect(shown.status).toBe(404);
      expect((await post(service, own.key, { ...SMALL_REQUEST, model })).status).toBe(200);
    }
  });

  test('without an organization is there for all', async () => {
    await addTuned('support-2', null);
    expect(await idsFor(stranger)).toContain('support-2');
    expect((await post(service, stranger.key, { ...SMALL_REQUEST, model: 'support-2' })).status).toBe(200);
  });

  test('of other weights than are loaded answers nothing and charges nothing, and its base goes on', async () => {
    await addTuned('foreign', null, await tuningText({ weights_sha256: 'f'.repeat(64) }));
    const { credit_micros } = await booksOf(service, own);
    const refused = await post(service, own.key, { ...SMALL_REQUEST, model: 'foreign' });
    await expectError(refused, 'model_unavailable');
    expect(await booksOf(service, own)).toMatchObject({ credit_micros, held_micros: 0 });
    await decide('decision-1', { refund });
  });

  test('answers a request that waits while it is removed, and is gone for the next one', async () => {
    await addTuned('support-3', null);
    const { catalog, models } = service.service.services;
    const row = await catalog.findLive('support-3', own.organization_id);
    const entry = row === undefined ? null : await catalog.served(row);
    if (entry === null || !('base' in entry)) throw new Error('support-3 is not served.');
    using served = models.for(entry);
    using late = models.for({ ...entry, id: 'support-4' });
    const plan = await served.plan({ state: SMALL_REQUEST.state, questions: [REFUND], mode: 'fast' });
    await removeModel(service.accounts, OPERATOR, 'support-3');
    models.follow(await catalog.listDecisionModels());
    using of_base = models.for(entry.base);
    const { scores: untuned } = await of_base.answer(plan, { scope: 'test' });
    expect((await served.answer(plan, { scope: 'test' })).scores).not.toEqual(untuned);
    expect(await rejection(late.answer(plan, { scope: 'test' }))).toBeInstanceOf(ModelRemoved);
  });

  test.skipIf(IS_ON_POSTGRES)('has its last answers counted when the service stops', async () => {
    const directory = temporaryDirectory();
    const stopped = await startTestService({ embedded: true, directory: directory.path });
    const account = await addAccount(stopped);
    await addTuned('support-1', null, undefined, stopped);
    const body = { ...SMALL_REQUEST, model: 'support-1', questions: { refund, team } };
    expect((await post(stopped, account.key, body)).status).toBe(200);
    await stopped.close();
    const db = openDatabase(join(directory.path, 'tds.sqlite'));
    expect(db.select().from(answerCounts).all()).toMatchObject([{ question: 0, class: 0, answers: 1 }]);
    db.$client.close();
    directory.remove();
  });

  test('is closed with its base, and leaves no tuning when it is removed', async () => {
    await closeModel(service.accounts, OPERATOR, 'decision-1');
    const refused = await post(service, own.key, { ...SMALL_REQUEST, model: 'support-1' });
    await expectError(refused, 'model_not_found', 'model');
    await openModel(service.accounts, OPERATOR, 'decision-1');
    await decide('support-1', { refund });
    await removeModel(service.accounts, OPERATOR, 'support-2');
    expect(await service.accounts.store.catalog.findTuning('support-2')).toBeUndefined();
  });
});
