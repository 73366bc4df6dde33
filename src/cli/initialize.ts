import { organizations } from '../../db/sqlite/schema.ts';
import { OPERATOR } from '../accounts/actor.ts';
import { createKey } from '../accounts/keys.ts';
import { NAME_LENGTH_MAX } from '../accounts/names.ts';
import { type CreatedOrganization, createOrganization } from '../accounts/organizations.ts';
import { signUp } from '../accounts/users.ts';
import { seedCatalog } from '../catalog/catalog.ts';
import { MICROS_PER_DOLLAR } from '../money.ts';
import { type CreditContext, inTransaction } from '../payments/context.ts';
import { enterCreditByHand } from '../payments/credit.ts';

export const FIRST_ORGANIZATION_NAME = 'My organization';
const FIRST_KEY_NAME = 'First key';
/** What the first organization starts with: enough for Tier 1. */
export const FIRST_CREDIT_MICROS = 25 * MICROS_PER_DOLLAR;

/** What a new database was filled with. The key is shown this once. */
export interface Initialized {
  readonly organization_id: string;
  readonly organization_name: string;
  readonly default_project_id: string;
  /** Null where no owner was named. */
  readonly owner_user_id: string | null;
  readonly key_id: string;
  readonly key: string;
}

/** Whether the database holds an organization. */
export function isInitialized({ db }: Pick<CreditContext, 'db'>): boolean {
  return db.select({ id: organizations.id }).from(organizations).limit(1).get() !== undefined;
}

/** What a first start may be told. */
export interface InitializeOptions {
  /** Email address of the owner of the first organization, who becomes the first user. */
  readonly owner?: string | undefined;
  /** Gets the key before the commit: when it throws, nothing is changed. */
  readonly keep?: (key: string) => void;
}

/** The first organization: the personal one of its owner, where one is named. */
function firstOrganization(
  context: CreditContext,
  owner: string | undefined,
): { readonly organization: CreatedOrganization; readonly owner_user_id: string | null } {
  const organization_name = FIRST_ORGANIZATION_NAME;
  if (owner === undefined) {
    const organization = createOrganization(context, OPERATOR, { name: organization_name });
    return { organization, owner_user_id: null };
  }
  // No organization, no user: every user has a personal one.
  const [local_part = ''] = owner.trim().split('@');
  const name = [...local_part].slice(0, NAME_LENGTH_MAX).join('');
  const { user, organization } = signUp(context, { email: owner, name, organization_name });
  return { organization, owner_user_id: user.id };
}

/**
 * Fills an empty database in one transaction: the models, a first organization with its owner and its Default project,
 * $25 of credit, a first key. Null when there is an organization already; nothing is changed then. Rejects with
 * `invalid_email` for an owner whose address is none.
 */
export function initialize(
  context: CreditContext,
  options: InitializeOptions = {},
): Promise<Initialized | null> {
  return inTransaction(context, async (transaction) => {
    if (isInitialized(context)) return null;
    seedCatalog(context.db);
    const { organization, owner_user_id } = firstOrganization(context, options.owner);
    const { id: organization_id } = organization;
    await enterCreditByHand(transaction, { organization_id, amount_micros: FIRST_CREDIT_MICROS });
    const { id, key } = createKey(context, OPERATOR, {
      project_id: organization.default_project_id,
      name: FIRST_KEY_NAME,
    });
    options.keep?.(key);
    return {
      organization_id,
      organization_name: organization.name,
      default_project_id: organization.default_project_id,
      owner_user_id,
      key_id: id,
      key,
    };
  });
}
