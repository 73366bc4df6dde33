import { administer, startPostgres } from '../support/postgres.ts';

/** Starts a server of its own and prints its folder, then waits for its end; for a test that kills it. */
const server = await startPostgres();
await administer(server, 'SELECT 1');
console.log(server.folder);
setInterval(() => undefined, 60_000);
