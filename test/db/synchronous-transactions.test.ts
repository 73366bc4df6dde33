import { expect, test } from 'bun:test';
import { join } from 'node:path';

const ROOT = join(import.meta.dir, '../..');
/**
 * `db.transaction(async …)` and `transact(db, async …)` commit at their first `await`: a rollback after it is lost.
 * Those of a `Store` are made for it.
 */
const ASYNCHRONOUS_TRANSACTION = /(?<!\bstore\.)\b(?:transaction|transact)\s*\((?:[^()]*,)?\s*async\b/;

/** Transactions of PostgreSQL, of stores and of an `Executor` are asynchronous. */
const ASYNCHRONOUS_FOLDERS = ['db/postgres/', 'db/records/', 'test/postgres/', 'test/store/'];
const OF_POSTGRES = /from '[^']*\/db\/postgres\//;

test('the pattern finds asynchronous transactions, and only them', () => {
  for (const code of [
    'db.transaction(async () => {',
    'transact(db, async () => 1)',
    'transaction(\n  async tx => 1)',
  ]) {
    expect(code).toMatch(ASYNCHRONOUS_TRANSACTION);
  }
  for (const code of [
    'transact(db, () => ledger.hold(request)); void (async () => 1)()',
    'context.store.transaction(async (records) => 1)',
  ]) {
    expect(code).not.toMatch(ASYNCHRONOUS_TRANSACTION);
  }
});

test('no source file has an asynchronous transaction of SQLite', async () => {
  const offenders: string[] = [];
  for (const folder of ['src', 'db', 'native', 'bench', 'test']) {
    for await (const path of new Bun.Glob(`${folder}/**/*.ts`).scan(ROOT)) {
      if (join(ROOT, path) === import.meta.path) continue;
      if (ASYNCHRONOUS_FOLDERS.some((start) => path.startsWith(start))) continue;
      const text = await Bun.file(join(ROOT, path)).text();
      if (ASYNCHRONOUS_TRANSACTION.test(text) && !OF_POSTGRES.test(text)) offenders.push(path);
    }
  }
  expect(offenders).toEqual([]);
});
