import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { OPERATOR } from '../../src/access/actor.ts';
import { createKey, revokeKey } from '../../src/accounts/keys.ts';
import { readOrganization, setTierSettings } from '../../src/accounts/organizations.ts';
import { archiveProject, changeProject, createProject } from '../../src/accounts/projects.ts';
import { creditByHand, refundByHand } from '../../src/payments/credit.ts';
import { DAY_MS } from '../../src/time/clock.ts';
import { MovableClock } from '../support/clock.ts';
import { type Around, aborted, Gate, intercepted } from '../support/faults.ts';
import { booksOf, closeAudited, DOLLAR, ledgerOf, untilHeld, usageOf } from '../support/money.ts';
import { ask, SMALL_REQUEST } from '../support/requests.ts';
import {
  addAccount,
  MODEL_TEST_TIMEOUT_MS,
  startTestService,
  type TestAccount,
  type TestService,
} from '../support/service.ts';
import { expectDecision, expectError } from './expectations.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

/** The wrapper of the next evaluations. */
let around: Around = (run) => run();
let service: TestService;
beforeAll(async () => {
  service = await startTestService({
    clock: MovableClock.stopped(),
    openEngine: (engine) => intercepted(engine, (run, options) => around(run, options)),
  });
});
afterAll(() => closeAudited(service));

function listModels(key: string): Promise<Response> {
  return service.fetch('/v1/models', { headers: { 'x-api-key': key } });
}

describe('API key', () => {
  test('create: usable at once', async () => {
    const { project_id } = await addAccount(service);
    const { key } = await createKey(service.accounts, OPERATOR, { project_id, name: 'New' });
    await expectDecision(await ask(service, key));
  });

  /** Revokes the keys of a project past this service's store, as another node does. */
  const revokeElsewhere = (project_id: string) =>
    service.execute(
      `UPDATE api_keys SET revoked_at_ms = ${service.clock.now_ms()} WHERE project_id = '${project_id}'`,
    );

  test('revoke by another node: works for up to 60 seconds more and is billed, afterwards 401 invalid_api_key', async () => {
    const account = await addAccount(service);
    await expectDecision(await ask(service, account.key));
    await revokeElsewhere(account.project_id);
    const before = await booksOf(service, account);
    service.clock.advance(59_999);
    const { usage } = await expectDecision(await ask(service, account.key));
    expect(usage.cost_usd).toBeGreaterThan(0);
    expect((await booksOf(service, account)).credit_micros).toBe(
      before.credit_micros - Math.round(usage.cost_usd * 1e6),
    );
    service.clock.advance(1);
    await expectError(await ask(service, account.key), 'invalid_api_key');
    await expectError(await listModels(account.key), 'invalid_api_key');
  });

  test.each([
    [
      'revoked',
      ({ key_id }: TestAccount) => revokeKey(service.accounts, OPERATOR, key_id).then(() => undefined),
    ],
    [
      'project archived',
      ({ project_id }: TestAccount) =>
        archiveProject(service.accounts, OPERATOR, project_id).then(() => undefined),
    ],
  ])('%s at this node: refused at once', async (_, end) => {
    const account = await addAccount(service);
    await expectDecision(await ask(service, account.key));
    await end(account);
    await expectError(await ask(service, account.key), 'invalid_api_key');
    await expectError(await listModels(account.key), 'invalid_api_key');
  });

  test('revoked before it was used: refused at once, and never again accepted', async () => {
    const account = await addAccount(service);
    await revokeKey(service.accounts, OPERATOR, account.key_id);
    await expectError(await ask(service, account.key), 'invalid_api_key');
    service.clock.advance(60_000);
    await expectError(await ask(service, account.key), 'invalid_api_key');
  });

  test('the wall clock stepping back does not prolong a revoked key', async () => {
    const account = await addAccount(service);
    await expectDecision(await ask(service, account.key));
    await revokeKey(service.accounts, OPERATOR, account.key_id);
    service.clock.stepWallClock(-DAY_MS);
    service.clock.advance(60_000);
    await expectError(await ask(service, account.key), 'invalid_api_key');
    service.clock.stepWallClock(DAY_MS);
  });
});

describe('Organization tier', () => {
  const limitOf = async (key: string) => {
    const response = await ask(service, key);
    await expectDecision(response);
    return Number(response.headers.get('x-ratelimit-limit-requests'));
  };

  test('Tier 0, first top-up of at least $5: Tier 1, immediately', async () => {
    const account = await addAccount(service, { credit_dollars: 0 });
    await expectError(await ask(service, account.key), 'insufficient_credit');
    await creditByHand(service.accounts, OPERATOR, { ...account, amount_micros: 5 * DOLLAR });
    expect(await limitOf(account.key)).toBe(300);
  });

  test('Tier N, total paid and days reach the next bar: Tier N+1, new limits within 60 seconds', async () => {
    const account = await addAccount(service, { credit_dollars: 25 });
    expect(await limitOf(account.key)).toBe(300);
    service.clock.advance(7 * DAY_MS);
    await creditByHand(service.accounts, OPERATOR, { ...account, amount_micros: 25 * DOLLAR });
    service.clock.advance(60_000);
    expect(await limitOf(account.key)).toBe(700);
  });

  test('Tier N, the day comes that earns Tier N+1: new limits within 60 seconds, before any job has run', async () => {
    const account = await addAccount(service, { credit_dollars: 50 });
    service.clock.advance(7 * DAY_MS - 1);
    expect(await limitOf(account.key)).toBe(300);
    service.clock.advance(60_000);
    expect(await limitOf(account.key)).toBe(700);
    const stored = await readOrganization(service.accounts.store, account.organization_id);
    expect(stored.tier).toBe(1);
  });

  test('the operator’s part of a tier applies by time too: dedicated limits stay beside the new tier’s', async () => {
    const account = await addAccount(service, { credit_dollars: 50 });
    await setTierSettings(service.accounts, OPERATOR, account.organization_id, { requests_per_minute: 450 });
    service.clock.advance(7 * DAY_MS);
    const response = await ask(service, account.key);
    await expectDecision(response);
    expect(response.headers.get('x-ratelimit-limit-requests')).toBe('450');
    expect(response.headers.get('x-ratelimit-limit-tokens')).toBe('700000');
  });

  test('refund of everything: the days since the first payment start anew', async () => {
    const account = await addAccount(service, { credit_dollars: 50 });
    service.clock.advance(60 * DAY_MS);
    await refundByHand(service.accounts, OPERATOR, { ...account, amount_micros: 50 * DOLLAR });
    await creditByHand(service.accounts, OPERATOR, { ...account, amount_micros: 2_500 * DOLLAR });
    expect(await limitOf(account.key)).toBe(300);
  });

  test('refund: the tier is recalculated, and requests of a balance below $0 get 402 until credit is added', async () => {
    const account = await addAccount(service, { credit_dollars: 25 });
    await expectDecision(await ask(service, account.key));
    await refundByHand(service.accounts, OPERATOR, { ...account, amount_micros: 20 * DOLLAR });
    expect((await booksOf(service, account)).credit_micros).toBeLessThan(5 * DOLLAR);
    await refundByHand(service.accounts, OPERATOR, { ...account, amount_micros: 5 * DOLLAR });
    expect((await booksOf(service, account)).credit_micros).toBeLessThan(0);
    await expectError(await ask(service, account.key), 'insufficient_credit');
    service.clock.advance(60_000);
    await expectError(await ask(service, account.key), 'insufficient_credit');
    await creditByHand(service.accounts, OPERATOR, { ...account, amount_micros: 5 * DOLLAR });
    await expectDecision(await ask(service, account.key));
  });
});

describe('Credit hold for one request', () => {
  afterEach(() => {
    around = (run) => run();
  });

  /** Starts a request and returns when its hold is placed and the model is about to answer it. */
  async function startHeld(key: string) {
    const gate = new Gate();
    around = gate.hold;
    const response = ask(service, key);
    await gate.reached;
    around = (run) => run();
    return { response, answer: () => gate.open() };
  }

  /** Sends a request whose client leaves when `begun` resolves, and returns when no hold is left. */
  async function leave(account: TestAccount, begun: Promise<void>): Promise<void> {
    const client = new AbortController();
    const response = service.fetch('/v1/decisions', {
      method: 'POST',
      headers: { authorization: `Bearer ${account.key}` },
      body: JSON.stringify(SMALL_REQUEST),
      signal: client.signal,
    });
    const outcome = response.then(
      () => 'answered',
      () => 'left',
    );
    await begun;
    client.abort();
    expect(await outcome).toBe('left');
    await untilHeld(service, account, 0);
  }

  test('credit covers the worst case: hold placed; success: the exact cost is deducted, the remainder released', async () => {
    const account = await addAccount(service);
    const before = await booksOf(service, account);
    const { response, answer } = await startHeld(account.key);
    const during = await booksOf(service, account);
    expect(during.credit_micros).toBe(before.credit_micros);
    expect(during.held_micros).toBeGreaterThan(0);
    answer();
    const cost_micros = Math.round((await expectDecision(await response)).usage.cost_usd * 1e6);
    expect(cost_micros).toBeLessThanOrEqual(during.held_micros);
    expect(await booksOf(service, account)).toEqual({
      credit_micros: before.credit_micros - cost_micros,
      held_micros: 0,
      usage_rows: 1,
    });
    expect((await ledgerOf(service, account)).map(({ kind }) => kind)).toEqual(['top_up', 'hold', 'charge']);
  });

  test('credit cannot cover it: 402 insufficient_credit, nothing runs', async () => {
    const account = await addAccount(service, { credit_dollars: 0, tier: 1 });
    await expectError(await ask(service, account.key), 'insufficient_credit');
    expect(await booksOf(service, account)).toEqual({ credit_micros: 0, held_micros: 0, usage_rows: 0 });
    expect(await ledgerOf(service, account)).toEqual([]);
  });

  test('the hold would take the project over its monthly limit: 429 project_spend_limit, nothing runs', async () => {
    const account = await addAccount(service);
    await changeProject(service.accounts, OPERATOR, {
      project_id: account.project_id,
      spend_limit_micros: 3,
    });
    await expectError(await ask(service, account.key), 'project_spend_limit');
    expect(await usageOf(service, account)).toEqual([]);
    expect((await ledgerOf(service, account)).map(({ kind }) => kind)).toEqual(['top_up']);
  });

  test('the model fails: the whole hold is released, nothing charged', async () => {
    const account = await addAccount(service);
    const before = await booksOf(service, account);
    around = () => Promise.reject(new Error('a decode failed'));
    await expectError(await ask(service, account.key), 'model_unavailable');
    around = (run) => run();
    expect(await booksOf(service, account)).toEqual({ ...before, usage_rows: 1 });
    expect((await ledgerOf(service, account)).map(({ kind }) => kind)).toEqual(['top_up']);
  });

  test('the model rejects: nothing is held any more, nothing charged', async () => {
    const account = await addAccount(service);
    const before = await booksOf(service, account);
    const questions = { q: { type: 'noul', criteria: 'yes' } };
    await expectError(
      await ask(service, account.key, { questions }),
      'invalid_request',
      'questions.q.criteria',
    );
    expect(await booksOf(service, account)).toEqual({ ...before, usage_rows: 1 });
    expect((await ledgerOf(service, account)).map(({ kind }) => kind)).toEqual(['top_up']);
  });

  test('the model rejects what the credit does not cover, or the spend limit: refused as a hold would be', async () => {
    const questions = { q: { type: 'noul', criteria: 'yes' } };
    const poor = await addAccount(service, { credit_dollars: 0, tier: 1 });
    await expectError(await ask(service, poor.key, { questions }), 'insufficient_credit');
    const spent = await addAccount(service);
    await changeProject(service.accounts, OPERATOR, { project_id: spent.project_id, spend_limit_micros: 0 });
    await expectError(await ask(service, spent.key, { questions }), 'project_spend_limit');
  });

  test('402 although the balance exceeds the cost, because a hold in flight reserves it; fine again afterwards', async () => {
    const probe = await addAccount(service);
    const { usage } = await expectDecision(await ask(service, probe.key));
    const cost_micros = Math.round(usage.cost_usd * 1e6);
    const account = await addAccount(service, { credit_dollars: (2 * cost_micros - 1) / 1e6, tier: 1 });
    const first = await startHeld(account.key);
    expect((await booksOf(service, account)).credit_micros).toBeGreaterThan(cost_micros);
    await expectError(await ask(service, account.key), 'insufficient_credit');
    first.answer();
    await expectDecision(await first.response);
    expect(await booksOf(service, account)).toMatchObject({ credit_micros: cost_micros - 1, held_micros: 0 });
  });

  test('holds of two projects in flight share the credit, not the spend limit', async () => {
    const account = await addAccount(service);
    const { id: project_id } = await createProject(service.accounts, OPERATOR, {
      ...account,
      name: 'Second',
    });
    const second = await createKey(service.accounts, OPERATOR, { project_id, name: 'Second' });
    await changeProject(service.accounts, OPERATOR, {
      project_id: account.project_id,
      spend_limit_micros: 0,
    });
    await expectError(await ask(service, account.key), 'project_spend_limit');
    await expectDecision(await ask(service, second.key));
  });

  test('a client that leaves before its turn: the hold is released, nothing is recorded', async () => {
    const account = await addAccount(service);
    const begun = Promise.withResolvers<void>();
    around = async (run, { signal }) => {
      begun.resolve();
      await aborted(signal);
      return await run();
    };
    await leave(account, begun.promise);
    expect(await usageOf(service, account)).toEqual([]);
    expect((await ledgerOf(service, account)).map(({ kind }) => kind)).toEqual(['top_up']);

    // Its place in the windows is taken all the same, or leaving early would be free work.
    around = (run) => run();
    const fresh = await ask(service, (await addAccount(service)).key);
    const next = await ask(service, account.key);
    await expectDecision(fresh);
    await expectDecision(next);
    const estimate = 300_000 - Number(fresh.headers.get('x-ratelimit-remaining-tokens'));
    expect(next.headers.get('x-ratelimit-remaining-tokens')).toBe(String(300_000 - 2 * estimate));
    expect(next.headers.get('x-ratelimit-remaining-requests')).toBe('298');
  });

  test('a client that leaves once the model has begun: billed, if the request completes', async () => {
    const account = await addAccount(service);
    const begun = Promise.withResolvers<void>();
    around = async (run, { signal }) => {
      const scores = await run();
      begun.resolve();
      await aborted(signal);
      return scores;
    };
    await leave(account, begun.promise);
    expect(await usageOf(service, account)).toMatchObject([{ status: 200, questions: 1 }]);
    expect((await ledgerOf(service, account)).map(({ kind }) => kind)).toEqual(['top_up', 'hold', 'charge']);
  });
});
