import { requireMicros } from '../../src/contract/money.ts';
import { IDEMPOTENCY_KEPT_MS } from '../../src/idempotency/claim.ts';
import type { ChargeRequest } from '../../src/ledger/durable-books.ts';
import { HoldNotOpen, UnknownAccount } from '../../src/ledger/errors.ts';
import type { Hold, HoldRefusal, HoldRequest, HoldResult } from '../../src/store/hold.ts';
import type { IdempotencyClaim } from '../../src/store/idempotency-records.ts';
import { KEPT_BYTES_MAX, type KeptAnswer, writeKept } from '../../src/store/kept-answer.ts';
import type { UsageRow } from '../../src/store/usage-row.ts';
import { monthOf } from '../../src/time/month.ts';
import { WHOLE_PROJECT } from '../tables.ts';

/** One write of the ledger. */
export type LedgerWrite =
  | { readonly kind: 'hold'; readonly request: HoldRequest }
  | ({ readonly kind: 'charge' } & ChargeRequest)
  | { readonly kind: 'release'; readonly hold: Hold; readonly usage: UsageRow | null };

/** A write, and the open questions of an earlier try. */
export interface AskedWrite {
  readonly write: LedgerWrite;
  /** True if COMMIT was sent and no answer came. The stored rows then tell the outcome. */
  readonly is_doubtful: boolean;
  /** True if nobody waits for the hold any more. A placed hold is then freed, and no other is placed. */
  readonly is_abandoned: boolean;
}

/** A hold's entry. `ended_by` is the kind of the entry that ends it. */
export interface HoldEntry extends Hold {
  readonly ended_by: string | null;
}

/** The stored rows, read under the locks of the organizations. */
export interface LockedLedger {
  readonly organizations: ReadonlyMap<
    string,
    { readonly credit_micros: number; readonly held_micros: number }
  >;
  readonly projects: ReadonlyMap<
    string,
    { readonly organization_id: string; readonly name: string; readonly spend_limit_micros: number | null }
  >;
  /** The keys that holds count for, by their id. */
  readonly keys: ReadonlyMap<string, { readonly name: string; readonly monthly_limit_micros: number | null }>;
  /** The months that the writes count in, by `monthKey`. A month without a row is missing. */
  readonly months: ReadonlyMap<string, Readonly<Amounts>>;
  /** The holds to end, by the id of their entry. */
  readonly holds: ReadonlyMap<number, HoldEntry>;
  /** The stored entries of doubtful holds, by request. */
  readonly placed: ReadonlyMap<string, HoldEntry>;
  /** The times of the stored claims, by `claimKey`; null for open claims. */
  readonly claims: ReadonlyMap<string, number | null>;
  /** The bytes of an organization's answers up to its last one. Every organization has an entry. */
  readonly kept_bytes: ReadonlyMap<string, number>;
}

export interface OrganizationChange {
  readonly id: string;
  credit_micros: number;
  held_micros: number;
  open_holds: number;
}

interface Amounts {
  spent_micros: number;
  held_micros: number;
}

const NO_AMOUNTS: Readonly<Amounts> = { spent_micros: 0, held_micros: 0 };

export interface MonthChange extends CountedMonth, Amounts {}

/** The month of a key, or of the whole project, as in `project_months`. */
export type CountedMonth = Pick<Hold, 'project_id' | 'month'> & { readonly api_key_id: string };

/** A new entry of the ledger. */
export interface NewEntry {
  readonly kind: 'hold' | 'charge';
  readonly organization_id: string;
  readonly project_id: string;
  readonly month: string;
  readonly api_key_id: string | null;
  readonly credit_delta_micros: number;
  readonly held_delta_micros: number;
  /** The hold that a charge ends; null for a hold. */
  readonly hold_entry_id: number | null;
  /** The request of a hold; null for a charge. */
  readonly request_id: string | null;
  readonly created_at_ms: number;
}

/** The new claim of a hold. */
export interface NewClaim extends IdempotencyClaim {
  readonly request_id: string;
  readonly organization_id: string;
  readonly created_at_ms: number;
}

/** The answer that replaces the hold in its claim. */
export interface NewAnswer {
  readonly hold_entry_id: number;
  readonly answer: string;
  readonly bytes_so_far: number;
}

/** All changes of a batch. Changes of the same row are added up. */
export interface LedgerChanges {
  /** The new entries, in the order of the decisions. */
  readonly entries: NewEntry[];
  /** The entries of released holds. */
  readonly released: number[];
  readonly usage: UsageRow[];
  readonly organizations: OrganizationChange[];
  readonly months: MonthChange[];
  readonly new_months: MonthChange[];
  /** Expired claims that new ones replace. */
  readonly forgotten: Pick<IdempotencyClaim, 'api_key_id' | 'key_hash'>[];
  readonly claims: NewClaim[];
  readonly answers: NewAnswer[];
  /** The answers to delete: those of an organization up to this sum of bytes. */
  readonly dropped: { readonly organization_id: string; readonly up_to_bytes: number }[];
}

/** The result of a write, valid once the changes are durable. */
export type Outcome =
  | { readonly kind: 'placed'; readonly request: HoldRequest; readonly month: string }
  | { readonly kind: 'held'; readonly result: HoldResult }
  | { readonly kind: 'ended' }
  | { readonly kind: 'failed'; readonly error: Error };

/** Returns the months that a hold and its end count in: that of the whole project, and that of the key. */
export function countedMonths({
  project_id,
  month,
  api_key_id,
}: Pick<Hold, 'project_id' | 'month' | 'api_key_id'>): CountedMonth[] {
  const of_project = { project_id, month, api_key_id: WHOLE_PROJECT };
  return api_key_id === null || api_key_id === WHOLE_PROJECT
    ? [of_project]
    : [of_project, { project_id, month, api_key_id }];
}

/** Returns the key of a month in `LockedLedger.months`. */
export function monthKey({ project_id, month, api_key_id }: CountedMonth): string {
  return `${month} ${project_id} ${api_key_id}`;
}

/** Returns the key of a claim in `LockedLedger.claims`. */
export function claimKey({
  api_key_id,
  key_hash,
}: Pick<IdempotencyClaim, 'api_key_id' | 'key_hash'>): string {
  return `${api_key_id} ${key_hash}`;
}

/** Throws `RangeError` for invalid amounts and costs, which the database would round. */
export function requireHonest(write: LedgerWrite): void {
  if (write.kind === 'hold') requireMicros(write.request.amount_micros, 0);
  if (write.kind === 'charge') requireMicros(write.cost_micros, 0, write.hold.amount_micros);
}

/** Returns true if a month of those amounts has no room for the hold under the limit. */
function isAbove(
  limit_micros: number,
  { spent_micros, held_micros }: Readonly<Amounts>,
  amount_micros: number,
): boolean {
  return spent_micros >= limit_micros || spent_micros + held_micros + amount_micros > limit_micros;
}

/**
 * Decides the writes of a batch in order, each after the changes of those before it. Returns the summed changes, and
 * the outcomes in the order of the writes. The outcomes are true once the changes are committed.
 */
export function decideWrites(
  asked: readonly AskedWrite[],
  ledger: LockedLedger,
): { readonly outcomes: Outcome[]; readonly changes: LedgerChanges } {
  const batch = new Batch(ledger);
  const outcomes = asked.map((one) => batch.take(one));
  return { outcomes, changes: batch.changes() };
}

class Batch {
  readonly #ledger: LockedLedger;
  readonly #ended = new Set<number>();
  readonly #organizations = new Map<string, OrganizationChange>();
  readonly #months = new Map<string, MonthChange>();
  readonly #entries: NewEntry[] = [];
  readonly #released: number[] = [];
  readonly #usage: UsageRow[] = [];
  readonly #forgotten: LedgerChanges['forgotten'] = [];
  readonly #claims = new Map<string, NewClaim>();
  readonly #answers: NewAnswer[] = [];
  readonly #kept_bytes = new Map<string, number>();

  constructor(ledger: LockedLedger) {
    this.#ledger = ledger;
  }

  take({ write, is_doubtful, is_abandoned }: AskedWrite): Outcome {
    switch (write.kind) {
      case 'hold': {
        const placed = is_doubtful ? this.#ledger.placed.get(write.request.request_id) : undefined;
        if (is_abandoned) return placed === undefined ? ENDED : this.#free(placed);
        // An abandoned write of the same request may have ended it, earlier in this batch.
        return placed !== undefined && this.#isOpen(placed) ? held(placed) : this.#hold(write.request);
      }
      case 'charge': {
        const entry = this.#entryOf(write.hold);
        if (is_doubtful && entry?.ended_by === 'charge') return ENDED;
        if (entry === undefined || !this.#isOpen(entry)) return notOpen(write.hold);
        this.#charge(entry, write.cost_micros, write.at_ms);
        this.#usage.push(write.usage);
        if (write.kept !== null) this.#keep(write.hold, write.kept);
        return ENDED;
      }
      case 'release': {
        const entry = this.#entryOf(write.hold);
        if (entry === undefined || !this.#isOpen(entry)) return notOpen(write.hold);
        if (write.usage !== null) this.#usage.push(write.usage);
        return this.#free(entry);
      }
    }
  }

  changes(): LedgerChanges {
    const months = [...this.#months.entries()];
    const isStored = (key: string) => this.#ledger.months.has(key);
    return {
      entries: this.#entries,
      released: this.#released,
      usage: this.#usage,
      organizations: [...this.#organizations.values()],
      months: months.filter(([key]) => isStored(key)).map(([, change]) => change),
      new_months: months.filter(([key]) => !isStored(key)).map(([, change]) => change),
      forgotten: this.#forgotten,
      claims: [...this.#claims.values()],
      answers: this.#answers,
      dropped: [...this.#kept_bytes].map(([organization_id, bytes_so_far]) => ({
        organization_id,
        up_to_bytes: bytes_so_far - KEPT_BYTES_MAX,
      })),
    };
  }

  #hold(request: HoldRequest): Outcome {
    const { organization_id, project_id, amount_micros } = request;
    const project = this.#ledger.projects.get(project_id);
    const organization = this.#ledger.organizations.get(organization_id);
    if (organization === undefined || project?.organization_id !== organization_id) {
      const error = new UnknownAccount(`${organization_id} has no project ${project_id}`);
      return { kind: 'failed', error };
    }
    const { claim } = request;
    if (claim !== undefined && this.#isTaken(claim, request.at_ms))
      return { kind: 'held', result: { held: false, refusal: 'idempotency_key_in_use' } };
    const month = monthOf(request.at_ms);
    const refusal = this.#refusal(request, month, project, organization);
    if (refusal !== null) return { kind: 'held', result: { held: false, ...refusal } };
    const { request_id, at_ms, api_key_id = null } = request;
    if (claim !== undefined) this.#claim(claim, request);
    this.#entries.push({
      kind: 'hold',
      organization_id,
      project_id,
      month,
      api_key_id,
      credit_delta_micros: 0,
      held_delta_micros: amount_micros,
      hold_entry_id: null,
      request_id,
      created_at_ms: at_ms,
    });
    this.#move({ organization_id, project_id, month, api_key_id }, 0, amount_micros, 1);
    return { kind: 'placed', request, month };
  }

  /** Returns the refusal of a hold in the order of `Books.hold`; null if the hold is covered. */
  #refusal(
    { organization_id, project_id, amount_micros, api_key_id = '' }: HoldRequest,
    month: string,
    { name, spend_limit_micros }: { readonly name: string; readonly spend_limit_micros: number | null },
    organization: { readonly credit_micros: number; readonly held_micros: number },
  ): HoldRefusal | null {
    const of_project = this.#amountsOf({ project_id, month, api_key_id: WHOLE_PROJECT });
    if (spend_limit_micros !== null && isAbove(spend_limit_micros, of_project, amount_micros))
      return { refusal: 'project_spend_limit', project: name, spend_limit_micros };
    const { name: api_key = '', monthly_limit_micros = null } = this.#ledger.keys.get(api_key_id) ?? {};
    const of_key = this.#amountsOf({ project_id, month, api_key_id });
    if (monthly_limit_micros !== null && isAbove(monthly_limit_micros, of_key, amount_micros))
      return { refusal: 'api_key_spend_limit', api_key, monthly_limit_micros };
    const change = this.#organizations.get(organization_id);
    const credit_micros = organization.credit_micros + (change?.credit_micros ?? 0);
    const available_micros = credit_micros - organization.held_micros - (change?.held_micros ?? 0);
    return available_micros >= amount_micros ? null : { refusal: 'insufficient_credit', available_micros };
  }

  /** Returns the amounts of a month after the changes so far. */
  #amountsOf(counted: CountedMonth): Readonly<Amounts> {
    const stored = this.#ledger.months.get(monthKey(counted));
    const changed = this.#months.get(monthKey(counted));
    return {
      spent_micros: (stored?.spent_micros ?? 0) + (changed?.spent_micros ?? 0),
      held_micros: (stored?.held_micros ?? 0) + (changed?.held_micros ?? 0),
    };
  }

  #isTaken(claim: IdempotencyClaim, now_ms: number): boolean {
    const key = claimKey(claim);
    if (this.#claims.has(key)) return true;
    const answered_at_ms = this.#ledger.claims.get(key);
    return (
      answered_at_ms !== undefined &&
      (answered_at_ms === null || answered_at_ms > now_ms - IDEMPOTENCY_KEPT_MS)
    );
  }

  #claim(claim: IdempotencyClaim, { request_id, organization_id, at_ms }: HoldRequest): void {
    const key = claimKey(claim);
    const { api_key_id, key_hash } = claim;
    if (this.#ledger.claims.has(key)) this.#forgotten.push({ api_key_id, key_hash });
    this.#claims.set(key, { ...claim, request_id, organization_id, created_at_ms: at_ms });
  }

  #keep({ entry_id, organization_id }: Hold, kept: KeptAnswer): void {
    const { answer, bytes } = writeKept(kept);
    const before = this.#kept_bytes.get(organization_id) ?? this.#ledger.kept_bytes.get(organization_id) ?? 0;
    const bytes_so_far = before + bytes;
    this.#answers.push({ hold_entry_id: entry_id, answer, bytes_so_far });
    this.#kept_bytes.set(organization_id, bytes_so_far);
  }

  #charge(entry: HoldEntry, cost_micros: number, created_at_ms: number): void {
    this.#ended.add(entry.entry_id);
    this.#entries.push({
      kind: 'charge',
      organization_id: entry.organization_id,
      project_id: entry.project_id,
      month: entry.month,
      api_key_id: entry.api_key_id,
      credit_delta_micros: -cost_micros,
      held_delta_micros: -entry.amount_micros,
      hold_entry_id: entry.entry_id,
      request_id: null,
      created_at_ms,
    });
    this.#move(entry, cost_micros, -entry.amount_micros, -1);
  }

  /** Deletes the hold's entry, so that requests without a cost leave nothing in the ledger. */
  #free(entry: HoldEntry): Outcome {
    if (!this.#isOpen(entry)) return ENDED;
    this.#ended.add(entry.entry_id);
    this.#released.push(entry.entry_id);
    this.#move(entry, 0, -entry.amount_micros, -1);
    return ENDED;
  }

  /** Returns the stored entry of the hold. After a restore, its number can be another request's. */
  #entryOf({ entry_id, request_id }: Hold): HoldEntry | undefined {
    const entry = this.#ledger.holds.get(entry_id);
    return entry?.request_id === request_id ? entry : undefined;
  }

  #isOpen(entry: HoldEntry): boolean {
    return entry.ended_by === null && !this.#ended.has(entry.entry_id);
  }

  #move(
    {
      organization_id,
      project_id,
      month,
      api_key_id,
    }: Pick<Hold, 'organization_id' | 'project_id' | 'month' | 'api_key_id'>,
    cost_micros: number,
    held_micros: number,
    open_holds: number,
  ): void {
    const organization = this.#organizations.get(organization_id) ?? {
      id: organization_id,
      credit_micros: 0,
      held_micros: 0,
      open_holds: 0,
    };
    organization.credit_micros -= cost_micros;
    organization.held_micros += held_micros;
    organization.open_holds += open_holds;
    this.#organizations.set(organization_id, organization);
    for (const counted of countedMonths({ project_id, month, api_key_id })) {
      const changed = this.#months.get(monthKey(counted)) ?? { ...counted, ...NO_AMOUNTS };
      changed.spent_micros += cost_micros;
      changed.held_micros += held_micros;
      this.#months.set(monthKey(counted), changed);
    }
  }
}

const ENDED: Outcome = { kind: 'ended' };

function held({ ended_by: _, ...hold }: HoldEntry): Outcome {
  return { kind: 'held', result: { held: true, hold } };
}

function notOpen(hold: Hold): Outcome {
  return {
    kind: 'failed',
    error: new HoldNotOpen(`hold ${hold.entry_id} has ended or does not exist`),
  };
}
