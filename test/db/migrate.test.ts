import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { migrate } from 'drizzle-orm/bun-sqlite/migrator';
import fc from 'fast-check';
import { type Migrations, SchemaRefused } from '../../db/schema-state.ts';
import { connectDatabase } from '../../db/sqlite/connection.ts';
import { bringUpToDate, schemaState, schemaVersion } from '../../db/sqlite/migrate.ts';
import { propertySeed } from '../ledger/support.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

/** Migrations of a program; `branch` tells those apart that another program has at the same place. */
function migrations(count: number, branch = 'main'): Migrations {
  return Array.from({ length: count }, (_, index) => ({
    sql: [
      `CREATE TABLE step_${index} (id INTEGER PRIMARY KEY) STRICT`,
      `INSERT INTO step_${index} (id) VALUES (${index})`,
    ],
    folderMillis: 1_000 + index,
    hash: `${branch}_${index}`,
    bps: true,
  }));
}

test('whatever a database has and a program knows: it is taken, brought up to date or refused, and never changed by a refusal', () => {
  const count = fc.nat({ max: 5 });
  fc.assert(
    fc.property(count, fc.integer({ min: 1, max: 5 }), count, (applied, known, common) => {
      const directory = temporaryDirectory();
      const { $client: client } = connectDatabase(join(directory.path, 'tds.sqlite'));
      try {
        const made_by = [
          ...migrations(Math.min(common, applied)),
          ...migrations(applied, 'other').slice(common),
        ];
        if (applied > 0) bringUpToDate(client, made_by);
        const program = migrations(known);
        const is_known = applied <= known && applied <= common;
        if (is_known) {
          expect(schemaState(client, program)).toBe(
            applied === 0 ? 'new' : applied < known ? 'older' : 'current',
          );
          bringUpToDate(client, program);
          expect(schemaState(client, program)).toBe('current');
        } else {
          expect(() => schemaState(client, program)).toThrow(SchemaRefused);
          expect(() => bringUpToDate(client, program)).toThrow(SchemaRefused);
        }
        const version = is_known ? known : applied;
        expect(schemaVersion(client)).toBe(version);
        const tables = client
          .query<{ name: string }, []>(
            "SELECT name FROM sqlite_schema WHERE name GLOB 'step_*' ORDER BY name",
          )
          .all();
        expect(tables.map(({ name }) => name)).toEqual(
          Array.from({ length: version }, (_, index) => `step_${index}`),
        );
      } finally {
        client.close();
        directory.remove();
      }
    }),
    { numRuns: 100, seed: propertySeed('migrations') },
  );
});

test('a migration that fails leaves nothing of itself, nor of those before it', () => {
  const directory = temporaryDirectory();
  const { $client: client } = connectDatabase(join(directory.path, 'tds.sqlite'));
  bringUpToDate(client, migrations(1));
  const [first, second, third] = migrations(3);
  if (first === undefined || second === undefined || third === undefined) throw new Error('three migrations');
  const failing = [first, second, { ...third, sql: [...third.sql, 'INSERT INTO missing (id) VALUES (1)'] }];
  expect(() => bringUpToDate(client, failing)).toThrow('no such table');
  expect(schemaState(client, failing)).toBe('older');
  expect(schemaVersion(client)).toBe(1);
  expect(client.query("SELECT count(*) AS n FROM sqlite_schema WHERE name GLOB 'step_*'").get()).toEqual({
    n: 1,
  });
  client.close();
  directory.remove();
});

test('a migration can build a table anew that others refer to, and cannot leave a reference to nothing', () => {
  const directory = temporaryDirectory();
  const path = join(directory.path, 'tds.sqlite');
  const { $client: client } = connectDatabase(path);
  const [first] = migrations(1);
  if (first === undefined) throw new Error('one migration');
  const tables = {
    ...first,
    sql: [
      'CREATE TABLE parents (id INTEGER PRIMARY KEY) STRICT',
      'CREATE TABLE children (parent INTEGER REFERENCES parents(id) ON DELETE CASCADE) STRICT',
      'INSERT INTO parents (id) VALUES (1), (2)',
      'INSERT INTO children (parent) VALUES (1), (2)',
    ],
  };
  bringUpToDate(client, [tables]);
  const rebuild = (where: string) => ({
    ...first,
    hash: 'rebuild',
    folderMillis: 2_000,
    sql: [
      'CREATE TABLE parents_new (id INTEGER PRIMARY KEY, note TEXT) STRICT',
      `INSERT INTO parents_new (id, note) SELECT id, NULL FROM parents ${where}`,
      'DROP TABLE parents',
      'ALTER TABLE parents_new RENAME TO parents',
    ],
  });
  expect(() => bringUpToDate(client, [tables, rebuild('WHERE id = 1')])).toThrow(SchemaRefused);
  bringUpToDate(client, [tables, rebuild('')]);
  expect(client.query('SELECT parent FROM children').all()).toEqual([{ parent: 1 }, { parent: 2 }]);
  expect(client.query('PRAGMA foreign_keys').get()).toEqual({ foreign_keys: 1 });
  client.close();
  directory.remove();
});

test('migrations of indexes alone do not read all rows for references, which the audit checks', () => {
  const directory = temporaryDirectory();
  const { $client: client } = connectDatabase(join(directory.path, 'tds.sqlite'));
  const [first, second, third] = migrations(3);
  if (first === undefined || second === undefined || third === undefined) throw new Error('three migrations');
  const tables = {
    ...first,
    sql: [
      'CREATE TABLE parents (id INTEGER PRIMARY KEY) STRICT',
      'CREATE TABLE children (parent INTEGER REFERENCES parents(id)) STRICT',
    ],
  };
  const indexes = { ...second, sql: ['CREATE INDEX children_parent ON children (parent)'] };
  bringUpToDate(client, [tables]);
  client.run('PRAGMA foreign_keys = OFF');
  client.run('INSERT INTO children (parent) VALUES (1)');
  bringUpToDate(client, [tables, indexes]);
  expect(schemaVersion(client)).toBe(2);
  expect(() => bringUpToDate(client, [tables, indexes, third])).toThrow(SchemaRefused);
  client.close();
  directory.remove();
});

test('a database of another program is refused, and so is one whose migrations were never noted', () => {
  const directory = temporaryDirectory();
  const path = join(directory.path, 'tds.sqlite');
  const { $client: client } = connectDatabase(path);
  client.run('CREATE TABLE notes (text TEXT)');
  expect(() => schemaState(client)).toThrow(SchemaRefused);
  expect(() => bringUpToDate(client)).toThrow(SchemaRefused);
  expect(client.query('SELECT name FROM sqlite_schema').all()).toEqual([{ name: 'notes' }]);
  client.close();
  directory.remove();
});

test("a database that drizzle's own migrator made, as earlier versions did, is current", () => {
  const directory = temporaryDirectory();
  const db = connectDatabase(join(directory.path, 'tds.sqlite'));
  migrate(db, { migrationsFolder: join(import.meta.dir, '../../db/sqlite/migrations') });
  expect(schemaState(db.$client)).toBe('current');
  db.$client.close();
  directory.remove();
});
