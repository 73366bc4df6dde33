import { existsSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import {
  type Copied,
  CopyRefused,
  type CopySource,
  CopyStopped,
  type CopyTarget,
  copyDatabase,
} from '../../db/copy-database.ts';
import { type Db, transact } from '../../db/sqlite/connection.ts';
import { SqliteRows } from '../../db/sqlite/copied-rows.ts';
import { LOCK_FILE } from '../../db/sqlite/lock.ts';
import { SqliteLedger } from '../../db/sqlite/sqlite-ledger.ts';
import { isPostgres, SQLITE } from '../config/database-address.ts';
import type { Values } from '../config/settings.ts';
import { consoleSecret, SECRET_FILE } from '../console/people/secret.ts';
import { CommandFailed } from './command-failed.ts';
import { addSettings } from './command-settings.ts';
import {
  claimDataDirectory,
  DATABASE_FILE,
  describeDatabaseError,
  hasDatabase,
  openDataDirectory,
} from './data-directory.ts';
import { interruptible } from './interruptible.ts';
import { printJson, printLine } from './output.ts';

const OTHER_ADDRESS = /^(?:[a-z][a-z\d+.-]*:\/\/|postgres(?:ql)?:)/i;

interface CopyOptions extends Values<'data' | 'databasePassword'> {
  readonly json?: true;
}

/** Returns true if the text can name a side. A malformed PostgreSQL address must not pass as a directory. */
function isSide(address: string): boolean {
  return isPostgres(address) || !OTHER_ADDRESS.test(address);
}

/** One side of the copy. */
interface OpenedSide<Side> {
  readonly rows: Side;
  /** The number of holds that its last service left open, which are now released. */
  readonly released_holds: number;
  /** The secret that signs session cookies and encrypts second factors; null for none. */
  readonly console_secret: string | null;
  /** The way to remove that secret, in a clause. */
  readonly without_secret: string;
  /** Stores the other side's secret, so that all sessions and second factors stay valid. */
  readonly keepSecret: (secret: string) => Promise<unknown>;
  readonly describe: (error: unknown) => string | null;
  close(): Promise<void>;
  /** Closes the side, and removes the files that its opening made. */
  discard(): Promise<void>;
}

/** Adds `tds database …`. */
export function registerDatabase(program: Command): void {
  const parent = program.command('database').description('the database that everything is kept in');

  addSettings(parent.command('copy <from> <to>'), ['data', 'databasePassword'])
    .description(
      'copy everything from SQLite to PostgreSQL, or back, while no service runs on either; both sides are audited and compared, and a copy that fails leaves no rows',
    )
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nSQLite is named by its data directory, by sqlite:<directory>, or by sqlite: for that of --data.\n\nExample:\n  $ tds database copy ./data postgres://tds@10.0.0.1/tds',
    )
    .action(copy);
}

async function copy(from: string, to: string, options: CopyOptions): Promise<void> {
  // The text is not quoted, because it may contain a password.
  if (![from, to].every(isSide)) {
    throw new CommandFailed(
      'Name each side by a data directory, or by an address such as postgres://user@host:5432/name.',
    );
  }
  if (isPostgres(from) === isPostgres(to)) {
    throw new CommandFailed(
      isPostgres(from)
        ? 'Both are PostgreSQL: copy it with pg_dump and pg_restore.'
        : 'Both are SQLite: copy it with "tds backup" and "tds restore".',
    );
  }
  const source = await openSide(from, options, false);
  try {
    const target = await openSide(to, options, true);
    let copied: Copied | null = null;
    try {
      copied = await copyRows(source, target);
    } catch (error) {
      throw described(error, target);
    } finally {
      await (copied === null ? target.discard() : target.close());
    }
    if (copied !== null) report(copied, source, from, to, options);
  } catch (error) {
    throw described(error, source);
  } finally {
    await source.close();
  }
}

/** Resolves with null where the copy was stopped. */
async function copyRows(
  source: OpenedSide<CopySource>,
  target: OpenedSide<CopyTarget>,
): Promise<Copied | null> {
  const { console_secret } = source;
  if (console_secret !== null && ![null, console_secret].includes(target.console_secret)) {
    throw new CopyRefused(
      `The target has a console secret of its own, which would end all sessions and make second factors unusable: ${target.without_secret}.`,
    );
  }
  try {
    return await interruptible(async (isStopped) => {
      const copied = await copyDatabase(source.rows, target.rows, {
        isStopped,
        onProgress: ({ table, rows }) => showProgress(`${table}: ${rows} rows`),
      });
      if (console_secret !== null) await target.keepSecret(console_secret);
      showProgress('');
      return copied;
    });
  } catch (error) {
    showProgress('');
    if (!(error instanceof CopyStopped)) throw error;
    process.stderr.write('tds: The copy was stopped: nothing is left of it.\n');
    return null;
  }
}

function report(
  { rows }: Copied,
  { released_holds }: OpenedSide<unknown>,
  from: string,
  to: string,
  options: CopyOptions,
): void {
  if (options.json === true) {
    printJson({ rows, released_holds });
    return;
  }
  const all = Object.values(rows).reduce((sum, count) => sum + count, 0);
  if (released_holds > 0) printLine(`Released ${released_holds} holds that the last service left open.`);
  printLine(`Copied ${all} rows of ${Object.keys(rows).length} tables. The audit of both sides is clean.`);
  printLine(
    `${nameOf(from, options)} is as it was: start the service on ${nameOf(to, options)} from now on.`,
  );
}

/** Writes one line that overwrites the last one; nothing where standard error is not a terminal. */
function showProgress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
}

/** Returns the name of a side for messages, without a password. */
function nameOf(address: string, options: CopyOptions): string {
  return isPostgres(address) ? 'PostgreSQL' : directoryOf(address, options);
}

function directoryOf(address: string, { data }: CopyOptions): string {
  if (!address.startsWith(SQLITE)) return address;
  return address.slice(SQLITE.length) || data;
}

function openSide(
  address: string,
  options: CopyOptions,
  is_target: boolean,
): Promise<OpenedSide<CopySource & CopyTarget>> {
  return isPostgres(address)
    ? openPostgresSide(address, options, is_target)
    : openSqliteSide(directoryOf(address, options), is_target);
}

async function openPostgresSide(
  address: string,
  { databasePassword }: CopyOptions,
  is_target: boolean,
): Promise<OpenedSide<CopySource & CopyTarget>> {
  // Loaded only here, because its client and its schema would slow down every command on SQLite.
  const [{ openPostgres }, { PostgresRows }, secrets, { describePostgresError }] = await Promise.all([
    import('./open-postgres.ts'),
    import('../../db/postgres/copied-rows.ts'),
    import('../../db/postgres/console-secret.ts'),
    import('../../db/postgres/errors.ts'),
  ]);
  const database = await openPostgres({ database: address, databasePassword }, { create: is_target });
  const close = () => database.close();
  return {
    rows: new PostgresRows(database.db, database.name),
    // Nodes release each other's holds; open ones are refused.
    released_holds: 0,
    console_secret: await secrets.storedConsoleSecret(database.db),
    without_secret: `run "DELETE FROM service_secrets WHERE name = 'console'" on it`,
    keepSecret: (secret) => secrets.consoleSecret(database.db, secret),
    describe: (error) => describePostgresError(database.name, error),
    close,
    discard: close,
  };
}

async function openSqliteSide(
  directory: string,
  is_target: boolean,
): Promise<OpenedSide<CopySource & CopyTarget>> {
  // The claim would create the directory.
  if (!is_target && !hasDatabase(directory))
    throw new CommandFailed(`There is no data in ${directory}: name a data directory.`);
  const is_new = !existsSync(directory);
  const unclaim = claimDataDirectory(directory);
  // Another process may have made a database until the claim.
  const undo = undoOf(directory, is_new);
  let db: Db | undefined;
  const close = () => {
    db?.$client.close();
    unclaim();
    return Promise.resolve();
  };
  const discard = () => {
    db?.$client.close();
    undo();
    unclaim();
    return Promise.resolve();
  };
  try {
    const opened = openDataDirectory(directory, { create: is_target, claimed: true });
    db = opened;
    // A start does the same: the claim proves that no process serves.
    const released_holds = is_target
      ? 0
      : transact(opened, () => new SqliteLedger(opened).releaseOpenHolds());
    const path = opened.$client.filename;
    const secret_path = join(directory, SECRET_FILE);
    return {
      rows: new SqliteRows(opened),
      released_holds,
      console_secret: existsSync(secret_path) ? consoleSecret(directory) : null,
      without_secret: `move ${secret_path} away`,
      keepSecret: (secret) => Promise.try(() => consoleSecret(directory, secret)),
      describe: (error) => describeDatabaseError(path, error),
      close,
      discard,
    };
  } catch (error) {
    await discard();
    throw error;
  }
}

/** Returns a function that removes what is made of a database in the directory from now on; one that is there stays. */
function undoOf(directory: string, is_new: boolean): () => void {
  if (hasDatabase(directory)) return () => undefined;
  const database = ['', '-wal', '-shm'].map((suffix) => DATABASE_FILE + suffix);
  const lock = ['', '-journal'].map((suffix) => LOCK_FILE + suffix);
  return () => {
    for (const name of is_new ? [...database, ...lock] : database)
      rmSync(join(directory, name), { force: true });
    try {
      if (is_new) rmdirSync(directory);
    } catch {
      // Somebody put a file there meanwhile, which stays.
    }
  };
}

/** Returns the error as a sentence where it is one of this side's database, else unchanged. */
function described(error: unknown, { describe }: OpenedSide<unknown>): unknown {
  if (error instanceof CommandFailed) return error;
  if (error instanceof CopyRefused) return new CommandFailed(error.message, { cause: error });
  const text = describe(error);
  return text === null ? error : new CommandFailed(text, { cause: error });
}
