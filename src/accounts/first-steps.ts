import type { Actor } from '../access/actor.ts';
import { requirePermission } from '../access/permissions.ts';
import type { Store } from '../store/store.ts';
import type { UsageReader } from '../store/usage-reader.ts';

/** The times of an organization's first steps; null for a step not taken yet. */
export interface FirstSteps {
  readonly credit_added_at_ms: number | null;
  readonly key_created_at_ms: number | null;
  /** The end of the UTC day where the request was rolled up. */
  readonly first_answer_at_ms: number | null;
}

/** The parts that the first steps are read from. */
export interface FirstStepsContext {
  readonly store: Store;
  readonly reader: Pick<UsageReader, 'firstAnswer_ms'>;
}

/** Returns the first steps of an organization. Rejects with `not_found`. */
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
