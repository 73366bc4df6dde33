import { expect, test } from 'bun:test';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { backupName, removeOldBackups, removeUnfinishedBackups } from '../../db/sqlite/backup.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

test('old backups, and all that a kill left of one, are removed; what is of another kind or no backup stays', () => {
  const directory = temporaryDirectory();
  const copies = [1, 2, 3].map((at_ms) => backupName(at_ms, 1, 'copy'));
  const compressed = backupName(4, 1, 'compressed');
  const killed = backupName(5, 1, 'copy');
  const left = ['.partial', '.partial-journal', '.partial-wal', '.partial-shm'].map((end) => killed + end);
  const others = ['tds.sqlite', 'tds.sqlite-wal', 'notes.partial-journal', `${compressed}.partial`];
  for (const name of [...copies, compressed, ...left, ...others])
    writeFileSync(join(directory.path, name), '');

  removeUnfinishedBackups(directory.path, 'copy');
  removeOldBackups(directory.path, 5, { kept: 2 });

  expect(readdirSync(directory.path).sort()).toEqual([...copies.slice(1), compressed, ...others].sort());
  directory.remove();
});
