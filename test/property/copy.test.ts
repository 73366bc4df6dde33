import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { copiedTables } from '../../db/copied-tables.ts';
import { copyDatabase } from '../../db/copy-database.ts';
import * as postgresAudit from '../../db/postgres/audit.ts';
import { PostgresRows } from '../../db/postgres/copied-rows.ts';
import * as postgres from '../../db/postgres/schema.ts';
import { continueAudit, runAudit } from '../../db/sqlite/audit.ts';
import { SqliteRows } from '../../db/sqlite/copied-rows.ts';
import { GroupCommit } from '../../db/sqlite/group-commit.ts';
import { noteVersion } from '../../db/sqlite/program-versions.ts';
import {
  auditLogEntries,
  ledgerEntries,
  passkeys,
  secondFactors,
  sessions,
  signInAccounts,
  verifications,
} from '../../db/sqlite/schema.ts';
import { SqliteBooks } from '../../db/sqlite/sqlite-books.ts';
import { AccountError } from '../../src/access/account-error.ts';
import { OPERATOR } from '../../src/access/actor.ts';
import { invite } from '../../src/accounts/invitations.ts';
import { createKey, revokeKey, rotateKey } from '../../src/accounts/keys.ts';
import { addMember } from '../../src/accounts/members.ts';
import { createOrganization, setSuspended, setTierSettings } from '../../src/accounts/organizations.ts';
import { archiveProject, changeProject, createProject } from '../../src/accounts/projects.ts';
import { recalculateTiers } from '../../src/accounts/tier-changes.ts';
import { signUp } from '../../src/accounts/users.ts';
import { seedCatalog } from '../../src/catalog/catalog.ts';
import { RefundExceedsPayments } from '../../src/ledger/errors.ts';
import { creditByHand, refundByHand } from '../../src/payments/credit.ts';
import type { Hold } from '../../src/store/hold.ts';
import type { KeptAnswer } from '../../src/store/kept-answer.ts';
import type { KeptEvent } from '../../src/store/payment-records.ts';
import { latestPrune_ms, pruneUsage } from '../../src/usage/prune.ts';
import { TestClock } from '../accounts/support.ts';
import { propertySeed, pruningOf, TemporaryDatabase } from '../ledger/support.ts';
import { contextOn } from '../support/context.ts';
import { allRows } from '../support/copied-postgres.ts';
import { DOLLAR } from '../support/money.ts';
import { isPostgresMissing, testDatabase } from '../support/postgres.ts';

/** A random history in SQLite is equal in PostgreSQL after a copy, row by row, and in SQLite after a copy back. */

const STEPS_MAX = 60;
const HOUR_MS = 60 * 60 * 1_000;

const pick = fc.nat({ max: 1_000 });
/** As clients write: every script, and what a database may take for its own. */
const name = fc.oneof(
  fc.string({ unit: 'binary', minLength: 1, maxLength: 12 }),
  fc.constantFrom('O\'Hara "& Co" \\ ;--', '$1 {a,b} NULL', 'Zoë 漢字 🦊', 'a\u202eb'),
);
const amount = fc.integer({ min: 1, max: 300 * DOLLAR });
const step = fc.oneof(
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('user'), name, is_member: fc.boolean(), pick }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('organization'), name }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('project'), name, pick, is_archived: fc.boolean() }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('key'), name, pick, is_revoked: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('credit'), pick, amount }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('refund'), pick, amount }) },
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constant('request'),
      pick,
      amount: fc.nat({ max: 1_000 }),
      status: fc.constantFrom(200, 200, 200, 502),
      latency_ms: fc.double({ noNaN: true, noDefaultInfinity: true, min: 0 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('limits'), pick, amount }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('invitation'), pick }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('session'), pick, name }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('event'),
      name,
      amount: fc.option(fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER })),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('model'), pick }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('hours'), hours: fc.integer({ min: 1, max: 900 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('audit') }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('prune') }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** A history that fills every table. */
const EVERYTHING: Step[] = [
  { kind: 'user', name: 'Ada', is_member: true, pick: 0 },
  { kind: 'request', pick: 0, amount: 100, status: 200, latency_ms: 1.5 },
  { kind: 'request', pick: 0, amount: 100, status: 502, latency_ms: 0.1 },
  { kind: 'refund', pick: 0, amount: 1 },
  { kind: 'limits', pick: 1, amount: 5 },
  { kind: 'invitation', pick: 0 },
  { kind: 'session', pick: 0, name: 'Firefox' },
  { kind: 'event', name: 'transaction.completed', amount: null },
  { kind: 'model', pick: 1 },
  { kind: 'hours', hours: 900 },
  { kind: 'prune' },
  { kind: 'request', pick: 0, amount: 100, status: 200, latency_ms: 1e-7 },
];

/** The answer to a request with an idempotency key. */
const KEPT: KeptAnswer = {
  id: 'dec_1',
  created: 1,
  model: 'decision-1',
  mode: 'fast',
  input_tokens: 1,
  cost_micros: 1,
  latency_ms: 0.1,
  numbers: [[0.9]],
};

/** A random history of people, clients and time, by the service's rules. */
class History extends TemporaryDatabase {
  readonly #clock = new TestClock();
  readonly #context = contextOn(this.db, this.#clock);
  readonly #books = new SqliteBooks(new GroupCommit(this.db), this.#clock, 'proc_test', {
    onProblem: (_, error) => {
      throw error;
    },
    onSettled: () => undefined,
  });
  readonly #users: string[] = [];
  readonly #projects: { readonly organization_id: string; readonly project_id: string }[] = [];
  readonly #keys: {
    readonly organization_id: string;
    readonly project_id: string;
    readonly api_key_id: string;
  }[] = [];
  #serial = 0;

  async begin(): Promise<void> {
    await seedCatalog(this.#context.store.catalog);
    noteVersion(this.db.$client, '1.2.3', this.#clock.now_ms());
    await this.take({ kind: 'organization', name: 'Acme' });
    await this.take({ kind: 'key', name: 'First', pick: 0, is_revoked: false });
    await this.take({ kind: 'credit', pick: 0, amount: 50 * DOLLAR });
  }

  /** Takes a step. Refused steps change nothing. */
  async take(step: Step): Promise<void> {
    this.#clock.advance(1 + (this.#serial % 7));
    this.#serial += 1;
    try {
      await this.#do(step);
    } catch (error) {
      if (!(error instanceof AccountError || error instanceof RefundExceedsPayments)) throw error;
    }
  }

  async #do(step: Step): Promise<void> {
    const context = this.#context;
    switch (step.kind) {
      case 'user': {
        const email = `user${this.#serial}@example.com`;
        const { user, organization } = await signUp(context, { email, name: step.name });
        this.#users.push(user.id);
        this.#projects.push({
          organization_id: organization.id,
          project_id: organization.default_project_id,
        });
        const { organization_id } = this.#project(step.pick);
        if (step.is_member)
          await addMember(context, OPERATOR, { organization_id, user_id: user.id, role: 'owner' });
        return;
      }
      case 'organization': {
        const { id, default_project_id } = await createOrganization(context, OPERATOR, { name: step.name });
        this.#projects.push({ organization_id: id, project_id: default_project_id });
        return;
      }
      case 'project': {
        const { organization_id } = this.#project(step.pick);
        const { id } = await createProject(context, OPERATOR, { organization_id, name: step.name });
        if (step.is_archived) await archiveProject(context, OPERATOR, id);
        else this.#projects.push({ organization_id, project_id: id });
        return;
      }
      case 'key': {
        const project = this.#project(step.pick);
        const { project_id } = project;
        const { id } = await createKey(context, OPERATOR, {
          project_id,
          name: step.name,
          monthly_limit_micros: step.pick % 2 === 1 ? 1_000_000 * step.pick : null,
        });
        this.#keys.push({ ...project, api_key_id: id });
        if (step.pick % 3 === 0) await rotateKey(context, OPERATOR, { key_id: id, overlap_ms: HOUR_MS });
        if (step.is_revoked) await revokeKey(context, OPERATOR, id);
        return;
      }
      case 'credit':
      case 'refund': {
        const { organization_id } = this.#project(step.pick);
        const enter = step.kind === 'credit' ? creditByHand : refundByHand;
        await enter(context, OPERATOR, { organization_id, amount_micros: step.amount });
        return;
      }
      case 'request':
        return await this.#request(step);
      case 'limits': {
        const { organization_id, project_id } = this.#project(step.pick);
        await changeProject(context, OPERATOR, { project_id, spend_limit_micros: step.amount });
        await setTierSettings(context, OPERATOR, organization_id, { minimum_tier: step.pick % 6 });
        await setSuspended(context, OPERATOR, { organization_id, is_suspended: step.pick % 2 === 0 });
        return;
      }
      case 'invitation': {
        const { organization_id } = this.#project(step.pick);
        const email = `invited${this.#serial}@example.com`;
        await invite(context, OPERATOR, { organization_id, email, role: 'owner' });
        return;
      }
      case 'session':
        this.#signIn(step.pick, step.name);
        return;
      case 'event':
        return await context.store.payments.keepEvent(this.#event(step.name, step.amount), ['unresolved']);
      case 'model':
        this.#addModel(step.pick);
        return;
      case 'hours':
        this.#clock.advance(step.hours * HOUR_MS);
        await recalculateTiers(context.store, this.#clock.now_ms());
        return;
      case 'audit':
        expect(continueAudit(this.db, { now_ms: this.#clock.now_ms() }).ok).toBe(true);
        return;
      case 'prune': {
        const now_ms = this.#clock.now_ms();
        await pruneUsage(pruningOf(this.db), { before_ms: latestPrune_ms(now_ms), now_ms });
        return;
      }
    }
  }

  async #request({ pick, amount, status, latency_ms }: Extract<Step, { kind: 'request' }>): Promise<void> {
    const key = this.#keys[pick % this.#keys.length];
    if (key === undefined) return;
    const { api_key_id } = key;
    const request_id = `req_${this.#serial}`;
    const at_ms = this.#clock.now_ms();
    const asked = { ...key, request_id, amount_micros: amount, at_ms };
    const claim = { api_key_id, key_hash: `key of ${request_id}`, body_hash: 'body' };
    const answer = await this.#books.hold({ ...asked, claim });
    if (!answer.held) return;
    await this.#end(answer.hold, status, {
      ...key,
      request_id,
      time_ms: at_ms,
      model: 'decision-1',
      mode: pick % 2 === 0 ? 'fast' : 'consistent',
      endpoint: '/v1/decisions',
      status,
      questions: status === 200 ? 1 + (pick % 3) : 0,
      input_tokens: pick,
      cost_micros: status === 200 ? Math.floor(amount / 2) : 0,
      latency_ms,
    });
  }

  async #end(hold: Hold, status: number, usage: Parameters<SqliteBooks['charge']>[2]): Promise<void> {
    if (status === 200) await this.#books.charge(hold, usage.cost_micros, usage, usage, KEPT);
    else await this.#books.release(hold, usage);
  }

  /** As better-auth writes it. */
  #signIn(pick: number, user_agent: string): void {
    const user_id = this.#users[pick % this.#users.length];
    if (user_id === undefined) return;
    const [id, created_at_ms] = [`id_${this.#serial}`, this.#clock.now_ms()];
    const times = { created_at_ms, updated_at_ms: created_at_ms };
    this.db
      .insert(sessions)
      .values({
        id,
        user_id,
        token_sha256: String(this.#serial).padStart(64, '0'),
        user_agent: user_agent.replaceAll('\u0000', ''),
        created_at_ms,
        last_seen_at_ms: created_at_ms,
        expires_at_ms: created_at_ms + HOUR_MS,
      })
      .run();
    const account = { id, user_id, provider: 'credential', external_id: id, password_hash: 'scrypt$1' };
    this.db
      .insert(signInAccounts)
      .values({ ...account, ...times })
      .run();
    const codes = {
      secret_encrypted: user_agent.replaceAll('\u0000', ''),
      recovery_codes_encrypted: '$ba$1$x',
    };
    this.db
      .insert(secondFactors)
      .values({ id, user_id, ...codes, failures: pick % 3, locked_until_ms: created_at_ms })
      .onConflictDoNothing()
      .run();
    const passkey = {
      id,
      user_id,
      credential_id: id,
      public_key: 'x',
      device_type: 'multiDevice',
      model_id: 'x',
    };
    this.db
      .insert(passkeys)
      .values({ ...passkey, name: id, signatures: pick, is_backed_up: true, transports: '', created_at_ms })
      .run();
    const verification = { id, identifier_hash: id, value: user_id, expires_at_ms: created_at_ms };
    this.db
      .insert(verifications)
      .values({ ...verification, ...times })
      .run();
  }

  #event(type: string, amount_micros: number | null): KeptEvent {
    return {
      provider: 'paddle',
      event_id: `evt_${this.#serial}`,
      type: type.replaceAll('\u0000', ''),
      kind: 'completed',
      occurred_at_ms: null,
      external_id: `txn_${this.#serial}`,
      payment_external_id: null,
      payment_id: null,
      organization_id: null,
      amount_micros,
      outcome: 'unresolved',
      reason: null,
      received_at_ms: this.#clock.now_ms(),
      decided_at_ms: this.#clock.now_ms(),
    };
  }

  #addModel(pick: number): void {
    const id = `model-${this.#serial}`;
    const upstreams = JSON.stringify({ urls: [`http://10.0.0.${pick % 256}`], 'ä "\\': [null, true, 1.5] });
    const { $client } = this.db;
    $client
      .query(
        `INSERT INTO models (id, kind, status, description, upstreams) VALUES (?, 'decision', 'coming_soon', '', ?)`,
      )
      .run(id, pick % 3 === 0 ? null : upstreams);
    $client
      .query('INSERT INTO model_aliases (alias, model_id) VALUES (?, ?)')
      .run(`alias-${this.#serial}`, id);
    $client
      .query('INSERT INTO model_tunings (model_id, tuning) VALUES (?, ?)')
      .run(id, JSON.stringify({ 'ü "\\': [pick, null] }));
    $client
      .query(
        "INSERT INTO answer_counts (model_id, day, question, class, answers) VALUES (?, '2026-01-01', ?, 1, 7)",
      )
      .run(id, pick);
  }

  #project(pick: number): { readonly organization_id: string; readonly project_id: string } {
    const project = this.#projects[pick % this.#projects.length];
    if (project === undefined) throw new RangeError('there is no project');
    return project;
  }
}

describe.skipIf(isPostgresMissing())('a copy', () => {
  test('has every row of every table, its books are right, and it goes on where the source ended', async () => {
    const filled = new Set<string>();
    const steps = fc.array(step, { minLength: 1, maxLength: STEPS_MAX, size: 'max' });
    await fc.assert(
      fc.asyncProperty(steps, async (steps) => {
        using history = new History();
        await history.begin();
        for (const step of steps) await history.take(step);
        const source = new SqliteRows(history.db);
        const given = await allRows(source);

        await using database = await testDatabase();
        const { db } = await database.connect({ connections: 2 });
        const copy = new PostgresRows(db, database.name);
        const { rows } = await copyDatabase(source, copy);
        expect(await allRows(copy)).toEqual(given);
        expect(Object.entries(rows)).toEqual(
          copiedTables().map(({ name }) => [name, given[name]?.length ?? 0]),
        );
        expect(await postgresAudit.runAudit(db)).toEqual(runAudit(history.db));
        for (const [table, count] of Object.entries(rows)) if (count > 0) filled.add(table);

        using back = new TemporaryDatabase();
        await copyDatabase(copy, new SqliteRows(back.db));
        const again = await allRows(new SqliteRows(back.db));
        expect(again).toEqual(given);
        // The numbers of SQLite's rowids continue alike in all three.
        const entry = { action: 'x', object_kind: 'x', detail: '{}', created_at_ms: 0 };
        const [inSource] = history.db.insert(auditLogEntries).values(entry).returning().all();
        const added = [
          ...back.db.insert(auditLogEntries).values(entry).returning().all(),
          ...(await db.insert(postgres.auditLogEntries).values(entry).returning()),
        ];
        expect([...new Set(added.map(({ id }) => id))]).toEqual(inSource === undefined ? [] : [inSource.id]);
      }),
      { seed: propertySeed('copy'), numRuns: 12, examples: [[EVERYTHING]] },
    );
    const never = copiedTables()
      .map(({ name }) => name)
      .filter((name) => !filled.has(name));
    expect(never).toEqual([]);
  }, 600_000);

  test('gives no number again that an entry had which is gone', async () => {
    using history = new History();
    await history.begin();
    const request = { kind: 'request', pick: 0, amount: 10, latency_ms: 1 } as const;
    await history.take({ ...request, status: 200 });
    await history.take({ ...request, status: 502 });
    const gone =
      Math.max(
        ...history.db
          .select()
          .from(ledgerEntries)
          .all()
          .map(({ id }) => id),
      ) + 1;
    await using database = await testDatabase();
    const { db } = await database.connect({ connections: 2 });
    await copyDatabase(new SqliteRows(history.db), new PostgresRows(db, database.name));
    const [organization] = await db.select().from(postgres.organizations);
    if (organization === undefined) throw new Error('nothing was copied');
    await db.insert(postgres.payments).values({
      id: 'pay_new',
      organization_id: organization.id,
      provider: 'manual',
      external_id: 'pay_new',
      kind: 'top_up',
      amount_micros: 1,
      status: 'completed',
      created_at_ms: 0,
    });
    const [entry] = await db
      .insert(postgres.ledgerEntries)
      .values({
        organization_id: organization.id,
        kind: 'top_up',
        credit_delta_micros: 1,
        held_delta_micros: 0,
        payment_id: 'pay_new',
        created_at_ms: 0,
      })
      .returning();
    expect(entry?.id).toBe(gone + 1);
  });
});
