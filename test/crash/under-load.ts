import { join } from 'node:path';
import { openDataDirectory } from '../../src/cli/data-directory.ts';
import { ChildServer } from '../support/child-server.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { addLoadAccounts, Load } from './load.ts';

const CLIENTS = 12;
const REQUESTS_AT_FIRST = 50;

export type UnderLoad = Awaited<ReturnType<typeof underLoad>>;

/** A served data directory with accounts, whose clients are at work; the server is killed at the end. */
export async function underLoad(...flags: string[]) {
  const root = temporaryDirectory();
  const data = join(root.path, 'data');
  const db = openDataDirectory(data, { create: true });
  const keys = await addLoadAccounts(db);
  const server = await new ChildServer(data, flags).ready();
  const load = new Load(server.address, keys, CLIENTS);
  await eventually(() => load.seen.length >= REQUESTS_AT_FIRST);
  return {
    root: root.path,
    data,
    keys,
    db,
    server,
    load,
    async [Symbol.asyncDispose]() {
      await server.kill();
      await load.ended();
      db.$client.close();
      root.remove();
    },
  };
}
