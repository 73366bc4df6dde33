import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { recalculateTier, recalculateTiers } from '../../src/accounts/tier-changes.ts';
import { HoldNotOpen, RefundExceedsPayments } from '../../src/ledger/errors.ts';
import type { Hold } from '../../src/store/hold.ts';
import type { UsageRow } from '../../src/store/usage-row.ts';
import { monthOf } from '../../src/time/month.ts';
import { latestPrune_ms, pruneUsage } from '../../src/usage/prune.ts';
import { LEDGER_DATABASES, type LedgerDatabase } from '../ledger/databases.ts';
import { type Account, propertySeed, usageOf } from '../ledger/support.ts';
import { DOLLAR } from '../support/money.ts';

/**
 * The ledger against a plain-object model of what the specification says, over random histories. After every step the
 * stored balances are the model's, and the audit is clean.
 */

const STEPS_MAX = 40;
/** Each step of PostgreSQL is audited over its port, which takes ten times as long. */
const RUNS = { SQLite: 20, PostgreSQL: 5 };
/** Of each organization. */
const PROJECTS = 2;
const START_MS = Date.UTC(2026, 0, 15);
const MONTH_MS = 31 * 24 * 60 * 60 * 1_000;
const HOUR_MS = 60 * 60 * 1_000;

const index = fc.nat({ max: 1_000 });
const amount = fc.oneof(
  { weight: 4, arbitrary: fc.nat({ max: 30 }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(5 * DOLLAR - 1, 5 * DOLLAR, 50 * DOLLAR, 250 * DOLLAR, 9_000 * DOLLAR),
  },
);
const positive = amount.map((micros) => Math.max(micros, 1));
const kind = <K extends string>(name: K) => fc.constant(name);
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: kind('top_up'), organization: index, amount: positive }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('refund'), organization: index, amount: positive }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: kind('hold'),
      requests: fc.array(fc.record({ project: index, amount, counts_for_key: fc.boolean() }), {
        minLength: 1,
        maxLength: 4,
      }),
    }),
  },
  { weight: 5, arbitrary: fc.record({ kind: kind('charge'), hold: index, cost: amount }) },
  { weight: 2, arbitrary: fc.record({ kind: kind('release'), hold: index, reached_model: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('end_again'), hold: index, charge: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('crash'), in_transaction: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('next_month') }) },
  { weight: 2, arbitrary: fc.record({ kind: kind('hours'), hours: fc.integer({ min: 1, max: 60 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('audit') }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: kind('prune'),
      hours_ago: fc.nat({ max: 40 * 24 }),
      batch_requests: fc.integer({ min: 1, max: 5 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: kind('limit'), project: index, limit: fc.option(amount) }) },
  { weight: 2, arbitrary: fc.record({ kind: kind('limit_key'), project: index, limit: fc.option(amount) }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('revoke_key'), project: index }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

interface ModelOrganization {
  credit: number;
  held: number;
  paid: number;
  first_paid_at_ms: number | null;
  tier: number;
}
interface ModelMonths {
  /** By month. */
  readonly spent: Map<string, number>;
  readonly held: Map<string, number>;
}
interface ModelProject extends ModelMonths {
  readonly owner: number;
  limit: number | null;
  /** Of the requests that count for the key of the organization. */
  readonly of_key: ModelMonths;
}
interface ModelHold {
  readonly hold: Hold;
  readonly request_id: string;
  readonly owner: number;
  readonly project: number;
  readonly counts_for_key: boolean;
}

/** Each tier's condition, highest first: the total paid in dollars, and the days since the first payment. */
const TIER_BARS = [
  [5, 2_500, 60],
  [4, 1_000, 30],
  [3, 250, 14],
  [2, 50, 7],
  [1, 5, 0],
] as const;

function tierReached(organization: ModelOrganization, now_ms: number): number {
  const since = organization.first_paid_at_ms ?? now_ms;
  const days = (now_ms - since) / (24 * 60 * 60 * 1_000);
  const bar = TIER_BARS.find(([, paid, age]) => organization.paid >= paid * DOLLAR && days >= age);
  return bar === undefined ? 0 : bar[0];
}

function add(counters: Map<string, number>, month: string, change: number): void {
  counters.set(month, (counters.get(month) ?? 0) + change);
}

/** The real books on a real database, and beside them the model that says what must be there. */
class History {
  readonly #database: LedgerDatabase;
  readonly #accounts: readonly Account[];
  #now_ms = START_MS;
  #serial = 0;
  #recorded = 0;
  readonly #organizations: ModelOrganization[] = [];
  readonly #projects: ModelProject[] = [];
  /** By the number of the organization. */
  readonly #key_limits = new Map<number, number | null>();
  #open: ModelHold[] = [];
  readonly #ended: ModelHold[] = [];

  private constructor(database: LedgerDatabase, accounts: readonly Account[]) {
    this.#database = database;
    this.#accounts = accounts;
    for (const [project] of accounts.entries()) {
      const owner = Math.floor(project / PROJECTS);
      if (project % PROJECTS === 0)
        this.#organizations.push({ credit: 0, held: 0, paid: 0, first_paid_at_ms: null, tier: 0 });
      const of_key = { spent: new Map(), held: new Map() };
      this.#projects.push({ owner, limit: null, spent: new Map(), held: new Map(), of_key });
    }
  }

  /** On a new database, with two organizations of two projects each. */
  static async begin(database: LedgerDatabase): Promise<History> {
    const accounts = ['0', '1'].flatMap((name) => {
      const account = {
        organization_id: `org_${name}`,
        project_id: `proj_${name}`,
        api_key_id: `key_${name}`,
      };
      return [account, { ...account, project_id: `${account.project_id}_second` }];
    });
    for (const account of accounts) await database.addAccount(account);
    return new History(database, accounts);
  }

  async take(step: Step): Promise<void> {
    this.#now_ms += 1;
    this.#database.now_ms = this.#now_ms;
    switch (step.kind) {
      case 'top_up':
        return this.#pay('top_up', step.organization, step.amount);
      case 'refund':
        return this.#pay('refund', step.organization, step.amount);
      case 'hold':
        return this.#hold(step.requests);
      case 'charge':
        return this.#charge(step.hold, step.cost);
      case 'release':
        return this.#release(step.hold, step.reached_model);
      case 'end_again':
        return this.#endAgain(step.hold, step.charge);
      case 'crash':
        return this.#crash(step.in_transaction);
      case 'next_month':
        this.#now_ms += MONTH_MS;
        await recalculateTiers(this.#database.store, this.#now_ms);
        for (const model of this.#organizations)
          model.tier = Math.max(model.tier, tierReached(model, this.#now_ms));
        return;
      case 'hours':
        this.#now_ms += step.hours * HOUR_MS;
        return;
      case 'audit':
        expect((await this.#database.continueAudit(this.#now_ms)).ok).toBe(true);
        return;
      case 'prune':
        return this.#prune(step.hours_ago, step.batch_requests);
      case 'limit':
        return this.#limit(step.project, step.limit);
      case 'limit_key':
        return this.#limitKey(step.project, step.limit);
      case 'revoke_key':
        return this.#revokeKey(step.project);
    }
  }

  /** Rolls up, and finds nothing that was left although it had ended before that time. */
  async #prune(hours_ago: number, batch_requests: number): Promise<void> {
    const before_ms = latestPrune_ms(this.#now_ms) - hours_ago * HOUR_MS;
    const continueAudit = async (now_ms: number) => (await this.#database.continueAudit(now_ms)).ok;
    const parts = { store: this.#database.store, continueAudit };
    await pruneUsage(parts, { before_ms, now_ms: this.#now_ms, batch_requests });
    const kept = await this.#database.entries();
    const ends = new Map(kept.map((entry) => [entry.hold_entry_id, entry]));
    const first_open_id = Math.min(...this.#open.map(({ hold }) => hold.entry_id));
    const left = kept.filter(({ id, kind, created_at_ms }) => {
      const end = ends.get(id);
      if (kind !== 'hold' || end === undefined || end.id > first_open_id) return false;
      return created_at_ms < before_ms && end.created_at_ms < before_ms;
    });
    expect(left).toEqual([]);
    const days = await this.#database.usageDays();
    expect(days.filter(({ requests }) => requests === 0)).toEqual([]);
  }

  /** The stored state is the model's, and the audit finds nothing. */
  async verify(): Promise<void> {
    const costs = [...(await this.#database.usage()), ...(await this.#database.usageDays())];
    expect(costs.reduce((total, { cost_micros }) => total + cost_micros, 0)).toBe(
      this.#projects.flatMap(({ spent }) => [...spent.values()]).reduce((total, value) => total + value, 0),
    );
    expect(costs.reduce((total, row) => total + ('requests' in row ? row.requests : 1), 0)).toBe(
      this.#recorded,
    );
    const stored = await this.#database.organizations();
    expect(
      stored.map(({ credit_micros, held_micros, paid_micros, first_paid_at_ms, tier }) => ({
        credit: credit_micros,
        held: held_micros,
        paid: paid_micros,
        first_paid_at_ms,
        tier,
      })),
    ).toEqual(this.#organizations);
    const months = await this.#database.months();
    for (const { project_id, month, api_key_id, spent_micros, held_micros } of months) {
      const project =
        this.#projects[this.#accounts.findIndex((account) => account.project_id === project_id)];
      const counted = api_key_id === '' ? project : project?.of_key;
      const expected = (['spent', 'held'] as const).map((amount) => counted?.[amount].get(month) ?? 0);
      expect([spent_micros, held_micros]).toEqual(expected);
    }
    const sum = (values: Iterable<number>) => [...values].reduce((total, value) => total + value, 0);
    const spentOf = (isCounted: (api_key_id: string) => boolean) =>
      sum(months.filter(({ api_key_id }) => isCounted(api_key_id)).map(({ spent_micros }) => spent_micros));
    expect(spentOf((api_key_id) => api_key_id === '')).toBe(
      sum(this.#projects.flatMap(({ spent }) => [...spent.values()])),
    );
    expect(spentOf((api_key_id) => api_key_id !== '')).toBe(
      sum(this.#projects.flatMap(({ of_key }) => [...of_key.spent.values()])),
    );
    const report = await this.#database.audit();
    expect(report.checks.filter((check) => check.violations.length > 0)).toEqual([]);
    expect(report.open_holds).toBe(this.#open.length);
  }

  async #pay(kind: 'top_up' | 'refund', pick: number, amount_micros: number): Promise<void> {
    const owner = pick % this.#organizations.length;
    const { model, account } = this.#organization(owner);
    const payment_id = this.#id('pay');
    const movement = {
      organization_id: account.organization_id,
      amount_micros,
      payment_id,
      at_ms: this.#now_ms,
    };
    const written = this.#database.store.transaction(async (records) => {
      await records.payments.insertPayment({
        id: payment_id,
        organization_id: account.organization_id,
        provider: 'manual',
        external_id: payment_id,
        kind,
        amount_micros,
        status: 'completed',
        refunds_payment_id: null,
        created_by_user_id: null,
        created_at_ms: 0,
        settled_at_ms: null,
      });
      if (kind === 'top_up') await records.ledger.topUp(movement);
      else await records.ledger.refund(movement);
      await recalculateTier(records, account.organization_id, kind, this.#now_ms);
    });
    if (kind === 'refund' && amount_micros > model.paid) {
      await expect(written).rejects.toBeInstanceOf(RefundExceedsPayments);
      return;
    }
    await written;
    const change = kind === 'top_up' ? amount_micros : -amount_micros;
    model.credit += change;
    model.paid += change;
    // Days start anew with the first payment after everything was refunded.
    model.first_paid_at_ms = model.paid === 0 ? null : (model.first_paid_at_ms ?? this.#now_ms);
    const reached = tierReached(model, this.#now_ms);
    model.tier = kind === 'refund' ? reached : Math.max(model.tier, reached);
  }

  /** Several requests in one event-loop turn: they see each other's holds. */
  async #hold(requests: Extract<Step, { kind: 'hold' }>['requests']): Promise<void> {
    const month = monthOf(this.#now_ms);
    const asked = requests.map(({ project: pick, amount: amount_micros, counts_for_key }) => {
      const project = pick % this.#projects.length;
      const { organization_id, project_id, api_key_id } = this.#account(project);
      const request_id = this.#id('req');
      const request = {
        organization_id,
        project_id,
        request_id,
        amount_micros,
        at_ms: this.#now_ms,
        ...(counts_for_key ? { api_key_id } : {}),
      };
      return { project, amount_micros, request_id, request, counts_for_key };
    });
    const answers = asked.map(({ request, ...one }) => ({
      ...one,
      result: this.#database.books.hold(request),
    }));
    for (const { project, amount_micros, request_id, result, counts_for_key } of answers) {
      const answer = await result;
      const refusal = this.#refusal(project, amount_micros, month, counts_for_key);
      expect(answer).toMatchObject(refusal ?? { held: true });
      if (!answer.held) continue;
      const model = this.#project(project);
      this.#organization(model.owner).model.held += amount_micros;
      add(model.held, month, amount_micros);
      if (counts_for_key) add(model.of_key.held, month, amount_micros);
      this.#open.push({ hold: answer.hold, request_id, owner: model.owner, project, counts_for_key });
    }
  }

  #refusal(project: number, amount_micros: number, month: string, counts_for_key: boolean) {
    const { limit, owner, of_key, ...counters } = this.#project(project);
    const isAbove = (limit: number, months: ModelMonths) => {
      const spent = months.spent.get(month) ?? 0;
      return spent >= limit || spent + (months.held.get(month) ?? 0) + amount_micros > limit;
    };
    if (limit !== null && isAbove(limit, counters))
      return { held: false, refusal: 'project_spend_limit', spend_limit_micros: limit };
    const key_limit = counts_for_key ? (this.#key_limits.get(owner) ?? null) : null;
    if (key_limit !== null && isAbove(key_limit, of_key))
      return { held: false, refusal: 'api_key_spend_limit', monthly_limit_micros: key_limit };
    const { model } = this.#organization(owner);
    const available_micros = model.credit - model.held;
    return available_micros < amount_micros
      ? { held: false, refusal: 'insufficient_credit', available_micros }
      : null;
  }

  async #charge(pick: number, cost: number): Promise<void> {
    const [taken] = this.#open.splice(pick % (this.#open.length || 1), 1);
    if (taken === undefined) return;
    const cost_micros = Math.min(cost, taken.hold.amount_micros);
    await this.#database.books.charge(
      taken.hold,
      cost_micros,
      this.#usage(taken, 200, cost_micros),
      this.#usage(taken, 503, 0),
    );
    this.#recorded += 1;
    this.#modelEnd(taken, cost_micros);
  }

  async #release(pick: number, reached_model: boolean): Promise<void> {
    const [taken] = this.#open.splice(pick % (this.#open.length || 1), 1);
    if (taken === undefined) return;
    await this.#database.books.release(taken.hold, reached_model ? this.#usage(taken, 502, 0) : null);
    if (reached_model) this.#recorded += 1;
    this.#modelEnd(taken, 0);
  }

  async #endAgain(pick: number, charge: boolean): Promise<void> {
    const taken = this.#ended[pick % (this.#ended.length || 1)];
    if (taken === undefined) return;
    if (!charge) return this.#database.books.release(taken.hold, null);
    const again = this.#database.books.charge(
      taken.hold,
      0,
      this.#usage(taken, 200, 0),
      this.#usage(taken, 503, 0),
    );
    await expect(again).rejects.toBeInstanceOf(HoldNotOpen);
  }

  /** The process ends, perhaps before a commit, and a new one starts on the same database. */
  async #crash(in_transaction: boolean): Promise<void> {
    const books = await this.#database.crash({ in_transaction });
    expect(await books.recover()).toBe(this.#open.length);
    for (const taken of this.#open) this.#modelEnd(taken, 0);
    this.#open = [];
    expect((await this.#database.audit({ ended_before_ms: this.#now_ms + 1 })).ok).toBe(true);
  }

  async #limit(pick: number, limit: number | null): Promise<void> {
    const project = pick % this.#projects.length;
    this.#project(project).limit = limit;
    await this.#database.limit(this.#account(project), limit);
  }

  async #limitKey(pick: number, limit: number | null): Promise<void> {
    const project = pick % this.#projects.length;
    this.#key_limits.set(this.#project(project).owner, limit);
    await this.#database.limitKey(limit, this.#account(project));
  }

  #usage(taken: ModelHold, status: number, cost_micros: number): UsageRow {
    return usageOf(this.#account(taken.project), taken.request_id, this.#now_ms, status, cost_micros);
  }

  #modelEnd(taken: ModelHold, cost_micros: number): void {
    const { amount_micros, month } = taken.hold;
    const { model } = this.#organization(taken.owner);
    model.credit -= cost_micros;
    model.held -= amount_micros;
    const project = this.#project(taken.project);
    for (const { spent, held } of taken.counts_for_key ? [project, project.of_key] : [project]) {
      add(spent, month, cost_micros);
      add(held, month, -amount_micros);
    }
    this.#ended.push(taken);
  }

  #organization(owner: number): { readonly model: ModelOrganization; readonly account: Account } {
    const model = this.#organizations[owner];
    if (model === undefined) throw new RangeError(`organization ${owner}`);
    return { model, account: this.#account(PROJECTS * owner) };
  }

  /** Requests of a revoked key that are under way end as others do. */
  async #revokeKey(pick: number): Promise<void> {
    const api_key_id = this.#accounts[pick % this.#accounts.length]?.api_key_id ?? '';
    await this.#database.store.keys.revokeKey(api_key_id, this.#now_ms);
  }

  #project(project: number): ModelProject {
    const model = this.#projects[project];
    if (model === undefined) throw new RangeError(`project ${project}`);
    return model;
  }

  #account(project: number): Account {
    const account = this.#accounts[project];
    if (account === undefined) throw new RangeError(`project ${project}`);
    return account;
  }

  #id(prefix: string): string {
    this.#serial += 1;
    return `${prefix}_${this.#serial}`;
  }
}

test.each(LEDGER_DATABASES)(
  'in $name, after any history, whatever of it is rolled up, the balances are what the specification says, and the audit is clean',
  async ({ name, open }) => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: STEPS_MAX, size: 'max' }), async (steps) => {
        await using database = await open();
        const history = await History.begin(database);
        for (const step of steps) {
          await history.take(step);
          await history.verify();
        }
      }),
      {
        seed: propertySeed(`ledger in ${name}`),
        numRuns: RUNS[name],
      },
    );
  },
  300_000,
);
