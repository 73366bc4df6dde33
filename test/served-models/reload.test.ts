import { afterEach, beforeEach, expect, setDefaultTimeout, test } from 'bun:test';
import { auditLogEntries } from '../../db/sqlite/schema.ts';
import { OPERATOR } from '../../src/access/actor.ts';
import { closeModel, setModelPrice } from '../../src/catalog/changes.ts';
import { type ReloadMemory, ReloadRefused, reloadModel } from '../../src/served-models/reload.ts';
import { RecordedLog } from '../support/problems.ts';
import { post, SMALL_REQUEST } from '../support/requests.ts';
import {
  addAccount,
  lifecycleOf,
  MODEL_TEST_TIMEOUT_MS,
  startTestService,
  type TestService,
} from '../support/service.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

let service: TestService;
beforeEach(async () => {
  service = await startTestService();
});
afterEach(() => service.close());

function reload(memory: ReloadMemory | null = null, unservable: string | null = null): Promise<void> {
  const { store, clock, models } = service.service.services;
  return reloadModel(
    {
      store,
      clock,
      models,
      memoryFor: () => Promise.resolve(memory),
      tryWeights: () => Promise.resolve(unservable),
    },
    { actor: OPERATOR, id: 'decision-1', weights: null },
  );
}

test('without the memory for both sets nothing is loaded, and one sentence says so', async () => {
  const before = lifecycleOf(service.service);
  const refused = await reload({ needed_bytes: 92_000_001, free_bytes: 92_000_000 }).catch(
    (error: unknown) => error,
  );
  expect(refused).toBeInstanceOf(ReloadRefused);
  expect(refused).toMatchObject({
    message:
      'Both sets of weights must be in memory for a moment, and decision-1 needs 93 MB of which 92 MB are free: make room, or restart the service instead.',
  });
  expect(lifecycleOf(service.service)).toBe(before);
  await reload({ needed_bytes: 92_000_000, free_bytes: 92_000_000 });
  expect(lifecycleOf(service.service)).not.toBe(before);
});

test('weights that were found unservable elsewhere are not loaded here', async () => {
  const before = lifecycleOf(service.service);
  await expect(reload(null, 'They end the process.')).rejects.toThrow('They end the process.');
  expect(lifecycleOf(service.service)).toBe(before);
});

test('the price may change meanwhile, and a model that is closed is not reloaded', async () => {
  const { store } = service.service.services;
  await Promise.all([reload(), setModelPrice(service.accounts, OPERATOR, 'decision-1', 7)]);
  expect(await store.catalog.findModel('decision-1')).toMatchObject({
    input_price_micros_per_million_tokens: 7,
  });
  await closeModel(service.accounts, OPERATOR, 'decision-1');
  await expect(reload()).rejects.toThrow('decision-1 is not open.');
});

test('a service that is being stopped reloads nothing', async () => {
  const { key } = await addAccount(service);
  expect((await post(service, key, SMALL_REQUEST)).status).toBe(200);
  service.service.drain();
  const refused = service.service.reloadModel({ actor: OPERATOR, id: 'decision-1', weights: null });
  await expect(refused).rejects.toThrow('The service is being stopped.');
});

test('weights that were loaded anew are in the audit log with who did that', async () => {
  const entries = () => service.db.select().from(auditLogEntries).all();
  const before = entries().length;
  await reload({ needed_bytes: 2, free_bytes: 1 }).catch(() => undefined);
  expect(entries()).toHaveLength(before);
  await service.service.reloadModel({ actor: OPERATOR, id: 'decision-1', weights: null });
  expect(entries().slice(before)).toMatchObject([
    { action: 'model.weights', object_id: 'decision-1', user_id: null, organization_id: null },
  ]);
});

test('a row that cannot be written is not blamed on the weights, and its cause is reported', async () => {
  await service.close();
  const recorded = new RecordedLog();
  service = await startTestService({ log: recorded.log });
  const before = lifecycleOf(service.service);
  service.db.$client.run(
    "CREATE TEMP TRIGGER refuse BEFORE UPDATE ON models BEGIN SELECT RAISE(ABORT, 'no row'); END",
  );
  const failed = await service.service
    .reloadModel({ actor: OPERATOR, id: 'decision-1', weights: null })
    .catch((error: unknown) => error);
  expect(failed).not.toBeInstanceOf(ReloadRefused);
  expect(failed).toMatchObject({ name: 'SQLiteError' });
  expect(lifecycleOf(service.service)).toBe(before);
  expect(await recorded.problems()).toMatchObject([
    {
      step: 'model_reload',
      model: 'decision-1',
      request_id: null,
      error: expect.stringMatching(/^SQLiteError/),
    },
  ]);
  expect(await recorded.lines()).toContainEqual(
    expect.objectContaining({
      msg: 'a model was not loaded anew: the weights before stay',
      model: 'decision-1',
    }),
  );
  expect(recorded.text).not.toContain('no row');
});

test('a warning about the new weights, as of a chat template that cannot be used, is in the log', async () => {
  await service.close();
  const recorded = new RecordedLog();
  const warning = 'The file has no chat template that can be used.';
  let loads = 0;
  service = await startTestService({
    log: recorded.log,
    openEngine: (engine) => {
      loads += 1;
      return loads === 1 ? engine : { ...engine, facts: { ...engine.facts, warning } };
    },
  });
  await service.service.reloadModel({ actor: OPERATOR, id: 'decision-1', weights: null });
  expect(await recorded.lines()).toContainEqual(
    expect.objectContaining({ level: 'warn', msg: warning, model: 'decision-1' }),
  );
});
