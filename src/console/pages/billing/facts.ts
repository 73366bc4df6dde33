import type { api } from '../client.ts';

/** The API's facts about an organization's credit and tier. */
export type BillingFacts = NonNullable<
  Awaited<ReturnType<ReturnType<typeof api.organizations>['billing']['get']>>['data']
>;

/** A top-up or a refund. */
export type Payment = BillingFacts['pending'][number];
