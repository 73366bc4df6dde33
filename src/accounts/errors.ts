/**
 * Every reason for which an account or credit service refuses, with the sentence to show when there is no better one.
 */
const ACCOUNT_ERRORS = {
  not_found: 'There is nothing with this id or name.',
  ambiguous_name: 'Several things have this name: use the id.',
  permission_denied: 'Your role does not allow this.',
  invalid_name: 'A name must have 1 to 100 characters and no control characters.',
  invalid_email: 'This is not an email address.',
  invalid_role: 'The first member of an organization must be an owner.',
  invalid_amount: 'The amount must be a whole number of micro-dollars above zero.',
  invalid_limit: 'A limit must be a whole number in its range.',
  name_taken: 'Another active project of the organization has this name.',
  email_taken: 'Another user has this email address.',
  already_member: 'This user is already a member of the organization.',
  last_owner: 'An organization must keep at least one owner.',
  too_many_invitations: 'The organization has 100 open invitations: revoke one first.',
  invitation_ended: 'This invitation was used or revoked, or has expired: ask for a new one.',
  wrong_address: 'This invitation is for another email address: sign in with that one.',
  email_not_verified: 'Verify your email address first.',
  organization_has_credit:
    'You are the only member of an organization that has credit or running requests: use it up, or hand it over first.',
  too_many_organizations: 'You own 20 organizations: use one of them.',
  too_many_projects: 'The organization has 100 active projects: archive one first.',
  too_many_keys: 'The organization has 100 active API keys: revoke one first.',
  too_many_changes:
    'The organization has made 1,000 changes within a day: try again later. Keys, members and invitations can still be revoked.',
  project_archived: 'The project is archived.',
  top_up_out_of_range: 'The amount is outside of what the tier allows for one top-up.',
  too_many_pending_top_ups: 'The organization has 20 top-ups that are not paid: pay or cancel one first.',
  refund_exceeds_paid: 'This is more than is left of the payments that can be refunded.',
  entry_exists:
    'An entry with this id is in the books already, with another organization, kind or amount: look there first.',
  payment_settled: 'The payment is already completed or canceled.',
  event_resolved: 'The payment event is not unresolved: there is nothing to decide about it.',
  event_not_assignable: 'The payment event cannot be assigned: dismiss it once you have looked at it.',
  payment_provider_failed: 'The payment provider did not answer as expected: try again later.',
} as const satisfies Record<string, string>;

export type AccountErrorCode = keyof typeof ACCOUNT_ERRORS;

/** A refusal of an account or credit service: a code to branch on and one sentence to show. Nothing was changed. */
export class AccountError extends Error {
  override readonly name = 'AccountError';

  constructor(
    readonly code: AccountErrorCode,
    message: string = ACCOUNT_ERRORS[code],
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
