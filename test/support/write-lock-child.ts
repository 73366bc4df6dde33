import { Database } from 'bun:sqlite';

/** Takes the write lock of the database that it is given, says so, and keeps it until its standard input ends. */
const db = new Database(process.argv[2] ?? '', { strict: true });
db.run('PRAGMA busy_timeout = 5000');
db.run('BEGIN IMMEDIATE');
process.stdout.write('locked\n');
await Bun.stdin.text();
db.run('ROLLBACK');
db.close();
