import type { Database } from 'bun:sqlite';
import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { systemErrorCode } from '../../src/errors/system-error-code.ts';

/** The file is no valid backup, or the database cannot be backed up. The message is a sentence. */
export class BackupRefused extends Error {
  override readonly name = 'BackupRefused';
}

/** Offsets in the header of a database file (SQLite, "Database File Format"). */
const HEADER_BYTES = 100;
const PAGE_SIZE_AT = 16;
const PAGES_AT = 28;
/** The page size that the header encodes as 1, because two bytes cannot hold it. */
const LARGEST_PAGE_BYTES = 65_536;
const MAGIC = 'SQLite format 3\0';

/** Returns the kind of a file, by its first bytes. */
export function kindOfFile(path: string): 'database' | 'compressed' | 'other' {
  const head = headOf(path);
  if (head.toString('latin1', 0, MAGIC.length) === MAGIC) return 'database';
  return head.length >= 4 && head.readUInt32LE(0) === 0xfd2fb528 ? 'compressed' : 'other';
}

/** Returns true if the file of a closed database has as many pages as its header says. */
export function hasAllPages(path: string): boolean {
  const head = headOf(path);
  if (head.length < HEADER_BYTES) return false;
  const page_bytes = head.readUInt16BE(PAGE_SIZE_AT);
  const bytes = head.readUInt32BE(PAGES_AT) * (page_bytes === 1 ? LARGEST_PAGE_BYTES : page_bytes);
  return statSync(path).size === bytes;
}

/** Returns true if SQLite finds the file's structure sound. It takes a second for some hundred megabytes. */
export function isSound(client: Database): boolean {
  try {
    const [first] = client.query<{ quick_check: string }, []>('PRAGMA quick_check(1)').all();
    return first?.quick_check === 'ok';
  } catch (error) {
    if (systemErrorCode(error)?.startsWith('SQLITE_CORRUPT')) return false;
    throw error;
  }
}

/** Throws `BackupRefused` unless SQLite finds every page, row and index entry valid. */
export function requireWhole(client: Database): void {
  const [first] = client.query<{ integrity_check: string }, []>('PRAGMA integrity_check(1)').all();
  if (first?.integrity_check !== 'ok')
    throw new BackupRefused('The database is damaged: restore an earlier backup with "tds restore FILE".');
}

function headOf(path: string): Buffer {
  const head = Buffer.alloc(HEADER_BYTES);
  const file = openSync(path, 'r');
  try {
    return head.subarray(0, readSync(file, head, 0, HEADER_BYTES, 0));
  } finally {
    closeSync(file);
  }
}
