import { AccountError } from '../access/account-error.ts';
import { type Actor, memberIdOf } from '../access/actor.ts';
import type { AccountContext } from '../access/context.ts';
import { permits, requirePermission } from '../access/permissions.ts';
import { recordAct } from '../audit-log/record.ts';
import { secretHash } from '../hashing/secret-hash.ts';
import type { KeyOwner, ListedKey } from '../store/key-records.ts';
import type { Records } from '../store/store.ts';
import { DAY_MS } from '../time/clock.ts';
import { monthOf } from '../time/month.ts';
import { keyDisplayPrefix } from './key-format.ts';
import { checkedName } from './names.ts';
import { requireLimit, requireProject } from './projects.ts';
import { inTransaction, type Transaction } from './transaction.ts';

/** The most active keys of an organization (contract: 100 active API keys). */
export const ACTIVE_KEYS_MAX = 100;

interface NewKeyRequest {
  readonly project_id: string;
  readonly name: string;
  /** The time from which the key is refused as a revoked one is; none by default. */
  readonly expires_at_ms?: number | null;
  /** The most that the key may spend in a UTC month, in micro-dollars; null for no limit, which is the default. */
  readonly monthly_limit_micros?: number | null;
}

/** The latest expiry of a key, and the longest overlap of a rotation. */
export const EXPIRY_DAYS_MAX = 3_650;
export const OVERLAP_DAYS_MAX = 30;

export interface CreatedKey {
  readonly id: string;
  /** The secret, which is shown only once and never stored. */
  readonly key: string;
  readonly name: string;
  readonly project_id: string;
  readonly display_prefix: string;
  readonly created_at_ms: number;
  readonly expires_at_ms: number | null;
  readonly monthly_limit_micros: number | null;
}

/** A key that took the place of another. */
export interface RotatedKey extends CreatedKey {
  /** The other key, and the time at which the overlap ends; null where it was revoked. */
  readonly replaced: { readonly id: string; readonly expires_at_ms: number | null };
}

/**
 * Creates a key of a project (owners, admins and developers); it works at once. `keep` is called with it once, last
 * before the commit: when it throws, nothing is changed. Rejects with `invalid_name`, `invalid_expiry`, `invalid_amount`,
 * `not_found`, `permission_denied`, `project_archived`, `too_many_keys`.
 */
export function createKey(
  context: AccountContext,
  actor: Actor,
  given: NewKeyRequest,
  keep?: (created: CreatedKey) => void,
): Promise<CreatedKey> {
  return inTransaction(context, async (transaction) => {
    const created = await insertKey(transaction, actor, given);
    keep?.(created);
    return created;
  });
}

/** Does the same as `createKey`, inside a transaction of the caller; with a replaced key, its limit applies. */
export async function insertKey(
  { records, clock, identifiers }: Transaction,
  actor: Actor,
  given: NewKeyRequest,
  replaced: Pick<KeyOwner, 'first_key_id' | 'monthly_limit_micros'> | null = null,
): Promise<CreatedKey> {
  const name = checkedName(given.name);
  const project = await requireProject(records, actor, given.project_id, 'create_keys');
  if (project.archived_at_ms !== null) throw new AccountError('project_archived');
  const created_at_ms = clock.now_ms();
  const { expires_at_ms = null, monthly_limit_micros = null } = given;
  requireExpiry(expires_at_ms, created_at_ms);
  requireLimit(monthly_limit_micros);
  // An expired key is no active one.
  await records.keys.revokeExpired(created_at_ms);
  if ((await records.keys.countActive(project.organization_id)) >= ACTIVE_KEYS_MAX) {
    throw new AccountError('too_many_keys');
  }
  const key = identifiers.apiKey();
  const stored = {
    id: identifiers.id('key'),
    project_id: project.id,
    name,
    display_prefix: keyDisplayPrefix(key),
    created_at_ms,
    expires_at_ms,
  };
  await records.keys.insertKey({
    ...stored,
    secret_sha256: secretHash(key),
    created_by_user_id: actor.user_id,
    first_key_id: replaced?.first_key_id ?? null,
    monthly_limit_micros,
  });
  await recordAct(records, { clock }, actor, {
    action: 'key.create',
    organization_id: project.organization_id,
    object_id: stored.id,
    detail: {
      name,
      display_prefix: stored.display_prefix,
      project_id: project.id,
      ...(expires_at_ms === null ? {} : { expires_at_ms }),
      ...(monthly_limit_micros === null ? {} : { monthly_limit_micros }),
    },
  });
  return { ...stored, key, monthly_limit_micros: replaced?.monthly_limit_micros ?? monthly_limit_micros };
}

/**
 * Returns the active keys that the actor may see, oldest first; with `revoked`, the revoked ones. They are
 * those of one organization, of one project, or of all of the actor's. Rejects with `not_found`.
 */
export async function listKeys(
  { store, clock }: AccountContext,
  actor: Actor,
  filter: {
    readonly organization_id?: string;
    readonly project_id?: string;
    readonly revoked?: boolean;
  } = {},
): Promise<ListedKey[]> {
  const { organization_id, project_id } = filter;
  if (organization_id !== undefined) await requirePermission(store, actor, organization_id, 'see');
  if (project_id !== undefined) await requireProject(store, actor, project_id, 'see');
  return store.keys.listKeys({
    member_user_id: memberIdOf(actor),
    organization_id,
    project_id,
    revoked: filter.revoked === true,
    month: monthOf(clock.now_ms()),
  });
}

/** The keys of one page, unless another number is asked for. */
export const REVOKED_KEYS_PAGE_MAX = 100;

/**
 * Returns a page of the revoked keys of an organization, last revoked first; `next` is the cursor of the next
 * page. Rejects with `not_found`.
 */
export async function listRevokedKeys(
  { store, clock }: Pick<AccountContext, 'store' | 'clock'>,
  actor: Actor,
  given: {
    readonly organization_id: string;
    readonly cursor: string | null;
    readonly limit?: number;
  },
): Promise<{ readonly items: readonly ListedKey[]; readonly next: string | null }> {
  const { organization_id, cursor, limit = REVOKED_KEYS_PAGE_MAX } = given;
  await requirePermission(store, actor, organization_id, 'see');
  const found = await store.keys.revokedKeysOf(organization_id, cursor, limit + 1, monthOf(clock.now_ms()));
  const items = found.slice(0, limit);
  return { items, next: found.length > items.length ? (items.at(-1)?.id ?? null) : null };
}

/**
 * Revokes a key for good: owners and admins any key, other members only keys that they created. Running
 * servers refuse it within 60 seconds. Revoking it again changes nothing. Rejects with `not_found`,
 * `permission_denied`.
 */
export function revokeKey(
  context: AccountContext,
  actor: Actor,
  key_id: string,
): Promise<{ readonly revoked_at_ms: number }> {
  const { store, clock } = context;
  return store.transaction(async (records) => {
    const key = await seenKey(records, actor, key_id);
    if (!isCreator(actor, key))
      await requirePermission(records, actor, key.organization_id, 'revoke_any_key');
    if (key.revoked_at_ms !== null) return { revoked_at_ms: key.revoked_at_ms };
    const revoked_at_ms = clock.now_ms();
    await records.keys.revokeKey(key_id, revoked_at_ms);
    await recordAct(records, context, actor, {
      action: 'key.revoke',
      organization_id: key.organization_id,
      object_id: key_id,
    });
    return { revoked_at_ms };
  });
}

/**
 * Changes when a key expires; null for never. Owners and admins do so with any key, others with those that they created,
 * while their role may create keys. Rejects with `invalid_expiry`, `key_ended`, `not_found`, `permission_denied`.
 */
export function setKeyExpiry(
  context: AccountContext,
  actor: Actor,
  { key_id, expires_at_ms }: { readonly key_id: string; readonly expires_at_ms: number | null },
): Promise<void> {
  return inTransaction(context, async (transaction) => {
    const { organization_id } = await requireChangeable(transaction, actor, key_id);
    requireExpiry(expires_at_ms, transaction.clock.now_ms());
    await writeExpiry(transaction, actor, { key_id, organization_id, expires_at_ms });
  });
}

/**
 * Changes what a key and those of its rotations may spend in a UTC month; null for no limit. It applies from the next
 * request on. The permissions are those of `setKeyExpiry`. Rejects with `invalid_amount` and as that.
 */
export function setKeyLimit(
  context: AccountContext,
  actor: Actor,
  given: { readonly key_id: string; readonly monthly_limit_micros: number | null },
): Promise<void> {
  const { key_id, monthly_limit_micros } = given;
  return inTransaction(context, async (transaction) => {
    const before = await requireChangeable(transaction, actor, key_id);
    requireLimit(monthly_limit_micros);
    if (monthly_limit_micros === before.monthly_limit_micros) return;
    await transaction.records.keys.setMonthlyLimit(before.first_key_id, monthly_limit_micros);
    await recordAct(transaction.records, transaction, actor, {
      action: 'key.spend_limit',
      organization_id: before.organization_id,
      object_id: key_id,
      detail: { from_micros: before.monthly_limit_micros, to_micros: monthly_limit_micros },
    });
  });
}

/**
 * Creates a key of the same name and project in place of another one, whose limit and spend it takes over. The other
 * still works for an overlap in milliseconds; with 0 it is revoked. The new one expires by itself, or never for null. The
 * permissions are those of `setKeyExpiry`. Calls `keep`, and rejects, as that and `createKey` do.
 */
export function rotateKey(
  context: AccountContext,
  actor: Actor,
  given: { readonly key_id: string; readonly overlap_ms: number; readonly expires_at_ms?: number | null },
  keep?: (rotated: RotatedKey) => void,
): Promise<RotatedKey> {
  const { key_id, overlap_ms } = given;
  return inTransaction(context, async (transaction) => {
    const { records, clock } = transaction;
    const replaced = await requireChangeable(transaction, actor, key_id);
    const { organization_id, project_id, name, expires_at_ms } = replaced;
    if (!Number.isInteger(overlap_ms) || overlap_ms < 0 || overlap_ms > OVERLAP_DAYS_MAX * DAY_MS)
      throw new AccountError('invalid_expiry', `Both keys can work for at most ${OVERLAP_DAYS_MAX} days.`);
    const now_ms = clock.now_ms();
    const ends_at_ms =
      overlap_ms === 0 ? null : Math.min(expires_at_ms ?? Number.POSITIVE_INFINITY, now_ms + overlap_ms);
    if (ends_at_ms === null) {
      await records.keys.revokeKey(key_id, now_ms);
      await recordAct(records, { clock }, actor, {
        action: 'key.revoke',
        organization_id,
        object_id: key_id,
      });
    } else {
      await writeExpiry(transaction, actor, { key_id, organization_id, expires_at_ms: ends_at_ms });
    }
    const created = await insertKey(
      transaction,
      actor,
      { project_id, name, expires_at_ms: given.expires_at_ms ?? null },
      replaced,
    );
    const rotated = { ...created, replaced: { id: key_id, expires_at_ms: ends_at_ms } };
    keep?.(rotated);
    return rotated;
  });
}

async function writeExpiry(
  { records, clock }: Transaction,
  actor: Actor,
  given: { readonly key_id: string; readonly organization_id: string; readonly expires_at_ms: number | null },
): Promise<void> {
  const { key_id, organization_id, expires_at_ms } = given;
  await records.keys.setExpiry(key_id, expires_at_ms);
  await recordAct(records, { clock }, actor, {
    action: 'key.expiry',
    organization_id,
    object_id: key_id,
    detail: { expires_at_ms },
  });
}

/** Returns a key of an organization that the actor may see. Rejects with `not_found`. */
async function seenKey(
  records: Pick<Records, 'accounts' | 'keys'>,
  actor: Actor,
  key_id: string,
): Promise<KeyOwner> {
  const key = await records.keys.findOwner(key_id);
  if (key === undefined || !(await permits(records, actor, key.organization_id, 'see'))) {
    throw new AccountError('not_found', 'There is no such API key.');
  }
  return key;
}

function isCreator(actor: Actor, key: KeyOwner): boolean {
  return actor.kind === 'user' && key.created_by_user_id === actor.user_id;
}

/** Returns a key that works and that the actor may change. Rejects with `not_found`, `permission_denied`, `key_ended`. */
async function requireChangeable(
  { records, clock }: Transaction,
  actor: Actor,
  key_id: string,
): Promise<KeyOwner> {
  const key = await seenKey(records, actor, key_id);
  const permission = isCreator(actor, key) ? 'create_keys' : 'revoke_any_key';
  await requirePermission(records, actor, key.organization_id, permission);
  const is_expired = key.expires_at_ms !== null && key.expires_at_ms <= clock.now_ms();
  if (key.revoked_at_ms !== null || is_expired) throw new AccountError('key_ended');
  return key;
}

/** Throws `invalid_expiry` unless a key without an end is meant, or a time in the next ten years. */
function requireExpiry(expires_at_ms: number | null, now_ms: number): void {
  if (expires_at_ms === null) return;
  const is_valid =
    Number.isInteger(expires_at_ms) &&
    expires_at_ms > now_ms &&
    expires_at_ms <= now_ms + EXPIRY_DAYS_MAX * DAY_MS;
  if (!is_valid) throw new AccountError('invalid_expiry');
}
