import { expect } from 'bun:test';
import { runAudit } from '../../db/sqlite/audit.ts';
import { transact } from '../../db/sqlite/connection.ts';
import { GroupCommit } from '../../db/sqlite/group-commit.ts';
import { usageRecords } from '../../db/sqlite/schema.ts';
import { OPERATOR } from '../../src/accounts/actor.ts';
import { createKey } from '../../src/accounts/keys.ts';
import { createOrganization } from '../../src/accounts/organizations.ts';
import { randomIdentifiers } from '../../src/identifiers.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { creditContext } from '../../src/payments/credit.ts';
import type { WebhookContext } from '../../src/payments/webhooks.ts';
import { TestClock, temporaryDatabase } from '../accounts/support.ts';

/** A database with one organization, and what the credit services need. */
export async function openBooks() {
  const store = temporaryDatabase();
  const clock = new TestClock();
  const context: WebhookContext = {
    ...creditContext(store.db, clock, randomIdentifiers),
    commits: new GroupCommit(store.db),
  };
  const organization = await createOrganization(context, OPERATOR, { name: 'Acme' });
  return {
    ...store,
    clock,
    context,
    organization_id: organization.id,
    project_id: organization.default_project_id,
  };
}

/** Fails with the broken rows unless the books are in order. */
export function expectCleanAudit(books: Pick<Awaited<ReturnType<typeof openBooks>>, 'db'>): void {
  expect(runAudit(books.db).checks.filter((check) => check.violations.length > 0)).toEqual([]);
}

/** A request of the organization that was answered and cost this much: hold, charge and usage row. */
export async function spend(
  books: Awaited<ReturnType<typeof openBooks>>,
  cost_micros: number,
): Promise<void> {
  const { context, db, organization_id, project_id } = books;
  const request_id = randomIdentifiers.id('request');
  const at_ms = context.clock.now_ms();
  const ledger = new Ledger(db);
  const { id: api_key_id } = await createKey(context, OPERATOR, { project_id, name: request_id });
  transact(db, () => {
    const result = ledger.hold({
      organization_id,
      project_id,
      request_id,
      amount_micros: cost_micros + 9,
      at_ms,
    });
    if (!result.held) throw new Error(result.refusal);
    ledger.charge(result.hold, cost_micros, at_ms);
    db.insert(usageRecords)
      .values({
        request_id,
        time_ms: at_ms,
        organization_id,
        project_id,
        api_key_id,
        model: 'decision-1',
        mode: 'fast',
        endpoint: '/v1/decisions',
        status: 200,
        questions: 1,
        input_tokens: cost_micros * 2,
        cost_micros,
        latency_ms: 1,
      })
      .run();
  });
}
