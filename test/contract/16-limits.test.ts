import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { OPERATOR } from '../../src/access/actor.ts';
import { createKey } from '../../src/accounts/keys.ts';
import { setTierSettings } from '../../src/accounts/organizations.ts';
import { changeProject, createProject } from '../../src/accounts/projects.ts';
import { creditByHand, topUpRange } from '../../src/payments/credit.ts';
import { MovableClock } from '../support/clock.ts';
import { eventually } from '../support/eventually.ts';
import { type Around, Gate, intercepted, withoutTable } from '../support/faults.ts';
import { booksOf, closeAudited } from '../support/money.ts';
import { ask, post, SMALL_REQUEST } from '../support/requests.ts';
import {
  addAccount,
  IS_ON_POSTGRES,
  MODEL_TEST_TIMEOUT_MS,
  startTestService,
  type TestAccount,
  type TestService,
} from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { expectDecision, expectError } from './expectations.ts';
import { TIERS } from './spec.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

let around: Around = (run) => run();
let service: TestService;
beforeAll(async () => {
  service = await startTestService({
    clock: MovableClock.stopped(),
    openEngine: (engine) => intercepted(engine, (run, options) => around(run, options)),
  });
});
afterAll(() => closeAudited(service));
afterEach(() => {
  around = (run) => run();
});

type Limits = Parameters<typeof setTierSettings>[3];

/** An account with dedicated limits. */
async function limitedAccount(limits: Limits, on: TestService = service): Promise<TestAccount> {
  const account = await addAccount(on);
  await setTierSettings(on.accounts, OPERATOR, account.organization_id, limits);
  return account;
}

async function expectLimited(response: Response, retry_after_s: number): Promise<string> {
  const { error } = await expectError(response, 'rate_limit_exceeded');
  expect(response.headers.get('retry-after')).toBe(String(retry_after_s));
  return error.message;
}

/** Resolves with the billed tokens of the small request, and the reserved tokens of the window. */
async function sizes(): Promise<{ billed: number; estimate: number }> {
  const response = await ask(service, (await addAccount(service)).key);
  const { usage } = await expectDecision(response);
  const estimate = 300_000 - Number(response.headers.get('x-ratelimit-remaining-tokens'));
  return { billed: usage.input_tokens, estimate };
}

describe('Tiers', () => {
  for (const { tier, rpm, tpm, questions, top_up_dollars } of TIERS) {
    test(`Tier ${tier}: ${rpm} RPM, ${tpm} TPM, ${questions} questions, top-ups to $${top_up_dollars}`, async () => {
      expect(1_000 * rpm).toBe(tpm);
      const account = await addAccount(service, { tier });
      const response = await ask(service, account.key);
      await expectDecision(response);
      expect(response.headers.get('x-ratelimit-limit-requests')).toBe(String(rpm));
      expect(response.headers.get('x-ratelimit-limit-tokens')).toBe(String(tpm));
      const many = Object.fromEntries(
        Array.from({ length: questions + 1 }, (_, index) => [`q${index}`, { type: 'noul' }]),
      );
      await expectError(
        await ask(service, account.key, { questions: many }),
        'too_many_questions',
        'questions',
      );
      const organization = await setTierSettings(service.accounts, OPERATOR, account.organization_id, {});
      expect(topUpRange(organization, service.clock.now_ms())).toEqual({
        least: 5_000_000,
        most: top_up_dollars * 1_000_000,
      });
    });
  }

  for (const { tier, top_up_dollars } of TIERS) {
    test(`Tier ${tier}: one top-up is from $5 to $${top_up_dollars}, to the micro-dollar`, async () => {
      const { organization_id } = await addAccount(service, { credit_dollars: 0, tier });
      const topUp = (amount_micros: number) =>
        creditByHand(service.accounts, OPERATOR, { organization_id, amount_micros, within_range: true });
      const most = top_up_dollars * 1_000_000;
      for (const outside of [4_999_999, most + 1])
        await expect(topUp(outside)).rejects.toMatchObject({ code: 'top_up_out_of_range' });
      expect((await topUp(5_000_000)).credit_micros).toBe(5_000_000);
      expect((await topUp(most)).credit_micros).toBe(5_000_000 + most);
    });
  }

  test('Tier 0: no API access, 402 before the body is looked at', async () => {
    const { key } = await addAccount(service, { credit_dollars: 0 });
    await expectError(await post(service, key, '{'), 'insufficient_credit');
    await expectError(await post(service, key, ' '.repeat(2_000_000)), 'insufficient_credit');
  });

  test('dedicated limits replace only what is set, within a minute', async () => {
    const account = await addAccount(service, { tier: 2 });
    await expectDecision(await ask(service, account.key));
    await setTierSettings(service.accounts, OPERATOR, account.organization_id, { tokens_per_minute: 5_000 });
    service.clock.advance(60_000);
    const tokens = await ask(service, account.key);
    await expectDecision(tokens);
    expect(tokens.headers.get('x-ratelimit-limit-tokens')).toBe('5000');
    expect(tokens.headers.get('x-ratelimit-limit-requests')).toBe('700');
    await setTierSettings(service.accounts, OPERATOR, account.organization_id, {
      tokens_per_minute: null,
      questions_per_request: 2,
    });
    service.clock.advance(60_000);
    const many = { a: { type: 'noul' }, b: { type: 'noul' }, c: { type: 'noul' } };
    await expectError(
      await ask(service, account.key, { questions: many }),
      'too_many_questions',
      'questions',
    );
    const back = await ask(service, account.key);
    await expectDecision(back);
    expect(back.headers.get('x-ratelimit-limit-tokens')).toBe('700000');
  });

  test('dedicated limits can allow more questions than any tier', async () => {
    const account = await limitedAccount({ questions_per_request: 70 });
    const many = Object.fromEntries(
      Array.from({ length: 70 }, (_, index) => [`q${index}`, { type: 'noul' }]),
    );
    const { usage } = await expectDecision(await ask(service, account.key, { questions: many }));
    expect(usage.decisions).toBe(70);
  });
});

describe('Requests per minute', () => {
  test('a request leaves the window 60 seconds after it was made; there is no reset at a minute', async () => {
    const { key } = await limitedAccount({ requests_per_minute: 3 });
    for (const wait_ms of [0, 10_000, 10_000]) {
      service.clock.advance(wait_ms);
      await expectDecision(await ask(service, key));
    }
    expect(await expectLimited(await ask(service, key), 40)).toContain('3 requests');
    service.clock.advance(39_999);
    await expectLimited(await ask(service, key), 1);
    service.clock.advance(1);
    await expectDecision(await ask(service, key));
    await expectLimited(await ask(service, key), 10);
    service.clock.advance(10_000);
    await expectDecision(await ask(service, key));
  });

  test('the limit is the whole organization’s: all projects, keys and both endpoints together', async () => {
    const account = await limitedAccount({ requests_per_minute: 2 });
    const { id: project_id } = await createProject(service.accounts, OPERATOR, {
      ...account,
      name: 'Second',
    });
    const second = await createKey(service.accounts, OPERATOR, { project_id, name: 'Second' });
    await expectDecision(await ask(service, account.key));
    await expectDecision(await post(service, second.key, SMALL_REQUEST, '/v1/systemone'));
    await expectLimited(await ask(service, account.key), 60);
    await expectLimited(await ask(service, second.key), 60);
    await expectDecision(await ask(service, (await addAccount(service)).key));
  });

  test('each request counts as one, however many questions', async () => {
    const { key } = await limitedAccount({ requests_per_minute: 2 });
    const many = Object.fromEntries(
      Array.from({ length: 20 }, (_, index) => [`q${index}`, { type: 'noul' }]),
    );
    const response = await ask(service, key, { questions: many });
    await expectDecision(response);
    expect(response.headers.get('x-ratelimit-remaining-requests')).toBe('1');
  });

  test('not counted: the model list, validation refusals, requests refused because RPM is reached', async () => {
    const { key } = await limitedAccount({ requests_per_minute: 1 });
    await (await service.fetch('/v1/models', { headers: { 'x-api-key': key } })).text();
    await expectError(await post(service, key, '{'), 'invalid_json');
    await expectError(await post(service, key, ' '.repeat(2_000_000)), 'request_too_large');
    await expectError(await ask(service, key, { model: 'none' }), 'model_not_found', 'model');
    await expectError(await ask(service, key, { mode: 'slow' }), 'invalid_mode', 'mode');
    await expectDecision(await ask(service, key));
    for (let count = 0; count < 3; count += 1) {
      service.clock.advance(1_000);
      await expectLimited(await ask(service, key), 59 - count);
    }
    service.clock.advance(57_000);
    await expectDecision(await ask(service, key));
  });

  test('counted: requests refused for the spend limit, for credit, for TPM, and those that the model fails', async () => {
    const remainingAfter = async (account: TestAccount, refused: () => Promise<unknown>) => {
      await refused();
      await changeProject(service.accounts, OPERATOR, {
        project_id: account.project_id,
        spend_limit_micros: null,
      });
      const response = await ask(service, account.key);
      await response.text();
      return response.headers.get('x-ratelimit-remaining-requests');
    };
    const spent = await addAccount(service);
    await changeProject(service.accounts, OPERATOR, { project_id: spent.project_id, spend_limit_micros: 0 });
    expect(
      await remainingAfter(spent, async () =>
        expectError(await ask(service, spent.key), 'project_spend_limit'),
      ),
    ).toBe('298');
    const failed = await addAccount(service);
    around = () => Promise.reject(new Error('a decode failed'));
    await expectError(await ask(service, failed.key), 'model_unavailable');
    around = (run) => run();
    expect(await remainingAfter(failed, () => Promise.resolve())).toBe('298');

    const poor = await addAccount(service, { credit_dollars: 0, tier: 1 });
    await setTierSettings(service.accounts, OPERATOR, poor.organization_id, { requests_per_minute: 1 });
    await expectError(await ask(service, poor.key), 'insufficient_credit');
    await expectLimited(await ask(service, poor.key), 60);

    const crowded = await limitedAccount({ requests_per_minute: 2, tokens_per_minute: 1 });
    await expectDecision(await ask(service, crowded.key));
    expect(await expectLimited(await ask(service, crowded.key), 60)).toContain('tokens');
    expect(await expectLimited(await ask(service, crowded.key), 60)).toContain('requests');
  });

  test('of many at once exactly as many pass as there are slots', async () => {
    const account = await limitedAccount({ requests_per_minute: 7 });
    const responses = await Promise.all(Array.from({ length: 40 }, () => ask(service, account.key)));
    const bodies = await Promise.all(responses.map((response) => response.text()));
    expect(bodies).toHaveLength(40);
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(7);
    expect(responses.filter(({ status }) => status === 429)).toHaveLength(33);
    expect(await booksOf(service, account)).toMatchObject({ usage_rows: 7, held_micros: 0 });
  });
});

describe('Tokens per minute', () => {
  test('the estimate must fit in what is left; after completion the window holds the billed tokens', async () => {
    const { billed, estimate } = await sizes();
    const { key } = await limitedAccount({ tokens_per_minute: 2 * billed + estimate });
    for (let count = 0; count < 3; count += 1) await expectDecision(await ask(service, key));
    expect(await expectLimited(await ask(service, key), 60)).toContain('tokens');
    const tight = await limitedAccount({ tokens_per_minute: 2 * billed + estimate - 1 });
    for (let count = 0; count < 2; count += 1) await expectDecision(await ask(service, tight.key));
    await expectLimited(await ask(service, tight.key), 60);
  });

  test('failed and refused requests take nothing', async () => {
    const { estimate } = await sizes();
    const account = await limitedAccount({ tokens_per_minute: estimate });
    around = () => Promise.reject(new Error('a decode failed'));
    await expectError(await ask(service, account.key), 'model_unavailable');
    around = (run) => run();
    const not_charged = await withoutTable(service, 'usage_records', () => ask(service, account.key));
    await expectError(not_charged, 'billing_unavailable');
    const rejected = { questions: { q: { type: 'noul', criteria: 'no object' } } };
    await expectError(await ask(service, account.key, rejected), 'invalid_request', 'questions.q.criteria');
    const setLimit = (spend_limit_micros: number | null) =>
      changeProject(service.accounts, OPERATOR, { project_id: account.project_id, spend_limit_micros });
    await setLimit(0);
    await expectError(await ask(service, account.key), 'project_spend_limit');
    await setLimit(null);
    await expectDecision(await ask(service, account.key));
    await expectLimited(await ask(service, account.key), 60);
  });

  test('Retry-After of a refusal is the time until the oldest request leaves; it may take another round', async () => {
    const { billed, estimate } = await sizes();
    const { key } = await limitedAccount({ tokens_per_minute: billed + estimate });
    await expectDecision(await ask(service, key));
    service.clock.advance(20_000);
    await expectDecision(await ask(service, key));
    service.clock.advance(5_500);
    const twice = `${SMALL_REQUEST.state} ${SMALL_REQUEST.state}`;
    await expectLimited(await ask(service, key, { state: twice }), 35);
    service.clock.advance(35_000);
    await expectLimited(await ask(service, key, { state: `${twice} ${twice}` }), 20);
    service.clock.advance(19_500);
    await expectDecision(await ask(service, key, { state: `${twice} ${twice}` }));
  });

  test('a request larger than the whole allowance runs when the window is empty, then fills it', async () => {
    const { billed } = await sizes();
    const { key } = await limitedAccount({ tokens_per_minute: billed - 1 });
    const large = await ask(service, key);
    await expectDecision(large);
    expect(large.headers.get('x-ratelimit-remaining-tokens')).toBe('0');
    service.clock.advance(59_999);
    await expectLimited(await ask(service, key, { state: '', questions: { q: { type: 'noul' } } }), 1);
    service.clock.advance(1);
    await expectDecision(await ask(service, key));
  });

  test('while such a request runs nothing else is admitted', async () => {
    const { billed } = await sizes();
    const { key } = await limitedAccount({ tokens_per_minute: billed - 1 });
    const gate = new Gate();
    around = gate.hold;
    const large = ask(service, key);
    await gate.reached;
    await expectLimited(await ask(service, key), 60);
    gate.open();
    await expectDecision(await large);
  });

  test('requests and tokens are checked and committed together: of many at once exactly as many pass as fit', async () => {
    const { billed, estimate } = await sizes();
    const fitting = 5;
    const account = await limitedAccount({ tokens_per_minute: fitting * estimate, requests_per_minute: 20 });
    const gate = new Gate();
    around = gate.hold;
    let refused = 0;
    const sent = Array.from({ length: 30 }, async () => {
      const response = await ask(service, account.key);
      if (response.status === 429) refused += 1;
      return response;
    });
    // Nothing is billed before all have been looked at: what was billed would make room for more.
    await eventually(() => refused >= 30 - fitting);
    gate.open();
    const responses = await Promise.all(sent);
    const messages = await Promise.all(responses.map((response) => response.text()));
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(fitting);
    expect(messages.filter((message) => message.includes('input tokens per minute'))).toHaveLength(
      20 - fitting,
    );
    expect(messages.filter((message) => message.includes('20 requests per minute'))).toHaveLength(10);
    around = (run) => run();
    expect(billed).toBeLessThan(estimate);
  });
});

describe('Windows', () => {
  // Of nodes, the database has the windows: they do not know of a restart.
  test.skipIf(IS_ON_POSTGRES)(
    'survive a restart: nobody gets a fresh allowance, and requests leave when they would have',
    async () => {
      const { billed, estimate } = await sizes();
      const directory = temporaryDirectory();
      const clock = MovableClock.stopped();
      const start = () => startTestService({ directory: directory.path, clock });
      let running = await start();
      try {
        const requests = await limitedAccount({ requests_per_minute: 2 }, running);
        const tokens = await limitedAccount({ tokens_per_minute: billed + estimate }, running);
        for (const wait_ms of [0, 10_000]) {
          clock.advance(wait_ms);
          await expectDecision(await ask(running, requests.key));
          await expectDecision(await ask(running, tokens.key));
        }
        await running.close();
        clock.advance(30_000);
        running = await start();
        await expectLimited(await ask(running, requests.key), 20);
        await expectLimited(await ask(running, tokens.key), 20);
        clock.advance(20_000);
        await expectDecision(await ask(running, requests.key));
        await expectLimited(await ask(running, requests.key), 10);
        await expectDecision(await ask(running, tokens.key));
      } finally {
        await closeAudited(running);
        directory.remove();
      }
    },
  );

  test('the wall clock stepping back or forward changes nothing', async () => {
    const account = await limitedAccount({ requests_per_minute: 2 });
    await expectDecision(await ask(service, account.key));
    service.clock.stepWallClock(-3_600_000);
    service.clock.advance(10_000);
    await expectDecision(await ask(service, account.key));
    await expectLimited(await ask(service, account.key), 50);
    service.clock.stepWallClock(7_200_000);
    await expectLimited(await ask(service, account.key), 50);
    service.clock.advance(50_000);
    await expectDecision(await ask(service, account.key));
    service.clock.stepWallClock(-3_600_000);
  });

  test.skipIf(IS_ON_POSTGRES)(
    'a restart after the wall clock stepped back locks nobody out for longer than a window',
    async () => {
      const directory = temporaryDirectory();
      const clock = MovableClock.stopped();
      const start = () => startTestService({ directory: directory.path, clock });
      let running = await start();
      try {
        const account = await limitedAccount({ requests_per_minute: 2 }, running);
        for (let count = 0; count < 3; count += 1) {
          await expectDecision(await ask(running, account.key));
          clock.advance(120_000);
        }
        await expectDecision(await ask(running, account.key));
        await running.close();
        clock.stepWallClock(-3_600_000);
        running = await start();
        // The last of the requests was made just now; the others are long gone, whatever the clock says.
        await expectDecision(await ask(running, account.key));
        await expectLimited(await ask(running, account.key), 60);
        clock.advance(60_000);
        await expectDecision(await ask(running, account.key));
      } finally {
        await closeAudited(running);
        directory.remove();
      }
    },
  );
});

describe('Spend limits', () => {
  test('are separate from rate limits and reserve no credit', async () => {
    const account = await addAccount(service, { credit_dollars: 0, tier: 1 });
    await changeProject(service.accounts, OPERATOR, {
      project_id: account.project_id,
      spend_limit_micros: 5_000_000,
    });
    await expectError(await ask(service, account.key), 'insufficient_credit');
  });
});
