import { existsSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Command } from 'commander';
import { BackupThread } from '../../db/sqlite/backup-thread.ts';
import { POSTGRES_BACKUPS } from '../config/database-address.ts';
import { ThreadFailed } from '../problems/causes.ts';
import { type JsonOptions, jsonCommand, withData } from './command.ts';
import { CommandFailed } from './command-failed.ts';
import { adviceOn } from './file-advice.ts';
import { exitCodeOf } from './interruptible.ts';
import { requireSqlite } from './open-database.ts';
import { printJson, printLine } from './output.ts';

/** Adds `tds backup`. */
export function registerBackup(program: Command): void {
  jsonCommand(program, {
    usage: 'backup <file>',
    description:
      'write a copy of the database, checked and compressed, to a new file, also while the service runs; "tds restore" puts it back',
    example: 'tds backup /mnt/backups/tds.sqlite.zst --data ./data',
  }).action(async (file: string, options: JsonOptions) => {
    requireSqlite(options, '"tds backup"', POSTGRES_BACKUPS);
    await withData(options, ({ database }) => backUp(database.name, resolve(file)));
    const { size } = statSync(file);
    if (options.json) printJson({ file: resolve(file), bytes: size });
    else printLine(`Backed up to ${file} (${size} bytes).`);
  });
}

async function backUp(database: string, file: string): Promise<void> {
  if (existsSync(file)) throw taken(file);
  const thread = new BackupThread({ database, file });
  const stop = async (signal: 'SIGINT' | 'SIGTERM') => {
    // Until then the files may be those of another command that writes the same backup.
    if (await thread.hasClaimed()) thread.stop();
    process.stderr.write('tds: The backup was stopped: nothing is left of it.\n');
    // The thread may be inside SQLite, which cannot be interrupted.
    process.exit(exitCodeOf(signal));
  };
  process.on('SIGINT', stop).on('SIGTERM', stop);
  // The thread alone does not keep the process alive.
  const alive = setInterval(() => {}, 60_000);
  try {
    await thread.written();
  } catch (error) {
    throw described(error, file);
  } finally {
    clearInterval(alive);
    process.off('SIGINT', stop).off('SIGTERM', stop);
  }
}

function described(error: unknown, file: string): unknown {
  if (!(error instanceof ThreadFailed)) return error;
  const { causes, message } = error;
  if (causes.some(({ code }) => code === 'EEXIST')) return taken(file);
  if (causes.some(({ error: name }) => name === 'BackupRefused')) return new CommandFailed(message);
  if (causes.some(({ code }) => code?.startsWith('SQLITE_CORRUPT') || code === 'SQLITE_NOTADB'))
    return new CommandFailed(DAMAGED, { cause: error });
  const advice = adviceOn(error);
  const text =
    advice === null ? `No backup was made: ${message}.` : `${dirname(file)} ${advice}, or name another file.`;
  return new CommandFailed(text, { cause: error });
}

const DAMAGED =
  'The database is damaged, so that no backup was made of it: restore an earlier one with "tds restore FILE --replace".';

function taken(file: string): CommandFailed {
  return new CommandFailed(`${file} exists already, and nothing is overwritten: name another file.`);
}
