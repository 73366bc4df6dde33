import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { SchemaRefused } from '../../db/schema-state.ts';
import { BackupRefused } from '../../db/sqlite/check-file.ts';
import { type Restored, restoreBackup } from '../../db/sqlite/restore.ts';
import { POSTGRES_RESTORES } from '../config/database-address.ts';
import { systemErrorCode } from '../errors/system-error-code.ts';
import { systemClock } from '../time/clock.ts';
import { type JsonOptions, jsonCommand } from './command.ts';
import { CommandFailed } from './command-failed.ts';
import { claimDataDirectory, DATABASE_FILE, describeDatabaseError } from './data-directory.ts';
import { adviceOn } from './file-advice.ts';
import { requireSqlite } from './open-database.ts';
import { formatTime, printJson, printLine } from './output.ts';

interface RestoreOptions extends JsonOptions {
  readonly replace?: boolean;
}

/** Adds `tds restore`. */
export function registerRestore(program: Command): void {
  jsonCommand(program, {
    usage: 'restore <file>',
    description:
      'put a backup into place as the database, once it is found whole and its books right; refused while a service runs on the data',
    example: 'tds restore /mnt/backups/tds.sqlite.zst --data ./data',
  })
    .option('--replace', 'keep the database that is there beside the restored one, under another name')
    .action(async (file: string, options: RestoreOptions) => {
      const restored = await restore(file, options);
      if (options.json) printJson(restored);
      else for (const line of linesOf(restored, options.data)) printLine(line);
    });
}

async function restore(file: string, options: RestoreOptions): Promise<Restored> {
  requireSqlite(options, '"tds restore"', POSTGRES_RESTORES);
  const { data, replace = false } = options;
  requireReadable(file);
  const unclaim = claimDataDirectory(data);
  const database = join(data, DATABASE_FILE);
  try {
    if (!replace && existsSync(database)) {
      throw new CommandFailed(
        `There is a database in ${data} already: name another directory with --data, or add --replace to keep it under another name.`,
      );
    }
    return await restoreBackup(file, database, systemClock.now_ms());
  } catch (error) {
    throw described(error, file, data);
  } finally {
    unclaim();
  }
}

function requireReadable(file: string): void {
  let is_file = false;
  try {
    is_file = statSync(file).isFile();
    accessSync(file, constants.R_OK);
  } catch (error) {
    const code = systemErrorCode(error) ?? error;
    if (code !== 'ENOENT' && code !== 'ENOTDIR') {
      throw new CommandFailed(
        `${file} cannot be read (${code}): give this user the right to read it, and to enter its folders.`,
        { cause: error },
      );
    }
  }
  if (!is_file) throw new CommandFailed(`There is no file ${file}: name a backup.`);
}

function described(error: unknown, file: string, data: string): unknown {
  if (error instanceof CommandFailed) return error;
  if (error instanceof BackupRefused) return new CommandFailed(error.message, { cause: error });
  if (error instanceof SchemaRefused) {
    const text = `${file} ${error.message}: restore it with the program that made it.`;
    return new CommandFailed(text, { cause: error });
  }
  const advice = adviceOn(error);
  const text =
    advice === null ? describeDatabaseError(file, error) : `${data} ${advice}, or name another with --data.`;
  return text === null ? error : new CommandFailed(text, { cause: error });
}

function linesOf({ replaced, schema, newest_ms }: Restored, data: string): readonly string[] {
  return [
    `Restored into ${data}: the books up to ${formatTime(newest_ms)}.`,
    ...(replaced === null ? [] : [`The database before is kept in ${replaced}.`]),
    ...(schema === 'older' ? ['The next start updates it for this version.'] : []),
    'Replay what the payment provider has reported since then: what is known already changes nothing.',
  ];
}
