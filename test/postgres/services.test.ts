import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { OPERATOR } from '../../src/access/actor.ts';
import { revokeKey } from '../../src/accounts/keys.ts';
import { setTierSettings } from '../../src/accounts/organizations.ts';
import { closeModel, openModel } from '../../src/catalog/changes.ts';
import { secretOf } from '../../src/cli/console-parts.ts';
import { randomIdentifiers } from '../../src/contract/identifiers.ts';
import { createLog } from '../../src/log/log.ts';
import { addPerson, PASSWORD, startTestConsole } from '../console/people.ts';
import { MovableClock } from '../support/clock.ts';
import { takeDatabase } from '../support/emptied-postgres.ts';
import { eventually } from '../support/eventually.ts';
import { instantEngine } from '../support/instant-engine.ts';
import { ledgerOf } from '../support/money.ts';
import { pausePostgres } from '../support/paused-postgres.ts';
import {
  administer,
  isPostgresMissing,
  type PostgresServer,
  sharedPostgres,
  startPostgres,
  type TestDatabase,
} from '../support/postgres.ts';
import { PostgresProxy } from '../support/postgres-proxy.ts';
import { ask } from '../support/requests.ts';
import {
  addAccount,
  addRichlyLimited,
  startTestService,
  type TestAccount,
  type TestService,
} from '../support/service.ts';

setDefaultTimeout(180_000);

const OUTAGE_CODES = ['auth_unavailable', 'billing_unavailable', 'catalog_unavailable'];
const CREDIT_MICROS = 10_000_000;
/** With real plans, and made-up scores without the model's work. */
const openEngine = instantEngine;

interface Answer {
  readonly status: number;
  readonly code: string | null;
}

async function answered(response: Promise<Response>): Promise<Answer> {
  const { status, ...rest } = await response.then(async (one) => ({
    status: one.status,
    text: await one.text(),
  }));
  return { status, code: /"code":"(\w+)"/.exec(rest.text)?.[1] ?? null };
}

/** Resolves with an organization's credit, held credit, and the cost of its answered requests. */
async function booksOf({ accounts: { store } }: TestService, { organization_id }: TestAccount) {
  const organization = await store.accounts.findOrganization(organization_id);
  const rows = await store.usage.page({ organization_id, status: 200 }, 100_000, undefined);
  return {
    credit_micros: organization?.credit_micros,
    held_micros: organization?.held_micros,
    answered: rows.length,
    cost_micros: rows.reduce((sum, { cost_micros }) => sum + cost_micros, 0),
  };
}

async function expectCleanAudit({ database }: TestService): Promise<void> {
  const report = await database.audit();
  expect(report.checks.filter(({ violations }) => violations.length > 0)).toEqual([]);
  expect(report.open_holds).toBe(0);
}

describe.skipIf(isPostgresMissing())('two nodes on one PostgreSQL', () => {
  const clock = new MovableClock();
  let database: TestDatabase;
  let nodes: readonly [TestService, TestService];
  beforeAll(async () => {
    database = await takeDatabase();
    const start = () => startTestService({ postgres_url: database.url, clock, openEngine });
    nodes = [await start(), await start()];
  });
  afterAll(async () => {
    for (const node of nodes) await node.close();
    await database[Symbol.asyncDispose]();
  });

  test('credit for exactly 40 requests gives exactly 40 answers under 64 connections to both', async () => {
    const [one, other] = nodes;
    const first = await addRichlyLimited(one, CREDIT_MICROS);
    expect((await answered(ask(one, first.key))).status).toBe(200);
    const { cost_micros } = await booksOf(one, first);
    const account = await addRichlyLimited(one, 40 * cost_micros);
    const answers = await Promise.all(
      Array.from({ length: 64 }, (_, index) => answered(ask(index % 2 === 0 ? one : other, account.key))),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(40);
    expect(answers.filter(({ status }) => status !== 200 && status !== 402)).toEqual([]);
    expect(await booksOf(other, account)).toEqual({
      credit_micros: 0,
      held_micros: 0,
      answered: 40,
      cost_micros: 40 * cost_micros,
    });
    await expectCleanAudit(other);
  });

  test('a rate limit holds exactly over both', async () => {
    const account = await addAccount(nodes[0]);
    const limit = 20;
    await setTierSettings(nodes[0].accounts, OPERATOR, account.organization_id, {
      requests_per_minute: limit,
    });
    const answers = await Promise.all(
      Array.from({ length: 3 * limit }, (_, index) =>
        answered(ask(index % 2 === 0 ? nodes[0] : nodes[1], account.key)),
      ),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(limit);
    expect(
      answers.filter(({ status, code }) => status === 429 && code === 'rate_limit_exceeded'),
    ).toHaveLength(2 * limit);
  });

  test('a key that is revoked on one is refused by the other after 60 seconds', async () => {
    const [one, other] = nodes;
    const account = await addAccount(one);
    expect((await answered(ask(other, account.key))).status).toBe(200);
    await revokeKey(one.accounts, OPERATOR, account.key_id);
    clock.advance(60_000);
    for (const node of nodes) {
      expect(await answered(ask(node, account.key))).toEqual({ status: 401, code: 'invalid_api_key' });
    }
  });

  test('limits that are set on one hold on the other after 60 seconds', async () => {
    const [one, other] = nodes;
    const account = await addAccount(one);
    expect((await answered(ask(other, account.key))).status).toBe(200);
    await setTierSettings(one.accounts, OPERATOR, account.organization_id, { requests_per_minute: 1 });
    clock.advance(60_000);
    const again = await ask(other, account.key);
    expect(again.headers.get('x-ratelimit-limit-requests')).toBe('1');
    await again.arrayBuffer();
  });

  test('a model that is closed or opened on one is so on the other', async () => {
    const [one, other] = nodes;
    const account = await addAccount(one);
    await closeModel(one.accounts, OPERATOR, 'decision-1');
    expect(await answered(ask(other, account.key))).toEqual({ status: 404, code: 'model_not_found' });
    await openModel(one.accounts, OPERATOR, 'decision-1');
    expect((await answered(ask(other, account.key))).status).toBe(200);
  });

  test('a session of the console works on both, with its token for changes, and ends on both', async () => {
    const secrets = await Promise.all(nodes.map((node) => secretOf(node.directory, node.database)));
    expect(secrets[0]).toMatch(/^[0-9a-f]{64}$/);
    const consoles = await Promise.all(
      secrets.map((secret) => startTestConsole({ postgres_url: database.url, clock }, { secret })),
    );
    const [one, other] = consoles;
    if (one === undefined || other === undefined) throw new Error('there are not two nodes');
    try {
      const person = await addPerson(one, { email: 'ada@example.com' });
      const session = () =>
        other.service.fetch('/console/api/session', { headers: { cookie: person.cookie } });
      expect(await (await session()).json()).toMatchObject({
        user: { email: 'ada@example.com' },
        csrf_token: person.csrf_token,
      });
      const ended = await other.service.fetch('/console/api/sign-out', {
        method: 'POST',
        headers: {
          cookie: person.cookie,
          origin: other.service.server.address,
          'x-csrf-token': person.csrf_token,
        },
      });
      expect(ended.ok).toBe(true);
      for (const node of consoles) {
        const after = await node.service.fetch('/console/api/session', {
          headers: { cookie: person.cookie },
        });
        expect(await after.json()).toMatchObject({ user: null });
      }
    } finally {
      for (const node of consoles) await node.close();
    }
  });

  test.each(['credit', 'refund'])(
    'an entry by hand whose commit was not answered is made once when it is sent again: %s',
    async (what) => {
      using proxy = new PostgresProxy((await sharedPostgres()).port);
      const made = await startTestConsole({ postgres_url: proxy.url(database.url), clock });
      try {
        const person = await addPerson(made, { email: `${what}@example.com`, is_operator: true });
        const account = await addAccount(made.service);
        const before = await ledgerOf(made.service, account);
        const entry = { entry_id: `entry_of_a_lost_${what}`, amount_micros: 7_000_000 };
        const body = what === 'credit' ? { ...entry, is_forced: false } : entry;
        const path = `/console/api/operator/organizations/${account.organization_id}/${what}`;
        proxy.cutNext('after the commit');
        const lost = await person.ask(path, { body });
        expect([lost.status, proxy.cuts]).toEqual([503, 1]);
        const again = await person.ask(path, { body });
        const credit_micros = what === 'credit' ? 32_000_000 : 18_000_000;
        expect([again.status, await again.json()]).toEqual([200, { credit_micros, tier: 1 }]);
        const after = await ledgerOf(made.service, account);
        expect(after).toHaveLength(before.length + 1);
      } finally {
        await made.close();
      }
    },
  );

  test('one of them does the hourly work, once an hour', async () => {
    const served = await Promise.all(
      nodes.map((node) =>
        node.database.serve({
          clock,
          process_id: randomIdentifiers.id('process'),
          log: createLog('silent'),
          report: () => undefined,
          onCommit: () => undefined,
        }),
      ),
    );
    const asked = await Promise.all(served.flatMap((one) => [one.beginsHourlyRun(), one.beginsHourlyRun()]));
    expect(asked.filter(Boolean)).toHaveLength(1);
    for (const one of served) await one.close();
  });
});

describe.skipIf(isPostgresMissing())('a PostgreSQL that cannot be reached', () => {
  let server: PostgresServer;
  let nodes: readonly TestService[];
  const clock = new MovableClock();
  beforeAll(async () => {
    server = await startPostgres();
    await administer(server, 'CREATE DATABASE tds');
    const { openPostgres } = await import('../../src/cli/open-postgres.ts');
    await (
      await openPostgres({ database: server.url('tds'), databasePassword: undefined }, { create: true })
    ).close();
    const start = () => startTestService({ postgres_url: server.url('tds'), clock, openEngine });
    nodes = [await start(), await start()];
  });
  afterAll(async () => {
    for (const node of nodes) await node.close();
    await server.remove();
  });

  test('that is away does not keep a node from stopping, and another start goes on', async () => {
    const url = server.url('tds');
    const node = await startTestService({ postgres_url: url, clock, openEngine });
    const account = await addRichlyLimited(node, CREDIT_MICROS);
    expect((await answered(ask(node, account.key))).status).toBe(200);
    await server.stop('immediate');
    try {
      expect((await answered(ask(node, account.key))).status).toBe(503);
      await node.close();
    } finally {
      await server.start();
    }
    await untilAnswered(account);
    await expectExact(account, 1 + nodes.length);
  });

  let people = 0;
  async function startConsole() {
    people += 1;
    const made = await startTestConsole({ postgres_url: server.url('tds'), clock });
    return { made, person: await addPerson(made, { email: `person_${people}@example.com` }) };
  }

  /** Asks on all nodes at once until `work` is done; resolves with all answers. */
  async function askingWhile(account: TestAccount, work: () => Promise<unknown>): Promise<readonly Answer[]> {
    const answers: Answer[] = [];
    let is_done = false;
    const client = async (node: TestService) => {
      while (!is_done) answers.push(await answered(ask(node, account.key)));
    };
    const clients = nodes.flatMap((node) => Array.from({ length: 8 }, () => client(node)));
    await work();
    is_done = true;
    await Promise.all(clients);
    return answers;
  }

  /** Asks each node until it answers once. */
  async function untilAnswered(account: TestAccount): Promise<void> {
    for (const node of nodes)
      await eventually(async () => (await answered(ask(node, account.key))).status === 200);
  }

  async function expectExact(account: TestAccount, answers: number): Promise<void> {
    for (const node of nodes) await node.service.services.books.whenSettled();
    const [node] = nodes;
    if (node === undefined) throw new Error('there is no node');
    const books = await booksOf(node, account);
    expect(books).toMatchObject({ held_micros: 0, credit_micros: CREDIT_MICROS - books.cost_micros });
    expect(books.answered).toBe(answers);
    await expectCleanAudit(node);
  }

  const outages = [
    [
      'is stopped and started again',
      async () => {
        await server.stop('fast');
        return () => server.start();
      },
    ],
    [
      'crashes and is started again',
      async () => {
        await server.stop('immediate');
        return () => server.start();
      },
    ],
    [
      'hangs and goes on',
      () => {
        const goOn = pausePostgres(server);
        return Promise.resolve(() => Promise.resolve(goOn()));
      },
    ],
  ] as const;

  test.each(outages)('that %s: the console says 503 meanwhile, and keeps its sessions', async (_, begin) => {
    const { made, person } = await startConsole();
    try {
      const end = await begin();
      try {
        const sign_in = { email: person.email, password: PASSWORD };
        const name = { name: 'Ada' };
        for (const asked of [
          () => person.ask('/console/api/session'),
          () => person.ask(`/console/api/organizations/${person.organization_id}/keys`),
          () => person.ask('/console/api/account', { method: 'PATCH', body: name }),
          () => person.ask('/console/api/sign-in', { body: sign_in }),
        ]) {
          const response = await asked();
          expect(response.status).toBe(503);
          expect(await response.json()).toMatchObject({
            error: {
              type: 'overloaded_error',
              code: 'auth_unavailable',
              message: 'The service is briefly unavailable: try again in a moment.',
            },
            request_id: response.headers.get('x-request-id'),
          });
        }
      } finally {
        await end();
      }
      let again = await person.ask('/console/api/session');
      while (again.status === 503) again = await person.ask('/console/api/session');
      expect(await again.json()).toMatchObject({ user: { email: person.email } });
    } finally {
      await made.close();
    }
  });

  test.each(outages)('that %s: errors are 503 and uncharged, and all goes on by itself', async (_, begin) => {
    const [node] = nodes;
    if (node === undefined) throw new Error('there is no node');
    const account = await addRichlyLimited(node, CREDIT_MICROS);
    await untilAnswered(account);
    // While it is away every request gets its answer: the test would not end otherwise.
    let refused: readonly Answer[] = [];
    const answers = await askingWhile(account, async () => {
      await Bun.sleep(200);
      const end = await begin();
      try {
        clock.advance(60_000);
        refused = await Promise.all(nodes.map((one) => answered(ask(one, account.key))));
      } finally {
        await end();
      }
      await untilAnswered(account);
    });
    expect(refused.map(({ status }) => status)).toEqual(nodes.map(() => 503));
    expect(answers.filter(({ status }) => status !== 200 && status !== 503)).toEqual([]);
    const codes = new Set(
      [...answers, ...refused].filter(({ status }) => status === 503).map(({ code }) => code),
    );
    expect([...codes].filter((code) => code === null || !OUTAGE_CODES.includes(code))).toEqual([]);
    // Before, once everything went on again, and meanwhile.
    const others = 2 * nodes.length;
    await expectExact(account, others + answers.filter(({ status }) => status === 200).length);
  });
});
