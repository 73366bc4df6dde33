import type { AnswerOf, OfOrganization } from '../client.ts';

/** The API's facts about an organization's credit and tier. */
export type BillingFacts = AnswerOf<OfOrganization['billing']['get']>;

/** A top-up or a refund. */
export type Payment = BillingFacts['pending'][number];
