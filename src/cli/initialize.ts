import { transact } from '../../db/connection.ts';
import { organizations } from '../../db/schema.ts';
import { OPERATOR } from '../accounts/actor.ts';
import { createKey } from '../accounts/keys.ts';
import { createOrganization } from '../accounts/organizations.ts';
import { seedCatalog } from '../catalog/catalog.ts';
import { MICROS_PER_DOLLAR } from '../money.ts';
import { type CreditContext, creditByHand } from '../payments/credit.ts';

const FIRST_ORGANIZATION_NAME = 'My organization';
const FIRST_KEY_NAME = 'First key';
/** What the first organization starts with: enough for Tier 1. */
export const FIRST_CREDIT_MICROS = 25 * MICROS_PER_DOLLAR;

/** What a new database was filled with. The key is shown this once. */
export interface Initialized {
  readonly organization_id: string;
  readonly organization_name: string;
  readonly default_project_id: string;
  readonly key_id: string;
  readonly key: string;
}

/** Whether the database holds an organization. */
export function isInitialized({ db }: Pick<CreditContext, 'db'>): boolean {
  return db.select({ id: organizations.id }).from(organizations).limit(1).get() !== undefined;
}

/**
 * Fills an empty database in one transaction: the models, a first organization with its Default project, $25 of
 * credit, a first key. Null when there is an organization already; nothing is changed then. `keep` gets the key before
 * the commit: when it throws, nothing is changed either.
 */
export function initialize(
  context: CreditContext,
  keep: (key: string) => void = () => {},
): Initialized | null {
  const { db } = context;
  return transact(db, () => {
    if (isInitialized(context)) return null;
    seedCatalog(db);
    const organization = createOrganization(context, OPERATOR, { name: FIRST_ORGANIZATION_NAME });
    creditByHand(context, OPERATOR, { organization_id: organization.id, amount_micros: FIRST_CREDIT_MICROS });
    const { id, key } = createKey(context, OPERATOR, {
      project_id: organization.default_project_id,
      name: FIRST_KEY_NAME,
    });
    keep(key);
    return {
      organization_id: organization.id,
      organization_name: organization.name,
      default_project_id: organization.default_project_id,
      key_id: id,
      key,
    };
  });
}
