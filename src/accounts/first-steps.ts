import type { Store } from '../store.ts';
import type { UsageReader } from '../usage/usage-reader.ts';
import type { Actor } from './actor.ts';
import { requirePermission } from './permissions.ts';

/** When an organization first did what every organization begins with; null for what it has not done. */
export interface FirstSteps {
  readonly credit_added_at_ms: number | null;
  readonly key_created_at_ms: number | null;
  /** The end of its UTC day where the request was rolled up. */
  readonly first_answer_at_ms: number | null;
}

/** What tells the first steps. */
export interface FirstStepsContext {
  readonly store: Store;
  readonly reader: Pick<UsageReader, 'firstAnswer_ms'>;
}

/** Tells how far an organization has come. Rejects with `not_found`. */
export async function firstSteps(
  { store, reader }: FirstStepsContext,
  actor: Actor,
  organization_id: string,
): Promise<FirstSteps> {
  await requirePermission(store, actor, organization_id, 'see');
  const [credit, key, answer] = await Promise.all([
    store.payments.firstCredit_ms(organization_id),
    store.keys.firstCreated_ms(organization_id),
    reader.firstAnswer_ms(organization_id),
  ]);
  return {
    credit_added_at_ms: credit ?? null,
    key_created_at_ms: key ?? null,
    first_answer_at_ms: answer ?? null,
  };
}
