import type { AnswerOf, api } from '../client.ts';

/** One organization, as the API returns it to an operator. */
export type WholeOrganization = AnswerOf<ReturnType<typeof api.operator.organizations>['get']>;

/** The properties of a part of the page of one organization. */
export interface OrganizationProps {
  readonly organization: WholeOrganization;
  readonly onChange: () => Promise<void>;
}
