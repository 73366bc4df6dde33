/** The kinds of objects of an audit entry. */
export const AUDIT_LOG_OBJECTS = [
  'organization',
  'project',
  'key',
  'user',
  'invitation',
  'payment',
  'payment_event',
  'model',
  'model_alias',
] as const;
export type AuditLogObject = (typeof AUDIT_LOG_OBJECTS)[number];

interface Described {
  readonly object: AuditLogObject;
  /** The act, for a list of what a person did. */
  readonly sentence: string;
}

/**
 * The acts of people that the audit log records. Changes by time or by a payment provider are not in it.
 */
export const AUDIT_LOG_ACTIONS = {
  'organization.create': { object: 'organization', sentence: 'Created the organization.' },
  'organization.rename': { object: 'organization', sentence: 'Renamed the organization.' },
  'organization.limits': { object: 'organization', sentence: 'Set the minimum tier or dedicated limits.' },
  'organization.credit_alert': {
    object: 'organization',
    sentence: 'Changed the credit below which members are alerted.',
  },
  'organization.suspend': { object: 'organization', sentence: 'Suspended the organization.' },
  'organization.resume': { object: 'organization', sentence: 'Lifted the suspension of the organization.' },
  'organization.close': {
    object: 'organization',
    sentence: 'Closed the organization, because its only member deleted their account.',
  },
  'project.create': { object: 'project', sentence: 'Created a project.' },
  'project.rename': { object: 'project', sentence: 'Renamed a project.' },
  'project.archive': { object: 'project', sentence: 'Archived a project, and revoked its keys.' },
  'project.spend_limit': { object: 'project', sentence: 'Changed the monthly spend limit of a project.' },
  'key.create': { object: 'key', sentence: 'Created an API key.' },
  'key.spend_limit': { object: 'key', sentence: 'Changed the monthly spend limit of an API key.' },
  'key.expiry': { object: 'key', sentence: 'Changed when an API key expires.' },
  'key.revoke': { object: 'key', sentence: 'Revoked an API key.' },
  'member.add': { object: 'user', sentence: 'Added a member.' },
  'member.role': { object: 'user', sentence: 'Changed the role of a member.' },
  'member.remove': { object: 'user', sentence: 'Removed a member.' },
  'member.leave': { object: 'user', sentence: 'Left the organization.' },
  'invitation.create': { object: 'invitation', sentence: 'Invited somebody.' },
  'invitation.resend': { object: 'invitation', sentence: 'Sent an invitation again.' },
  'invitation.revoke': { object: 'invitation', sentence: 'Revoked an invitation.' },
  'invitation.accept': { object: 'invitation', sentence: 'Accepted an invitation and became a member.' },
  'account.delete': { object: 'user', sentence: 'Deleted their account.' },
  'second_factor.add': { object: 'user', sentence: 'Turned two-step sign-in on.' },
  'second_factor.remove': { object: 'user', sentence: 'Turned two-step sign-in off.' },
  'second_factor.recovery_codes': { object: 'user', sentence: 'Made new recovery codes.' },
  'second_factor.recover': { object: 'user', sentence: 'Signed in with a recovery code.' },
  'passkey.add': { object: 'user', sentence: 'Added a passkey.' },
  'passkey.remove': { object: 'user', sentence: 'Removed a passkey.' },
  'operator.grant': { object: 'user', sentence: 'Gave a user the power of the operator.' },
  'operator.withdraw': { object: 'user', sentence: 'Took the power of the operator from a user.' },
  'top_up.start': { object: 'payment', sentence: 'Started a top-up.' },
  'top_up.cancel': { object: 'payment', sentence: 'Canceled a top-up that was not paid.' },
  'top_up.confirm': { object: 'payment', sentence: 'Confirmed that a payment has arrived.' },
  'credit.enter': { object: 'payment', sentence: 'Entered a payment that was received by hand.' },
  'credit.refund': { object: 'payment', sentence: 'Refunded a payment that was received by hand.' },
  'payment_event.assign': {
    object: 'payment_event',
    sentence: 'Assigned a payment event to the organization.',
  },
  'payment_event.dismiss': { object: 'payment_event', sentence: 'Dismissed a payment event.' },
  'own_model.add': { object: 'model', sentence: 'Added a tuned model of the organization.' },
  'own_model.remove': { object: 'model', sentence: 'Removed a tuned model of the organization.' },
  'model.add': { object: 'model', sentence: 'Added a model.' },
  'model.open': { object: 'model', sentence: 'Opened a model for requests.' },
  'model.close': { object: 'model', sentence: 'Closed a model.' },
  'model.remove': { object: 'model', sentence: 'Removed a model.' },
  'model.drain': { object: 'model', sentence: 'Drained an upstream of a model, or ended that.' },
  'model.calibrate': { object: 'model', sentence: 'Calibrated a model of upstreams.' },
  'model.price': { object: 'model', sentence: 'Set the price of a model.' },
  'model.reload': { object: 'model', sentence: 'Asked to load a model anew.' },
  'model.weights': { object: 'model', sentence: 'Gave a model new weights, or loaded them anew.' },
  'model.alias': { object: 'model_alias', sentence: 'Gave a model another name.' },
  'model.unalias': { object: 'model_alias', sentence: 'Took another name of a model away.' },
} as const satisfies Record<string, Described>;

export type AuditLogAction = keyof typeof AUDIT_LOG_ACTIONS;

/** The acts on the service or on an account, which are in no organization's audit log. */
export const SERVICE_ACTIONS: readonly AuditLogAction[] = [
  'account.delete',
  'second_factor.add',
  'second_factor.remove',
  'second_factor.recovery_codes',
  'second_factor.recover',
  'passkey.add',
  'passkey.remove',
  'operator.grant',
  'operator.withdraw',
  'payment_event.dismiss',
  'model.add',
  'model.open',
  'model.close',
  'model.remove',
  'model.price',
  'model.reload',
  'model.weights',
  'model.drain',
  'model.calibrate',
  'model.alias',
  'model.unalias',
];

/**
 * Returns true if a stored text is one of the actions. A newer version may have written one that this one
 * does not know.
 */
export function isAuditLogAction(text: string): text is AuditLogAction {
  return Object.hasOwn(AUDIT_LOG_ACTIONS, text);
}
