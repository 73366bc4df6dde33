import { OPERATOR } from '../access/actor.ts';
import type { AccountContext } from '../access/context.ts';
import { insertKey } from '../accounts/keys.ts';
import { NAME_LENGTH_MAX } from '../accounts/names.ts';
import { type CreatedOrganization, insertOrganization } from '../accounts/organizations.ts';
import { inTransaction, type Transaction } from '../accounts/transaction.ts';
import { insertUser } from '../accounts/users.ts';
import { seedCatalog } from '../catalog/catalog.ts';
import { MICROS_PER_DOLLAR } from '../contract/money.ts';
import { enterCreditByHand } from '../payments/credit.ts';
import type { Records } from '../store/store.ts';

export const FIRST_ORGANIZATION_NAME = 'My organization';
const FIRST_KEY_NAME = 'First key';
/** The credit of the first organization: enough for Tier 1. */
export const FIRST_CREDIT_MICROS = 25 * MICROS_PER_DOLLAR;

/** The content of a new database. The key is shown only this once. */
export interface Initialized {
  readonly organization_id: string;
  readonly organization_name: string;
  readonly default_project_id: string;
  /** Null where no owner was named. */
  readonly owner_user_id: string | null;
  readonly key_id: string;
  readonly key: string;
}

/** Returns true if the database has an organization. */
export function isInitialized({ accounts }: Pick<Records, 'accounts'>): Promise<boolean> {
  return accounts.hasOrganizations();
}

/** The options of a first start. */
export interface InitializeOptions {
  /** The email address of the owner of the first organization, who becomes the first user. */
  readonly owner?: string | undefined;
  /** Called with the key once, last before the commit: when it throws, nothing is changed. */
  readonly keep?: (created: Initialized) => void;
}

/** Creates the first organization: the personal one of its owner, where one is named. */
async function firstOrganization(
  transaction: Transaction,
  owner: string | undefined,
): Promise<{ readonly organization: CreatedOrganization; readonly owner_user_id: string | null }> {
  const organization_name = FIRST_ORGANIZATION_NAME;
  if (owner === undefined) {
    const organization = await insertOrganization(transaction, {
      name: organization_name,
      owner_user_id: null,
      personal: false,
    });
    return { organization, owner_user_id: null };
  }
  // Without an organization there is no user, because every user has a personal one.
  const [local_part = ''] = owner.trim().split('@');
  const name = [...local_part].slice(0, NAME_LENGTH_MAX).join('');
  const { user, organization } = await insertUser(transaction, {
    email: owner,
    name,
    organization_name,
  });
  return { organization, owner_user_id: user.id };
}

/**
 * Fills an empty database in one transaction: the models, a first organization with its owner and its Default
 * project, $25 of credit, a first key. Returns null, and changes nothing, when there is an organization
 * already. Rejects with `invalid_email` for an invalid address of the owner.
 */
export function initialize(
  context: AccountContext,
  options: InitializeOptions = {},
): Promise<Initialized | null> {
  return inTransaction(context, async (transaction) => {
    const { records } = transaction;
    if (await isInitialized(records)) return null;
    await seedCatalog(records.catalog);
    const { organization, owner_user_id } = await firstOrganization(transaction, options.owner);
    const { id: organization_id } = organization;
    await enterCreditByHand(transaction, OPERATOR, { organization_id, amount_micros: FIRST_CREDIT_MICROS });
    const { id, key } = await insertKey(transaction, OPERATOR, {
      project_id: organization.default_project_id,
      name: FIRST_KEY_NAME,
    });
    const created = {
      organization_id,
      organization_name: organization.name,
      default_project_id: organization.default_project_id,
      owner_user_id,
      key_id: id,
      key,
    };
    options.keep?.(created);
    return created;
  });
}
