import { expect, setDefaultTimeout, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runAudit } from '../../db/sqlite/audit.ts';
import { openDatabase } from '../../db/sqlite/connection.ts';
import { post, SMALL_REQUEST } from '../support/requests.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, startTestService } from '../support/service.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

test('what the model refuses because it is being closed leaves no hold open', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'tds-test-'));
  const closed = Promise.withResolvers<never>();
  closed.promise.catch(() => {});
  const at_the_model = Promise.withResolvers<void>();
  const warm_ups = 2;
  let evaluations = 0;
  const service = await startTestService({
    directory,
    openEngine: (engine) => {
      return {
        ...engine,
        // The real engine, until a request is at it: that one waits for the close, as behind a long queue.
        evaluate: (plan, options) => {
          evaluations += 1;
          if (evaluations <= warm_ups) return engine.evaluate(plan, options);
          at_the_model.resolve();
          return closed.promise;
        },
        close: () => {
          closed.reject(new Error('closed'));
          return Promise.resolve();
        },
      };
    },
  });
  await service.service.loadModels();
  const account = await addAccount(service);
  const answer = post(service, account.key, SMALL_REQUEST).catch(() => null);
  await at_the_model.promise;
  await service.service.close();
  service.db.$client.close();
  await service.server.stop();
  await answer;

  const db = openDatabase(join(directory, 'tds.sqlite'));
  expect(runAudit(db).open_holds).toBe(0);
  db.$client.close();
  rmSync(directory, { recursive: true, force: true });
});
