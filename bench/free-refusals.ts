/**
 * Measures the service's time for a free refusal: an ordinary one, and the 429 of a client with a spent budget of
 * refusals. It excludes the socket, and log lines go to /dev/null. The two alternate in one run.
 *
 *   bun bench/free-refusals.ts [rounds, default 15]
 */

import { createWriteStream, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDatabase } from '../db/sqlite/connection.ts';
import { SqliteDatabase } from '../db/sqlite/sqlite-database.ts';
import { OPERATOR } from '../src/access/actor.ts';
import { createKey } from '../src/accounts/keys.ts';
import { createOrganization, setTierSettings } from '../src/accounts/organizations.ts';
import { randomIdentifiers } from '../src/contract/identifiers.ts';
import { MICROS_PER_DOLLAR } from '../src/contract/money.ts';
import { createLog } from '../src/log/log.ts';
import { BoundedOutput } from '../src/log/standard-output.ts';
import { creditByHand } from '../src/payments/credit.ts';
import { openService } from '../src/service.ts';
import { systemClock } from '../src/time/clock.ts';
import { UNKNOWN_KEY } from '../test/support/requests.ts';
import { median, report, rounded } from './support/statistics.ts';

const rounds = Number(process.argv[2] ?? 15);
const SPENT_ADDRESS = '192.0.2.1';
const LARGE_BODY = `{"state":"${'x'.repeat(1_000_000)}"}`;

const directory = mkdtempSync(join(tmpdir(), 'tds-bench-'));
const db = openDatabase(join(directory, 'tds.sqlite'));
const service = await openService({
  database: new SqliteDatabase(db),
  openPlanner: () => Promise.reject(new Error('no request of this bench gets as far as the model')),
  idle_unload_ms: 0,
  clock: systemClock,
  identifiers: randomIdentifiers,
  log: createLog('info', new BoundedOutput(createWriteStream('/dev/null'))),
  payment_provider: null,
  own_url: () => 'http://127.0.0.1',
});

const { store } = service.services;
const accounts = { store, clock: systemClock, identifiers: randomIdentifiers };

async function newKey(requests_per_minute: number): Promise<string> {
  const { id, default_project_id } = await createOrganization(accounts, OPERATOR, { name: 'Bench' });
  await creditByHand(accounts, OPERATOR, { organization_id: id, amount_micros: 25 * MICROS_PER_DOLLAR });
  await setTierSettings(accounts, OPERATOR, id, { requests_per_minute });
  return (await createKey(accounts, OPERATOR, { project_id: default_project_id, name: 'Bench' })).key;
}

/** Returns the mean microseconds of one of `count` requests. */
async function time_us(count: number, send: (index: number) => Promise<Response>): Promise<number> {
  const started_ms = performance.now();
  for (let index = 0; index < count; index += 1) await (await send(index)).arrayBuffer();
  return ((performance.now() - started_ms) * 1_000) / count;
}

async function listModels(address: string, key: string): Promise<Response> {
  const request = new Request('http://localhost/v1/models', { headers: { 'x-api-key': key } });
  return await service.handle(request, address);
}

async function post(key: string, body: string): Promise<Response> {
  const headers = { 'x-api-key': key, 'content-type': 'application/json' };
  const request = new Request('http://localhost/v1/decisions', { method: 'POST', headers, body });
  return await service.handle(request, '192.0.2.2');
}

const ordinary = await newKey(1e9);
const spent = await newKey(300);
while ((await listModels(SPENT_ADDRESS, UNKNOWN_KEY)).status !== 429);
while ((await post(spent, LARGE_BODY)).status !== 429);

/** Spends the budget again, because it refills while the other contender runs. */
const respend = async () => {
  while ((await listModels(SPENT_ADDRESS, UNKNOWN_KEY)).status !== 429);
  while ((await post(spent, LARGE_BODY)).status !== 429);
};

const kinds = [
  {
    refusal: 'unknown key',
    count: 500,
    ordinary: (index: number) => listModels(`10.${index >> 8}.${index & 255}.1`, UNKNOWN_KEY),
    over_budget: () => listModels(SPENT_ADDRESS, UNKNOWN_KEY),
  },
  {
    refusal: 'no model, 2 bytes',
    count: 500,
    ordinary: () => post(ordinary, '{}'),
    over_budget: () => post(spent, '{}'),
  },
  {
    refusal: 'no model, 1 MB',
    count: 20,
    ordinary: () => post(ordinary, LARGE_BODY),
    over_budget: () => post(spent, LARGE_BODY),
  },
];
for (const kind of kinds) {
  const ordinary_us: number[] = [];
  const over_budget_us: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    ordinary_us.push(await time_us(kind.count, kind.ordinary));
    await respend();
    over_budget_us.push(await time_us(kind.count, kind.over_budget));
  }
  report({
    bench: 'free-refusals',
    refusal: kind.refusal,
    ordinary_us: rounded(median(ordinary_us)),
    over_budget_us: rounded(median(over_budget_us)),
    ratio: rounded(median(over_budget_us) / median(ordinary_us)),
  });
}

await service.close();
db.$client.close();
rmSync(directory, { recursive: true, force: true });
