import { connectPostgres } from '../../db/postgres/connection.ts';
import { bringUpToDate } from '../../db/postgres/migrate.ts';

/** Migrates the database of its argument and prints the state that it found; for tests of several processes. */
const connection = await connectPostgres(process.argv[2] ?? '', { connections: 1 });
console.log(await bringUpToDate(connection.db));
await connection.close();
