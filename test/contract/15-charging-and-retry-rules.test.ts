import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { OPERATOR } from '../../src/access/actor.ts';
import { changeProject } from '../../src/accounts/projects.ts';
import { ERROR_CODES, ERRORS, type ErrorCode } from '../../src/errors/errors.ts';
import { MovableClock } from '../support/clock.ts';
import { booksOf, closeAudited } from '../support/money.ts';
import { ALL_TYPES, ask } from '../support/requests.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, startTestService, type TestService } from '../support/service.ts';
import { expectDecision, expectError } from './expectations.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

const JUNE_END_MS = Date.UTC(2026, 6, 1) - 1;

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ clock: MovableClock.stopped(JUNE_END_MS - 120_000) });
});
afterAll(() => closeAudited(service));

describe('Charging and retry rules', () => {
  test('2. retry only 429 rate_limit_exceeded, 502 and 503; our own codes are 408, 409 and 500', () => {
    const of = (when: string) => new Set(ERROR_CODES.filter((code) => ERRORS[code].retry === when));
    const of_model_and_load = ERROR_CODES.filter((code) => [502, 503].includes(ERRORS[code].status));
    const later: readonly ErrorCode[] = [
      ...of_model_and_load,
      ...(['rate_limit_exceeded', 'request_timeout', 'idempotency_key_in_use', 'internal_error'] as const),
    ];
    expect(of('later')).toEqual(new Set(later));
    expect(of('after_account_change')).toEqual(
      new Set(['invalid_api_key', 'insufficient_credit', 'project_spend_limit', 'api_key_spend_limit']),
    );
  });

  test('3. project_spend_limit persists until the next UTC month', async () => {
    const probe = await addAccount(service);
    const { usage } = await expectDecision(await ask(service, probe.key));
    const cost_micros = Math.round(usage.cost_usd * 1e6);
    const account = await addAccount(service);
    await changeProject(service.accounts, OPERATOR, {
      project_id: account.project_id,
      spend_limit_micros: 2 * cost_micros + cost_micros - 1,
    });
    await expectDecision(await ask(service, account.key));
    await expectDecision(await ask(service, account.key));
    await expectError(await ask(service, account.key), 'project_spend_limit');
    service.clock.advance(JUNE_END_MS - service.clock.now_ms());
    await expectError(await ask(service, account.key), 'project_spend_limit');
    expect((await booksOf(service, account)).credit_micros).toBe(25_000_000 - 2 * cost_micros);
    service.clock.advance(1);
    await expectDecision(await ask(service, account.key));
  });

  test('3. or until the limit is raised or taken away, at once', async () => {
    const account = await addAccount(service);
    const setLimit = (spend_limit_micros: number | null) =>
      changeProject(service.accounts, OPERATOR, { project_id: account.project_id, spend_limit_micros });
    await setLimit(0);
    await expectError(await ask(service, account.key), 'project_spend_limit');
    await setLimit(1_000_000);
    await expectDecision(await ask(service, account.key));
    await setLimit(0);
    await expectError(await ask(service, account.key), 'project_spend_limit');
    await setLimit(null);
    await expectDecision(await ask(service, account.key));
  });

  test('4. invalid_request repeats identically if resent unchanged', async () => {
    const { key } = await addAccount(service);
    const send = async () =>
      await expectError(
        await ask(service, key, { questions: { q: { type: 'noul', criteria: [] } } }),
        'invalid_request',
        'questions.q.criteria',
      );
    const { error: first } = await send();
    const { error: second } = await send();
    expect(second).toEqual(first);
  });

  test('5. a retried decision request returns a fresh decision, and is billed again', async () => {
    const account = await addAccount(service);
    const first = await expectDecision(await ask(service, account.key, { questions: ALL_TYPES }));
    const second = await expectDecision(await ask(service, account.key, { questions: ALL_TYPES }));
    expect(second.id).not.toBe(first.id);
    expect(second.usage).toEqual(first.usage);
    const spent = 25_000_000 - (await booksOf(service, account)).credit_micros;
    expect(spent).toBe(2 * Math.round(first.usage.cost_usd * 1e6));
  });
});
