import { expect, test } from 'bun:test';
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import fc from 'fast-check';
import { openDataDirectory } from '../../src/cli/data-directory.ts';
import { propertySeed } from '../ledger/support.ts';
import { ChildServer } from '../support/child-server.ts';
import { SMALL_REQUEST } from '../support/requests.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { expectClean } from './kept.ts';
import { addLoadAccounts } from './load.ts';

const KILLS = 8;
const CLIENTS = 8;
const LOAD_MS_MAX = 600;
const TEST_TIMEOUT_MS = 300_000;

const ANSWER = Type.Object({ id: Type.String() });

/** The decision that a key got; null when the server died before it said so. */
async function ask(address: string, key: string, idempotency_key: string): Promise<string | null> {
  try {
    const response = await fetch(`${address}/v1/decisions`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        'idempotency-key': idempotency_key,
      },
      body: JSON.stringify({ ...SMALL_REQUEST, state: idempotency_key }),
    });
    const answer: unknown = await response.json();
    if (response.status !== 200) throw new Error(`${response.status}: ${JSON.stringify(answer)}`);
    return Value.Parse(ANSWER, answer).id;
  } catch (error) {
    if (error instanceof Error && /^\d{3}: /.test(error.message)) throw error;
    // The server is gone.
    return null;
  }
}

test(
  'however often the service is killed, each idempotency key is charged once, and every answer to it is the same',
  async () => {
    const seed = propertySeed('kill -9 with idempotency keys');
    const delays = fc.sample(fc.nat({ max: LOAD_MS_MAX }), { seed, numRuns: KILLS });
    using root = temporaryDirectory();
    const directory = root.path;
    const db = openDataDirectory(directory, { create: true });
    try {
      const { rich } = await addLoadAccounts(db);
      const charges = () =>
        db.$client
          .query<{ charges: number }, []>(
            "SELECT count(*) AS charges FROM ledger_entries WHERE kind = 'charge'",
          )
          .get()?.charges ?? 0;
      const before = charges();
      /** The decisions that each key was told of. */
      const told = new Map<string, Set<string>>();
      const note = async (address: string, idempotency_key: string): Promise<boolean> => {
        const known = told.get(idempotency_key) ?? new Set();
        told.set(idempotency_key, known);
        const id = await ask(address, rich, idempotency_key);
        if (id !== null) known.add(id);
        return id !== null;
      };
      let sent = 0;
      for (const after_ms of delays) {
        await using server = await new ChildServer(directory).ready();
        const { address } = server;
        expectClean(db);
        // First again what the last kill may have cut off, each twice at once; then new keys until the server is gone.
        const unanswered = [...told].filter(([, ids]) => ids.size === 0).map(([key]) => key);
        const load = Array.from({ length: CLIENTS }, async (_, client) => {
          const again = unanswered.filter((_key, index) => index % CLIENTS === client);
          for (const key of again) await Promise.all([note(address, key), note(address, key)]);
          for (let is_alive = true; is_alive; ) {
            sent += 1;
            const key = `key-${sent}`;
            is_alive = (await Promise.all([note(address, key), note(address, key)])).every(Boolean);
          }
        });
        await Bun.sleep(after_ms);
        await server.kill();
        await Promise.all(load);
      }
      await using server = await new ChildServer(directory).ready();
      const { address } = server;
      expectClean(db);
      const charged_unseen = charges() - before - [...told.values()].filter((ids) => ids.size > 0).length;
      for (const key of told.keys()) expect(await note(address, key)).toBe(true);
      for (const [key, ids] of told) expect([key, ids.size]).toEqual([key, 1]);
      expect(charges() - before).toBe(told.size);
      expectClean(db);
      console.log(JSON.stringify({ keys: told.size, charged_unseen }));
      expect(told.size).toBeGreaterThan(KILLS);
    } finally {
      db.$client.close();
    }
  },
  TEST_TIMEOUT_MS,
);
