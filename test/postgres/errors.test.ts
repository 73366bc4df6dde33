import { describe, expect, test } from 'bun:test';
import { chownSync, statSync } from 'node:fs';
import { SQL } from 'bun';
import { sql } from 'drizzle-orm';
import {
  AddressRefused,
  connectPostgres,
  databasePlace,
  type PgConnection,
  SettingRefused,
} from '../../db/postgres/connection.ts';
import { describePostgresError, sqlState } from '../../db/postgres/errors.ts';
import { isAway } from '../../db/postgres/failures.ts';
import { organizations } from '../../db/postgres/schema.ts';
import { WriteQueueFull } from '../../db/postgres/transactions.ts';
import { hasOpenssl, makeCertificate } from '../support/certificate.ts';
import { takeDatabase } from '../support/emptied-postgres.ts';
import {
  administer,
  isPostgresMissing,
  sharedPostgres,
  startPostgres,
  testDatabase,
} from '../support/postgres.ts';
import { PostgresProxy } from '../support/postgres-proxy.ts';
import { rejection } from '../support/rejection.ts';

const PASSWORD = 'p4ssw0rd of nobody';

/** The sentence about why the address cannot be connected to. */
async function whyNotConnected(url: string): Promise<string | null> {
  return describePostgresError(databasePlace(url), await rejection(connectPostgres(url, { connections: 1 })));
}

async function whyRefused({ db, place }: PgConnection, statement: string): Promise<string | null> {
  return describePostgresError(place, await rejection(Promise.resolve(db.execute(sql.raw(statement)))));
}

/** An error that the server only makes when its machine fails. */
function serverError(errno: string): Error {
  const cause = new SQL.PostgresError('a text', {
    code: 'ERR_POSTGRES_SERVER_ERROR',
    errno,
    severity: 'ERROR',
  });
  return new Error('as drizzle wraps it', { cause });
}

describe('the address of a database', () => {
  test.each([
    ['postgres://anna:pa%20ss@db.internal:5433/tds?sslmode=require', 'postgres://db.internal:5433/tds'],
    ['postgresql://db/tds', 'postgres://db/tds'],
    ['postgres://anna:x@localhost/tds?path=/run/postgresql', 'postgres:///run/postgresql/tds'],
    ['postgres://anna:x@host with a space/tds', 'the database'],
    [`postgresql:anna:${PASSWORD}@db/tds`, 'the database'],
  ])('is told without user, password and options', (url, place) => {
    expect(databasePlace(url)).toBe(place);
  });

  test.each([
    `mysql://anna:${PASSWORD}@db/tds`,
    `sqlite:${PASSWORD}`,
    'postgres://anna:100%@db/tds',
    `postgres://a,b:${PASSWORD}`,
    `postgres:${PASSWORD}`,
    `postgresql:anna:${PASSWORD}@db/tds`,
    '',
  ])('is refused when it is none of PostgreSQL, and not quoted', async (url) => {
    const error = await rejection(connectPostgres(url));
    expect(error).toBeInstanceOf(AddressRefused);
    expect(Bun.inspect(error)).not.toContain(PASSWORD);
  });
});

const is_missing = isPostgresMissing();

describe.skipIf(is_missing)('a database that cannot be used is described in one sentence', () => {
  test('when nobody answers, when the name is unknown, and when the socket is missing', async () => {
    for (const url of [
      'postgres://tds:x@127.0.0.1:1/tds',
      'postgres://tds:x@no-such-host.invalid/tds',
      'postgres://tds:x@localhost/tds?path=/nonexistent',
    ]) {
      expect(await whyNotConnected(url)).toBe(
        `${databasePlace(url)} cannot be reached: start the server or name another with --database.`,
      );
    }
  });

  test('when the password is wrong, the user is unknown, or the database is missing', async () => {
    const { port } = await sharedPostgres();
    const place = `postgres://127.0.0.1:${port}`;
    const refused = `${place}/postgres does not let this user in: check the user and the password in the address, and pg_hba.conf.`;
    expect(await whyNotConnected(`postgres://tds:wrong@127.0.0.1:${port}/postgres`)).toBe(refused);
    expect(await whyNotConnected(`postgres://nobody:wrong@127.0.0.1:${port}/postgres`)).toBe(refused);
    expect(await whyNotConnected((await sharedPostgres()).url('missing'))).toBe(
      `${place}/missing does not exist: create the database or name another with --database.`,
    );
  });

  test('when the server offers no TLS and the address asks for it', async () => {
    const server = await sharedPostgres();
    expect(await whyNotConnected(`${server.url('postgres')}?sslmode=require`)).toBe(
      `postgres://127.0.0.1:${server.port}/postgres offers no TLS, which its address asks for.`,
    );
  });

  test.skipIf(!hasOpenssl)(
    'when its certificate is not trusted, until the address names its authority',
    async () => {
      const server = await startPostgres();
      try {
        const { certificate, key } = makeCertificate(server.folder, 'server');
        const { uid, gid } = statSync(server.folder);
        for (const file of [certificate, key]) chownSync(file, uid, gid);
        for (const statement of [
          `ALTER SYSTEM SET ssl_cert_file = '${certificate}'`,
          `ALTER SYSTEM SET ssl_key_file = '${key}'`,
          'ALTER SYSTEM SET ssl = on',
        ]) {
          await administer(server, statement);
        }
        await server.stop('fast');
        await server.start();
        const url = `${server.url('postgres')}?sslmode=verify-full`;
        expect(await whyNotConnected(url)).toBe(
          `${databasePlace(url)} has a certificate that is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT): name its authority with sslrootcert in the address, and the server as the certificate does.`,
        );
        const trusting = await connectPostgres(`${url}&sslrootcert=${encodeURIComponent(certificate)}`);
        const [session] = await trusting.db.execute<{ ssl: boolean }>(
          sql`SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()`,
        );
        expect(session).toEqual({ ssl: true });
        await trusting.close();
        for (const option of ['sslmode=sometimes', 'sslmode=require&sslrootcert=/nonexistent']) {
          expect(await rejection(connectPostgres(`${server.url('postgres')}?${option}`))).toMatchObject({
            name: 'AddressRefused',
            message: 'named with an sslmode or an sslrootcert that cannot be used',
          });
        }
      } finally {
        await server.remove();
      }
    },
  );

  test('when a pooler drops the settings of sessions', async () => {
    const server = await sharedPostgres();
    using proxy = new PostgresProxy(server.port);
    const [ours, its] = ['lock_timeout\0' + '10s', 'lock_timeout\0' + '11s'];
    proxy.rewrite = (bytes) => Buffer.from(bytes.toString('latin1').replace(ours, its), 'latin1');
    expect(await rejection(connectPostgres(proxy.url(server.url('postgres'))))).toEqual(
      new AddressRefused('that of a pooler which drops the settings of sessions'),
    );
  });

  test('when there are too many connections, and when the user lacks a right', async () => {
    await using database = await takeDatabase();
    const server = await sharedPostgres();
    const role = `limited_${database.name}`;
    await administer(server, `CREATE ROLE ${role} LOGIN PASSWORD 'x' CONNECTION LIMIT 1`);
    const url = `postgres://${role}:x@127.0.0.1:${server.port}/${database.name}`;
    const only = await connectPostgres(url, { connections: 1 });
    const place = `postgres://127.0.0.1:${server.port}/${database.name}`;
    expect(await whyNotConnected(url)).toBe(
      `${place} has too many connections: raise its max_connections or run fewer nodes.`,
    );
    expect(await whyRefused(only, 'SELECT id FROM organizations')).toBe(
      `${place} does not give this user the rights that it needs: grant them.`,
    );
    await only.close();
    await administer(server, `DROP ROLE ${role}`);
  });

  test('when it can only be read, when it is busy, and when the connection is ended', async () => {
    await using database = await takeDatabase();
    const connection = await database.connect({ connections: 1 });
    const { place } = connection;
    await connection.db.execute(sql`SET default_transaction_read_only = on`);
    expect(await whyRefused(connection, 'DELETE FROM organizations')).toBe(
      `${place} can only be read: name the primary with --database, or set default_transaction_read_only = off.`,
    );
    await connection.db.execute(sql`SET default_transaction_read_only = off`);
    await connection.db.execute(sql`SET lock_timeout = 1`);
    const other = await database.connect({ connections: 1 });
    await other.db.transaction(async (executor) => {
      await executor.execute(sql`LOCK TABLE organizations`);
      expect(await whyRefused(connection, 'DELETE FROM organizations')).toBe(
        `${place} is busy: try again when the other command is done.`,
      );
    });
    expect(await whyRefused(connection, 'SELECT pg_terminate_backend(pg_backend_pid())')).toBe(
      `${place} ended the connection: try again.`,
    );
    await connection.close();
    expect(await whyRefused(connection, 'SELECT 1')).toBe(`${place} broke the connection: try again.`);
  });

  test.each([
    ['53100', "the place cannot grow: make room on the server's disk."],
    ['53200', 'the place lacks memory or other resources: look at the server.'],
    ['08P01', 'the place does not take the settings of sessions, as a pooler does: name PostgreSQL itself.'],
    ['57P03', 'the place is starting or stopping: try again in a moment.'],
    ['XX001', 'the place is damaged: restore it from a backup.'],
    ['42P01', 'the place failed with the error 42P01.'],
  ])('when its server fails with %s', (state, sentence) => {
    expect(describePostgresError('the place', serverError(state))).toBe(sentence);
    expect(sqlState(serverError(state))).toBe(state);
  });

  test('but no other error is, and nothing of a row is quoted', async () => {
    expect(describePostgresError('the place', new Error('another'))).toBeNull();
    await using database = await takeDatabase();
    const connection = await database.connect({ connections: 1 });
    const row = { id: 'secret of a row', name: 'a', created_at_ms: 0 };
    await connection.db.insert(organizations).values(row);
    const error = await rejection(Promise.resolve(connection.db.insert(organizations).values(row)));
    expect(sqlState(error)).toBe('23505');
    expect(describePostgresError('the place', error)).toBe('the place failed with the error 23505.');
  });
});

describe('a database that is away', () => {
  test.each(['08006', '25006', '25P03', '53300', '55P03', '57014', '57P01', '57P03'])(
    'is one whose server says %s',
    (state) => {
      expect(isAway(serverError(state))).toBe(true);
      expect(isAway(new Error('the statement failed', { cause: serverError(state) }))).toBe(true);
    },
  );

  test('is one that too many transactions wait for', () => {
    expect(isAway(new WriteQueueFull('too many'))).toBe(true);
  });

  test('is not one that refuses a statement, and no other failure', () => {
    for (const state of ['22001', '23505', '25P02', '42P01', '42501'])
      expect(isAway(serverError(state))).toBe(false);
    expect(isAway(new Error('another'))).toBe(false);
  });
});

describe.skipIf(is_missing)('a database that would lose what it has acknowledged', () => {
  test.each([
    ['off', 'the disk'],
    ['local', 'the standby'],
  ])('is refused: commits that (%s) do not wait for %s', async (value) => {
    await using database = await testDatabase();
    const { name } = database;
    await administer(await sharedPostgres(), `ALTER DATABASE ${name} SET synchronous_commit = ${value}`);
    expect(await rejection(database.connect())).toEqual(
      new SettingRefused(`the server has synchronous_commit = ${value}, not on`),
    );
  });

  test('is refused: another encoding than UTF-8', async () => {
    const server = await sharedPostgres();
    await administer(server, "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'");
    expect(await rejection(connectPostgres(server.url('latin')))).toEqual(
      new SettingRefused('the database has the encoding LATIN1, not UTF8'),
    );
    await administer(server, 'DROP DATABASE latin WITH (FORCE)');
  });
});
