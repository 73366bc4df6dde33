import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { Writable } from 'node:stream';
import { OPERATOR } from '../../src/access/actor.ts';
import { createKey } from '../../src/accounts/keys.ts';
import { setTierSettings } from '../../src/accounts/organizations.ts';
import { ADDRESS_REFUSALS_PER_MINUTE, keyRefusalsPerMinute } from '../../src/limits/refusal-budgets.ts';
import { createLog } from '../../src/log/log.ts';
import { BoundedOutput } from '../../src/log/standard-output.ts';
import { addPerson, type Person, signIn, startTestConsole, type TestConsole } from '../console/people.ts';
import { expectError } from '../contract/expectations.ts';
import { MovableClock } from '../support/clock.ts';
import { withoutTable } from '../support/faults.ts';
import { SMALL_REQUEST, toolCall, UNKNOWN_KEY } from '../support/requests.ts';
import { addAccount, startTestService, type TestAccount, type TestService } from '../support/service.ts';

const ATTACKER = '198.51.100.1';
const SOMEBODY = '198.51.100.2';
/** Of Tier 1. */
const KEY_REFUSALS = keyRefusalsPerMinute(300);

let clock: MovableClock;
let service: TestService;
let account: TestAccount;
beforeEach(async () => {
  clock = MovableClock.stopped();
  service = await startTestService({ cold: true, clock });
  account = await addAccount(service);
});
afterEach(() => service.close());

/** A request from an address, without a port between. */
function send(address: string, path: string, key: string | null, init: RequestInit = {}) {
  const headers = { 'content-type': 'application/json', ...(key === null ? {} : { 'x-api-key': key }) };
  const request = new Request(`http://localhost${path}`, { ...init, headers });
  return { request, response: Promise.resolve(service.service.handle(request, address)) };
}

async function listModels(address: string, key: string | null): Promise<Response> {
  return await send(address, '/v1/models', key).response;
}

async function postDecision(address: string, key: string | null, body: string): Promise<Response> {
  return await send(address, '/v1/decisions', key, { method: 'POST', body }).response;
}

/** Spends everything that an address may be refused. */
async function spendAddress(address: string): Promise<void> {
  for (let count = 0; count < ADDRESS_REFUSALS_PER_MINUTE; count += 1) {
    const response = await listModels(address, count % 2 === 0 ? UNKNOWN_KEY : null);
    expect(response.status).toBe(401);
  }
}

/** Sends the same body again and again, at most `most` times; returns how often before the budget was spent. */
async function callsAnswered(key: string, path: string, body: string, most: number): Promise<number> {
  for (let count = 0; count < most; count += 1) {
    const headers = {
      'x-api-key': key,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    };
    const request = new Request(`http://localhost${path}`, { method: 'POST', headers, body });
    const response = await service.service.handle(request, SOMEBODY);
    await response.bytes();
    if (response.status === 429) return count;
  }
  return most;
}

async function spendKey(address: string, key: string): Promise<void> {
  for (let count = 0; count < KEY_REFUSALS; count += 1) {
    expect((await postDecision(address, key, '{}')).status).toBe(400);
  }
}

async function expectOverBudget(response: Response, message: RegExp): Promise<void> {
  expect(response.headers.get('retry-after')).toBe('1');
  expect(response.headers.get('x-ratelimit-limit-requests')).toMatch(/^\d+$/);
  expect(response.headers.get('x-ratelimit-remaining-requests')).toMatch(/^\d+$/);
  expect(response.headers.get('x-ratelimit-reset-requests')).toMatch(/^\d+s$/);
  const { error } = await expectError(response, 'rate_limit_exceeded');
  expect(error.message).toMatch(message);
}

describe('requests without a valid key', () => {
  test('are refused as ever until their address has had enough, and then 429 on every path', async () => {
    await spendAddress(ATTACKER);
    for (const key of [null, 'nonsense', UNKNOWN_KEY]) {
      await expectOverBudget(await listModels(ATTACKER, key), /address: 1200 per minute/);
      await expectOverBudget(await postDecision(ATTACKER, key, '{}'), /address: 1200 per minute/);
    }
    await expectOverBudget(await send(ATTACKER, '/nothing', null).response, /address: 1200 per minute/);
    const wrong_method = send(ATTACKER, '/v1/models', null, { method: 'PUT' });
    await expectOverBudget(await wrong_method.response, /address: 1200 per minute/);

    clock.advance(1_000);
    await expectError(await listModels(ATTACKER, UNKNOWN_KEY), 'invalid_api_key');
  });

  test('of unknown paths count, too', async () => {
    for (let count = 0; count < ADDRESS_REFUSALS_PER_MINUTE; count += 1) {
      expect((await send(ATTACKER, `/${count}`, null).response).status).toBe(404);
    }
    await expectOverBudget(await listModels(ATTACKER, null), /address/);
  });

  test('are told apart by the connection when they come over the port', async () => {
    await spendAddress('127.0.0.1');
    await expectOverBudget(await service.fetch('/v1/models'), /address/);
    await expectError(await listModels(SOMEBODY, UNKNOWN_KEY), 'invalid_api_key');
  });

  test('above the budget have neither their body read nor the database asked', async () => {
    await spendAddress(ATTACKER);
    // From here on a key that is not known is looked for in memory only.
    await listModels(ATTACKER, UNKNOWN_KEY);
    await withoutTable(service, 'api_keys', async () => {
      const { request, response } = send(ATTACKER, '/v1/decisions', UNKNOWN_KEY, {
        method: 'POST',
        body: '{}',
      });
      await expectOverBudget(await response, /address/);
      expect(request.bodyUsed).toBe(false);
    });
  });
});

describe('a valid key at an address that has had enough', () => {
  test('works, whether it was used lately, long ago, or never', async () => {
    expect((await listModels(ATTACKER, account.key)).status).toBe(200);
    const unused = await addAccount(service);
    await spendAddress(ATTACKER);
    expect((await listModels(ATTACKER, account.key)).status).toBe(200);
    expect((await listModels(ATTACKER, unused.key)).status).toBe(200);
    // A lookup is kept for a minute; the address is made to spend what that minute gave it.
    clock.advance(61_000);
    await spendAddress(ATTACKER);
    expect((await listModels(ATTACKER, account.key)).status).toBe(200);
  });

  test('works a second after it was made', async () => {
    await spendAddress(ATTACKER);
    await expectOverBudget(await listModels(ATTACKER, UNKNOWN_KEY), /address/);
    const { project_id } = account;
    const { key } = await createKey(service.accounts, OPERATOR, { project_id, name: 'New' });
    await expectOverBudget(await listModels(ATTACKER, key), /address/);
    clock.advance(1_000);
    for (let count = 0; count < 20; count += 1) await listModels(ATTACKER, UNKNOWN_KEY);
    await expectOverBudget(await listModels(ATTACKER, UNKNOWN_KEY), /address/);
    expect((await listModels(ATTACKER, key)).status).toBe(200);
  });

  test('that cannot be looked up is not mistaken for a wrong one', async () => {
    await spendAddress(ATTACKER);
    await withoutTable(service, 'api_keys', async () => {
      await expectError(await listModels(ATTACKER, account.key), 'auth_unavailable');
    });
    // Both looks at the keys failed: whether the key may exist, and whose it is.
    expect(service.service.services.problems.counts().authenticate).toBe(2);
  });
});

describe('the console at an address that has had enough', () => {
  const SESSION = '/console/api/session';
  let made: TestConsole;
  let ada: Person;
  beforeEach(async () => {
    // better-auth looks at the machine's clock.
    made = await startTestConsole({ clock: MovableClock.stopped(Date.now()) });
    ada = await addPerson(made, { email: 'ada@example.com' });
  });
  afterEach(() => made.close());

  async function get(path: string, cookie?: string): Promise<Response> {
    const headers = cookie === undefined ? undefined : { headers: { cookie } };
    return await made.service.service.handle(new Request(`http://localhost${path}`, headers), ATTACKER);
  }

  async function spend(path = '/v1/models'): Promise<void> {
    for (let count = 0; count < ADDRESS_REFUSALS_PER_MINUTE; count += 1) await get(path);
    expect((await get('/v1/models')).status).toBe(429);
  }

  test('gives its pages to everybody, and its API to people who are signed in', async () => {
    const html = await (await get('/console')).text();
    const asset = /\/console\/assets\/[\w.-]+/.exec(html)?.[0] ?? '';
    await spend();
    for (const path of ['/console', '/console/sign-in', asset]) expect((await get(path)).status).toBe(200);
    expect(await (await get(SESSION, ada.cookie)).json()).toMatchObject({ user: { id: ada.user_id } });
    const change = new Request(`http://localhost${SESSION}`, { method: 'PUT', headers: { origin: 'x' } });
    await expectOverBudget(await made.service.service.handle(change, ATTACKER), /address/);
  });

  test('takes no cookie that it did not sign, and asks the database for none', async () => {
    const [name = '', value = ''] = ada.cookie.split('=');
    const [token = '', signature = ''] = decodeURIComponent(value).split('.');
    const other = await signIn(made, ada);
    const [, other_signature = ''] = decodeURIComponent(other.cookie).split('.');
    await spend();
    const forged = [
      `${token}.${other_signature}`,
      `${token}.`,
      token,
      `.${signature}`,
      `${token}x.${signature}`,
    ];
    await withoutTable(made.service, 'sessions', async () => {
      await expectOverBudget(await get(SESSION), /address/);
      for (const cookie of forged) {
        await expectOverBudget(await get(SESSION, `${name}=${encodeURIComponent(cookie)}`), /address/);
      }
    });
    expect((await get(SESSION, `${name}=${encodeURIComponent(`${token}.${signature}`)}`)).status).toBe(200);
  });

  test('counts what it refuses, and refuses what it has no file for', async () => {
    await spend('/console/assets/none.js');
    await expectOverBudget(await get('/console/assets/none.js'), /address/);
    const posted = new Request('http://localhost/console', { method: 'POST' });
    await expectOverBudget(await made.service.service.handle(posted, ATTACKER), /address/);
  });
});

test('requests above a budget are counted in the log, not listed: a line each would let a client fill the disk', async () => {
  let text = '';
  const stream = new Writable({
    decodeStrings: false,
    write(chunk, _encoding, done) {
      text += chunk;
      done();
    },
  });
  const output = new BoundedOutput(stream, Number.POSITIVE_INFINITY);
  const logged = await startTestService({ cold: true, clock, log: createLog('info', output) });
  const sent = ADDRESS_REFUSALS_PER_MINUTE + 345;
  for (let count = 0; count < sent; count += 1) await (await logged.fetch('/v1/models')).text();
  await logged.close();
  await output.flush(60_000);
  const lines = text.split('\n').slice(0, -1);
  const entries = lines.map((line): { msg: string; requests?: number } => JSON.parse(line));
  expect(entries.filter(({ msg }) => msg === 'request').length).toBe(ADDRESS_REFUSALS_PER_MINUTE);
  const counted = entries.map(({ requests }) => requests ?? 0).reduce((sum, requests) => sum + requests, 0);
  expect(counted).toBe(345);
  expect(entries.length).toBeLessThan(ADDRESS_REFUSALS_PER_MINUTE + 10);
});

describe('refused requests of a key', () => {
  test('are refused as ever until the key has had enough, and then 429 before the body is read', async () => {
    await spendKey(ATTACKER, account.key);
    const body = JSON.stringify(SMALL_REQUEST);
    const { request, response } = send(ATTACKER, '/v1/decisions', account.key, { method: 'POST', body });
    await expectOverBudget(await response, /API key were refused: 3000 refusals per minute/);
    expect(request.bodyUsed).toBe(false);
    // The headers are the organization's own (contract: rate limits): none of this counted as a request.
    expect((await response).headers.get('x-ratelimit-limit-requests')).toBe('300');
    expect((await response).headers.get('x-ratelimit-remaining-requests')).toBe('300');
    await expectOverBudget(await listModels(SOMEBODY, account.key), /API key/);
  });

  test('harm neither another key of the project nor another organization', async () => {
    const { project_id } = account;
    const { key } = await createKey(service.accounts, OPERATOR, { project_id, name: 'Sibling' });
    await spendKey(ATTACKER, account.key);
    for (const other of [key, (await addAccount(service)).key]) {
      expect((await listModels(ATTACKER, other)).status).toBe(200);
      await expectError(await postDecision(ATTACKER, other, '{}'), 'missing_model', 'model');
    }
  });

  test('are answered again when time has passed', async () => {
    await spendKey(ATTACKER, account.key);
    clock.advance(1_000);
    await expectError(await postDecision(ATTACKER, account.key, '{}'), 'missing_model', 'model');
  });

  test('use the budget up sooner with large bodies, whether or not they say how large they are', async () => {
    const large = `{"state":"${'x'.repeat(1_000_000)}"`;
    const chunked = () => new Blob([large]).stream();
    const other = await addAccount(service);
    for (const [key, body] of [
      [account.key, () => large],
      [other.key, chunked],
    ] as const) {
      let count = 0;
      for (; count < 100; count += 1) {
        const { response } = send(ATTACKER, '/v1/decisions', key, { method: 'POST', body: body() });
        if ((await response).status === 429) break;
        await expectError(await response, 'invalid_json');
      }
      expect(count).toBe(Math.ceil(KEY_REFUSALS / (1 + Math.floor(large.length / 16_384))));
    }
  });

  test('over MCP count as those of a decision, with their bodies', async () => {
    const large = 'x'.repeat(1_000_000);
    for (const sent of [
      toolCall('decide', { record: large }),
      toolCall('guess', { record: large }),
      `"${large}`,
    ]) {
      const { key } = await addAccount(service);
      const calls = await callsAnswered(key, '/mcp', sent, 100);
      expect(calls).toBe(Math.ceil(KEY_REFUSALS / (1 + Math.floor(sent.length / 16_384))));
    }
  });

  test('of the first line of a batch count with their bytes', async () => {
    const line = `{"state":"${'x'.repeat(1_000_000)}"`;
    const calls = await callsAnswered(account.key, '/v1/decisions/batch', line, 100);
    expect(calls).toBe(Math.ceil(KEY_REFUSALS / (1 + Math.floor(line.length / 16_384))));
  });

  test('by the rate limit leave it alone: who waits for the window may ask as often as it likes', async () => {
    await setTierSettings(service.accounts, OPERATOR, account.organization_id, { requests_per_minute: 1 });
    const body = JSON.stringify(SMALL_REQUEST);
    expect((await postDecision(SOMEBODY, account.key, body)).status).toBe(200);
    for (let count = 0; count < KEY_REFUSALS + 10; count += 1) {
      const refused = await postDecision(SOMEBODY, account.key, body);
      expect((await expectError(refused, 'rate_limit_exceeded')).error.message).toContain(
        'limit of 1 requests per minute',
      );
    }
  });
});

describe('free work counts as a refusal of its key', () => {
  const free = {
    'a list of tools': ['/mcp', JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })],
    'a list of models': ['/mcp', toolCall('list_models', {})],
    usage: ['/mcp', toolCall('usage', {})],
    'a batch that has only a header': [
      '/v1/decisions/batch',
      JSON.stringify({ questions: SMALL_REQUEST.questions }),
    ],
  } as const;
  for (const [name, [path, body]] of Object.entries(free)) {
    test(name, async () => {
      const { key } = await addAccount(service, { credit_dollars: path === '/mcp' ? 0 : 5 });
      expect(await callsAnswered(key, path, body, KEY_REFUSALS + 1)).toBe(KEY_REFUSALS);
    });
  }

  test('no decision over MCP does', async () => {
    const { key } = await addAccount(service);
    const { model: _, state: record, ...asked } = SMALL_REQUEST;
    const decided = toolCall('decide', { record, ...asked });
    expect(await callsAnswered(key, '/mcp', decided, 1)).toBe(1);
    await spendKey(SOMEBODY, key);
  });
});
