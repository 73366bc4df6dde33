import { afterEach, beforeEach, expect, test } from 'bun:test';
import { auditLogEntries } from '../../db/sqlite/schema.ts';
import { type Actor, OPERATOR } from '../../src/access/actor.ts';
import { seedCatalog } from '../../src/catalog/catalog.ts';
import { Reloads } from '../../src/served-models/console-reloads.ts';
import { outcome } from '../accounts/everyone.ts';
import { TestClock, temporaryDatabase } from '../accounts/support.ts';
import { contextOn } from '../support/context.ts';

let file: ReturnType<typeof temporaryDatabase>;
let clock: TestClock;
let asked: PromiseWithResolvers<void>[];
let reloads: Reloads;
beforeEach(async () => {
  file = temporaryDatabase();
  clock = new TestClock();
  asked = [];
  const context = contextOn(file.db, clock);
  await context.store.transaction(({ catalog }) => seedCatalog(catalog));
  reloads = new Reloads(context, () => {
    const reload = Promise.withResolvers<void>();
    asked.push(reload);
    return reload.promise;
  });
});
afterEach(() => file.remove());

const status = () => reloads.statusOf(OPERATOR, 'decision-1');

test('a reload that goes on is not begun again, and one that ended is', async () => {
  expect(status()).toBeNull();
  await Promise.all([reloads.begin(OPERATOR, 'decision-1'), reloads.begin(OPERATOR, 'decision-1')]);
  await reloads.begin(OPERATOR, 'decision-1');
  expect(asked).toHaveLength(1);
  expect(file.db.select().from(auditLogEntries).all()).toMatchObject([{ action: 'model.reload' }]);
  expect(status()).toMatchObject({ state: 'running', ended_at_ms: null });
  clock.advance(5);
  asked[0]?.resolve();
  await asked[0]?.promise;
  expect(status()).toMatchObject({ state: 'done', ended_at_ms: clock.now_ms(), error: null });
  await reloads.begin(OPERATOR, 'decision-1');
  expect(asked).toHaveLength(2);
  asked[1]?.resolve();
});

test('one that failed says why, and can be begun again', async () => {
  await reloads.begin(OPERATOR, 'decision-1');
  asked[0]?.reject(new Error('The file is gone.'));
  await asked[0]?.promise.catch(() => undefined);
  expect(status()).toMatchObject({ state: 'failed', error: 'The file is gone.' });
  await reloads.begin(OPERATOR, 'decision-1');
  expect(status()).toMatchObject({ state: 'running', error: null });
  asked[1]?.resolve();
});

test('one that cannot be written down is not begun, and what was known stays', async () => {
  await reloads.begin(OPERATOR, 'decision-1');
  asked[0]?.resolve();
  await asked[0]?.promise;
  const before = status();
  file.db.$client.run(
    "CREATE TEMP TRIGGER refuse BEFORE INSERT ON trail_entries BEGIN SELECT RAISE(ABORT, 'no entry'); END",
  );
  await expect(reloads.begin(OPERATOR, 'decision-1')).rejects.toThrow('no entry');
  expect(asked).toHaveLength(1);
  expect(status()).toEqual(before);
  expect(await outcome(() => reloads.begin(OPERATOR, 'none'))).toBe('not_found');
  expect(reloads.statusOf(OPERATOR, 'none')).toBeNull();
});

test('reloads are for the operator only', async () => {
  const user: Actor = { kind: 'user', user_id: 'user_1' };
  expect(await outcome(() => reloads.begin(user, 'decision-1'))).toBe('permission_denied');
  expect(() => reloads.statusOf(user, 'decision-1')).toThrow();
  expect(asked).toEqual([]);
});
